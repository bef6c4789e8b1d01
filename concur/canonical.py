"""Canonical JSON and the content ids that are made from it.

Canonical form: UTF-8, keys sorted by code point, no white space, no NaN or infinities, floats as
Python's shortest round-trip text. Same content, same bytes, on every machine.
"""

import hashlib
import json
from typing import Any


def canonical_json(value: Any) -> str:
    """Return the canonical JSON text of plain data (dicts, lists, str, int, float, bool, None).

    Raises ValueError for NaN and infinities, TypeError for anything JSON cannot hold.
    """
    return json.dumps(
        value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )


def sha256_hex(data: bytes) -> str:
    """Return the SHA-256 of bytes as 64 lower-case hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def content_id(prefix: str, value: Any) -> str:
    """Return `prefix-` and the first 20 hexadecimal digits of the canonical JSON's SHA-256.

    80 bits: among a billion records the chance of one collision is below one in a million.
    """
    return f"{prefix}-{sha256_hex(canonical_json(value).encode())[:20]}"
