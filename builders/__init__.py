"""From sources to rows: reading sample folders; the `datasets` builders over corpus and ledger."""
