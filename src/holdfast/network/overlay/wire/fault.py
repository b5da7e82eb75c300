"""Errors that end a connection."""

from __future__ import annotations

from ....errors import InputError


class WireFault(InputError):
    """A peer sent invalid input; it is informed and disconnected, and other connections are not affected."""


class ConnectionRefused(WireFault):
    """The peers cannot agree on a connection; another attempt would not help."""
