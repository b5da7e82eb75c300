"""Who may do what.  A token is random and long, so a fast digest of it is safe to store."""

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
"""What each role may do."""

_PREFIX = "sha256:"


class User(NamedTuple):
    """Somebody with a token; only the token's digest is known here."""

    name: str
    role: str
    digest: str


EVERYBODY = User("local", "edit", "")
"""Who asks where no tokens are configured, which is on this machine only."""


def new_token() -> str:
    """A token that nobody can guess."""
    return f"hf_{secrets.token_urlsafe(32)}"


def digest(token: str) -> str:
    """What is stored of a token."""
    return _PREFIX + sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def is_digest(text: str) -> bool:
    tail = text.removeprefix(_PREFIX)
    return tail != text and len(tail) == 64 and set(tail) <= set("0123456789abcdef")


def known(users: Sequence[User], token: str) -> User | None:
    """Whose token it is; every digest is compared, so that time tells nothing."""
    mine = digest(token)
    matches = [user for user in users if hmac.compare_digest(user.digest, mine)]
    return matches[0] if matches else None


def bearer(header: str | None) -> str | None:
    """The token of an ``Authorization`` header."""
    kind, _, token = (header or "").partition(" ")
    return token.strip() if kind.lower() == "bearer" and token.strip() else None


def may(user: User, action: str) -> bool:
    return action in ROLES[user.role]
