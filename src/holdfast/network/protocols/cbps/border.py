"""The border between clients and a broker: bundle names that a client cannot forge.

A client chooses the names of its bundles, and the broker appends a mark of the connection to each name. A
name that is forged, used twice, or reused after a clock was set back therefore denotes another bundle. Only
brokers write the context of a bundle, that is, how it reached them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from msgspec.structs import replace

from ....model.instant import Instant
from .message import (
    Bundle,
    BundleKey,
    BundleRefusal,
    CbpsMessage,
    HostedNotification,
    Interruption,
    Registration,
    Renewal,
    ScopePlacement,
    StateAnswer,
    StateRequest,
    SubscriptionRef,
    UnadvertiseBundle,
    UnsubscribeBundle,
)


def mark(node: str, number: int) -> str:
    """Return the suffix that a broker appends to the names of a connection's bundles.

    >>> mark("hub~5f", 3)
    '@hub~5f.3'
    """
    return f"@{node}.{number}"


def is_marked(key: BundleKey, node: str) -> bool:
    """Return whether this broker was the first to receive the bundle."""
    origin, _, number = key.origin.rpartition(".")
    return number.isdigit() and origin.endswith(f"@{node}")


_AGENT_ORIGIN = re.compile(r"(.*) \d+ \d+ \d+", re.DOTALL)


def agent_name(address: str, node: str, now: Instant, number: int) -> str:
    """Return the origin that an agent uses for its bundles.

    No client can use such a name, because the names of clients end with a mark. It differs from that of every
    agent which another broker starts at the same address.

    >>> agent_of(BundleKey(agent_name("Meet/ann", "hub~5f", 1_000, 3), 7))
    'Meet/ann'
    >>> agent_of(BundleKey("Meet/ann 7 1000 3" + mark("hub~5f", 3), 7))
    """
    return f"{address} {int.from_bytes(sha256(node.encode()).digest()[:8])} {now} {number}"


def agent_of(key: BundleKey) -> str | None:
    """Return the address of the agent that made a bundle, or ``None`` if no agent did."""
    found = _AGENT_ORIGIN.fullmatch(key.origin)
    return None if found is None else found[1]


def qualify_keys(message: CbpsMessage, mark: str) -> CbpsMessage | None:
    """Append the mark to the names in a client's message; ``None`` if clients may not send such a message."""

    def qualify(key: BundleKey) -> BundleKey:
        return BundleKey(key.origin + mark, key.sequence)

    match message:
        case Bundle():
            return replace(message, key=qualify(message.key), express=None)
        case Renewal(keys):
            return Renewal(tuple(map(qualify, keys)))
        case UnadvertiseBundle() | UnsubscribeBundle() | ScopePlacement() | StateAnswer():
            return _rename_keys(message, qualify)
        case Registration() | StateRequest():  # which asks about what it was sent
            return message
    return None


def strip_mark(message: CbpsMessage, mark: str) -> CbpsMessage:
    """Remove the mark from the names in a message to a client, so that the client reads the names that it
    chose.
    """
    return _rename_in_answer(message, lambda key: BundleKey(key.origin.removesuffix(mark), key.sequence))


def restore_mark(message: CbpsMessage, mark: str) -> CbpsMessage:
    """Append the mark again to an undelivered message, so that the broker finds the bundle."""
    return _rename_in_answer(message, lambda key: BundleKey(key.origin + mark, key.sequence))


def _rename_in_answer(message: CbpsMessage, name: Callable[[BundleKey], BundleKey]) -> CbpsMessage:
    """Return a message to a client with renamed bundles, if it refers to a bundle."""
    if isinstance(message, BundleRefusal | StateRequest | Interruption | HostedNotification):
        return _rename_keys(message, name)
    return message


def _rename_keys(message: Any, name: Callable[[BundleKey], BundleKey]) -> Any:
    """Return a message with another name for the bundle, or the subscription's bundle, that it refers to."""
    if isinstance(message, BundleRefusal | UnadvertiseBundle | UnsubscribeBundle):
        return replace(message, bundle=name(message.bundle))
    return replace(message, of=SubscriptionRef(name(message.of.bundle), message.of.place))
