"""Who a node is to others, and how it convinces them."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..wire.codec import Language
from ..wire.control import Role
from .tls import Certificates

IN_CLEAR = Certificates()


@dataclass(frozen=True)
class Identity:
    """A name, which is used once at a time, a role, and what proves them."""

    name: str
    role: Role = "client"
    token: bytes | None = field(default=None, repr=False)
    certificates: Certificates = IN_CLEAR
    language: Language = "msgpack"
