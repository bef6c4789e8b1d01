"""Which split a group of related tasks is in: a stable hash of the group's name, and nothing else.

The same group is in the same split in every config and every release, whatever else is in the
data set, so that relatives never stand on both sides. About 80 % of groups are train, 10 %
validation, 10 % test; with few groups the shares of rows differ from that.
"""

import hashlib
from typing import Literal

Split = Literal["train", "validation", "test"]

SPLITS: tuple[Split, ...] = ("train", "validation", "test")
"""All splits, in the order in which they are shown."""
SALT = "concur-splits-23"
"""Hashed before the group's name. Changing it moves rows between splits, so it changes only with a
new major version of the data set."""
_TRAIN, _VALIDATION = 80, 90


def split_of(group: str) -> Split:
    """Return the split of a group (`provenance.group` of a task)."""
    digest = hashlib.sha256(f"{SALT}\n{group}".encode()).digest()
    # 64 bits over 100: the bias is below 1e-17.
    place = int.from_bytes(digest[:8], "big") % 100
    if place < _TRAIN:
        return "train"
    return "validation" if place < _VALIDATION else "test"
