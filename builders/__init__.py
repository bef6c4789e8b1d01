"""From sources to rows: reading sample folders, and the `datasets` builders over corpus and ledger."""
