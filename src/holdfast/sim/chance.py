"""Chance from one seed: equal names give equal streams, whatever else is drawn."""

from __future__ import annotations

from hashlib import blake2b
from random import Random


def derived(seed: int, *names: object) -> int:
    """A seed of 64 bits for that purpose.

    >>> derived(1, "node", 7) == derived(1, "node", 7) != derived(1, "node", 8)
    True
    """
    text = "/".join(map(str, (seed, *names)))
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def stream(seed: int, *names: object) -> Random:
    """The stream of that purpose."""
    return Random(derived(seed, *names))
