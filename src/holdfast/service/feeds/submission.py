"""Readings on their way to the log."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import groupby
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ...errors import HoldfastError
from ...model.batch import conform, from_events
from ...model.event import UNNUMBERED, Event
from ...model.instant import SECOND, Duration, Instant
from ...model.topic import Topic
from ..log.frame import ORIGIN, Readings

log = logging.getLogger("holdfast.service")

NOWHERE = 0
"""The origin of a reading whose message has no identity."""


class Rejected(NamedTuple):
    """What came and is no reading, and why."""

    feed: str
    channel: str
    reason: str
    payload: bytes
    at: Instant


class Given(NamedTuple):
    """A reading and the digest of the message that brought it."""

    event: Event
    origin: int = NOWHERE


def rejection(feed: str, channel: str, error: Exception, payload: bytes, at: Instant) -> Rejected:
    """Why something is no reading; what nobody has foreseen is logged, too."""
    if isinstance(error, HoldfastError):
        return Rejected(feed, channel, str(error), payload, at)
    log.error("%s: a message on %r cannot be read", feed, channel[:200], exc_info=error)
    return Rejected(feed, channel, f"it cannot be read: {type(error).__name__}: {error}", payload, at)


def lag_of(lag: Duration | None) -> float | None:
    """How long the latest reading of a feed took from its time to its arrival, in seconds."""
    return None if lag is None else lag / SECOND


def readings(topic: Topic, events: Sequence[Event], origins: Sequence[int] | None = None) -> Readings:
    """Events of one topic as an entry of the log."""
    batch = from_events(topic, events)
    told = pa.array(np.zeros(len(events), np.int64) if origins is None else origins, pa.int64())
    return Readings(topic.name, batch.append_column(ORIGIN, told))


def runs(topics: Mapping[str, Topic], given: Iterable[Given]) -> Iterator[Readings]:
    """Readings of several topics as entries, in the order in which they came."""
    for name, some in groupby(given, key=lambda one: one.event.topic):
        mine = list(some)
        yield readings(topics[name], [one.event for one in mine], [one.origin for one in mine])


def table(topic: Topic, batch: pa.RecordBatch | pa.Table) -> Readings:
    """A batch that somebody sent, as an entry of the log."""
    conformed = conform(topic, batch)
    if "sequence" not in conformed.schema.names:
        numbers = pa.array(np.full(len(conformed), UNNUMBERED), pa.int64())
        conformed = conformed.append_column("sequence", numbers)
    nowhere = pa.array(np.full(len(conformed), NOWHERE), pa.int64())
    return Readings(topic.name, conformed.append_column(ORIGIN, nowhere))


def origin(*parts: bytes) -> int:
    """A digest of what identifies a message; never that of none."""
    whole = blake2b(b"\0".join(parts), digest_size=7).digest()  # room to count rows from it
    return int.from_bytes(whole, "little") + 1
