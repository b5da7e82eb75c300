"""Errors that end a connection."""

from __future__ import annotations

from ....errors import InputError


class WireFault(InputError):
    """An error for invalid input of a peer. The peer is informed and disconnected; other connections are not
    affected.
    """


class ConnectionRefused(WireFault):
    """An error for peers that cannot agree on a connection. Another attempt would not help."""
