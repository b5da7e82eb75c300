"""Random streams from one seed: equal names give equal streams, independent of all other draws."""

from __future__ import annotations

from hashlib import blake2b
from random import Random


def derive_seed(seed: int, *names: object) -> int:
    """A seed of 64 bits, derived from the run's seed and a purpose such as ``("node", 7)``.

    >>> derive_seed(1, "node", 7) == derive_seed(1, "node", 7) != derive_seed(1, "node", 8)
    True
    """
    text = "/".join(map(str, (seed, *names)))
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def stream(seed: int, *names: object) -> Random:
    """A random stream for one purpose, given by names."""
    return Random(derive_seed(seed, *names))
