"""Where clients meet a broker: what they say of themselves is not believed.

A client names its bundles as it likes.  The broker adds to each name the connection that it came over, which
nobody else can write; so a name can be forged, used twice or come back with a clock that was set back, and
means another bundle.  How a bundle came, only brokers say.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from msgspec.structs import replace

from ...model.instant import Instant
from .message import (
    Answer,
    Ask,
    Bundle,
    Interruption,
    Key,
    Message,
    Part,
    Placement,
    Refusal,
    Registration,
    Renewal,
    Said,
    Unadvertise,
    Unsubscribe,
)


def mark(node: str, number: int) -> str:
    """What a broker adds to the names of a connection's bundles.

    >>> mark("hub~5f", 3)
    '@hub~5f.3'
    """
    return f"@{node}.{number}"


def is_marked(key: Key, node: str) -> bool:
    """Whether a broker was the first that a bundle came to."""
    origin, _, number = key.origin.rpartition(".")
    return number.isdigit() and origin.endswith(f"@{node}")


_OF_AGENT = re.compile(r"(.*) \d+ \d+ \d+", re.DOTALL)


def agent_name(address: str, node: str, now: Instant, number: int) -> str:
    """The name of an agent as the maker of bundles: no client's ends like that, for theirs have marks, and
    that of no agent that another broker starts at the same address.

    >>> agent_of(Key(agent_name("Meet/ann", "hub~5f", 1_000, 3), 7))
    'Meet/ann'
    >>> agent_of(Key("Meet/ann 7 1000 3" + mark("hub~5f", 3), 7))
    """
    return f"{address} {int.from_bytes(sha256(node.encode()).digest()[:8])} {now} {number}"


def agent_of(key: Key) -> str | None:
    """The address of the agent that made a bundle, if an agent did."""
    found = _OF_AGENT.fullmatch(key.origin)
    return None if found is None else found[1]


def inward(message: Message, mark: str) -> Message | None:
    """What a client says, with names that are its own; nothing if it is not for a client to say."""

    def ours(key: Key) -> Key:
        return Key(key.origin + mark, key.sequence)

    match message:
        case Bundle():
            return replace(message, key=ours(message.key), express=None)
        case Renewal(keys):
            return Renewal(tuple(map(ours, keys)))
        case Unadvertise() | Unsubscribe() | Placement() | Answer():
            return _renamed(message, ours)
        case Registration() | Ask():  # which asks about what it was sent
            return message
    return None


def outward(message: Message, mark: str) -> Message:
    """What a client is told about its own bundles, under the names that it gave them."""
    if isinstance(message, Refusal | Ask | Interruption | Said):
        return _renamed(message, lambda key: Key(key.origin.removesuffix(mark), key.sequence))
    return message


def returned(message: Message, mark: str) -> Message:
    """What a client was to be told, and was not, under the names that the broker knows."""
    if isinstance(message, Refusal | Ask | Interruption | Said):
        return _renamed(message, lambda key: Key(key.origin + mark, key.sequence))
    return message


def _renamed(message: Any, name: Callable[[Key], Key]) -> Any:
    """A message about a bundle, or a part of one, that has another name."""
    if isinstance(message, Refusal | Unadvertise | Unsubscribe):
        return replace(message, bundle=name(message.bundle))
    return replace(message, of=Part(name(message.of.bundle), message.of.place))
