"""What ends a connection."""

from __future__ import annotations

from ....errors import InputError


class WireFault(InputError):
    """A peer sent what it must not; it is told why and dropped, and everybody else goes on."""


class Refused(WireFault):
    """A peer and we cannot agree to talk; trying again would not help."""
