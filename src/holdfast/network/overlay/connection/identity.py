"""The identity of a host, and its credentials."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..wire.control import Role
from ..wire.frame import Language
from .tls import Certificates

IN_CLEAR = Certificates()


@dataclass(frozen=True)
class Identity:
    """The identity of a host: a name, which only one host may use at a time, a role, and credentials."""

    name: str
    role: Role = "client"
    token: bytes | None = field(default=None, repr=False)
    certificates: Certificates = IN_CLEAR
    language: Language = "msgpack"
