"""The address of a broker: a host and a port."""

from __future__ import annotations

from typing import NamedTuple

from ....errors import UsageError


class Address(NamedTuple):
    """A host and a TCP port. Port 0 stands for any free port."""

    host: str
    port: int

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the address."""
        return self.host in ("localhost", "::1") or self.host.startswith("127.")

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


DEFAULT = Address("127.0.0.1", 4653)
"""The default address of brokers and clients, reachable only from this machine."""


def parse_address(text: str, option: str = "the address") -> Address:
    """Parse an address: ``HOST:PORT``, ``[IPV6]:PORT`` or ``:PORT``.

    >>> parse_address("[::1]:80"), parse_address(":4653")
    (Address(host='::1', port=80), Address(host='127.0.0.1', port=4653))
    """
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or len(port) > 5 or int(port) > 65_535:
        raise UsageError(f"{option} {text}: write it as HOST:PORT, such as {DEFAULT}")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise UsageError(f"{option} {text}: write an IPv6 address in brackets, such as [::1]:{port}")
    return Address(host or DEFAULT.host, int(port))
