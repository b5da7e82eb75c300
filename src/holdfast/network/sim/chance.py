"""Independent random streams from one seed: equal names give equal streams, whatever other streams exist."""

from __future__ import annotations

from hashlib import blake2b
from random import Random


def derive_seed(seed: int, *names: object) -> int:
    """Return a seed of 64 bits, derived from the run's seed and a purpose such as ``("node", 7)``.

    >>> derive_seed(1, "node", 7) == derive_seed(1, "node", 7) != derive_seed(1, "node", 8)
    True
    """
    text = "/".join(map(str, (seed, *names)))
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def stream(seed: int, *names: object) -> Random:
    """Return a random stream for one purpose, which the names identify."""
    return Random(derive_seed(seed, *names))
