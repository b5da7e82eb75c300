"""Users, roles and tokens. The service stores only digests.

A token is random and long, so a fast digest cannot be reversed by guessing.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

ROLES: Mapping[str, frozenset[str]] = {
    "send": frozenset({"send"}),
    "see": frozenset({"see"}),
    "acknowledge": frozenset({"see", "acknowledge"}),
    "edit": frozenset({"send", "see", "acknowledge", "edit"}),
}
"""The actions that each role may do."""

_PREFIX = "sha256:"


class User(NamedTuple):
    """A user of the service, with the digest of a token. The token itself is not stored."""

    name: str
    role: str
    digest: str


LOCAL_USER = User("local", "edit", "")
"""The user of all requests if no users are configured; the service then listens on this machine only."""


def new_token() -> str:
    """Return a new random token with 256 bits of entropy."""
    return f"hf_{secrets.token_urlsafe(32)}"


def digest(token: str) -> str:
    """Return the digest of a token in the form in which ``serve.toml`` stores it."""
    return _PREFIX + sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def is_digest(text: str) -> bool:
    tail = text.removeprefix(_PREFIX)
    return tail != text and len(tail) == 64 and set(tail) <= set("0123456789abcdef")


def user_with_token(users: Sequence[User], token: str) -> User | None:
    """Return the user of a token, or ``None``.

    Every digest is compared, so that the duration of the call reveals nothing about the stored digests.
    """
    digest_of_token = digest(token)
    matches = [user for user in users if hmac.compare_digest(user.digest, digest_of_token)]
    return matches[0] if matches else None


def bearer(header: str | None) -> str | None:
    """Return the bearer token of an ``Authorization`` header, or ``None`` if the header has none."""
    kind, _, token = (header or "").partition(" ")
    return token.strip() if kind.lower() == "bearer" and token.strip() else None


def may(user: User, action: str) -> bool:
    return action in ROLES[user.role]
