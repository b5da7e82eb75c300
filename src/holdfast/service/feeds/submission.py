"""Values for readings on their way from a feed to the log: incoming events, rejections, and log entries."""

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
    """A message that cannot be used, with the reason."""

    feed: str
    channel: str
    reason: str
    payload: bytes
    at: Instant


class IncomingEvent(NamedTuple):
    """An event with the digest of the message that contained it, by which a repetition is recognized."""

    event: Event
    origin: int = NOWHERE


def rejection(feed: str, channel: str, error: Exception, payload: bytes, at: Instant) -> Rejected:
    """Return a rejection for a message that raised ``error``. An unexpected error is also logged."""
    if isinstance(error, HoldfastError):
        return Rejected(feed, channel, str(error), payload, at)
    log.error("%s: a message on %r cannot be read", feed, channel[:200], exc_info=error)
    return Rejected(feed, channel, f"it cannot be read: {type(error).__name__}: {error}", payload, at)


def lag_of(lag: Duration | None) -> float | None:
    """Return a lag in seconds, or ``None`` if it is unknown."""
    return None if lag is None else lag / SECOND


def readings(topic: Topic, events: Sequence[Event], origins: Sequence[int] | None = None) -> Readings:
    """Return events of one topic as a log entry. ``origins`` has the digest of each event's message."""
    batch = from_events(topic, events)
    column = pa.array(np.zeros(len(events), np.int64) if origins is None else origins, pa.int64())
    return Readings(topic.name, batch.append_column(ORIGIN, column))


def runs(topics: Mapping[str, Topic], incoming: Iterable[IncomingEvent]) -> Iterator[Readings]:
    """Yield events of several topics as log entries. Consecutive events of one topic become one entry."""
    for name, group in groupby(incoming, key=lambda incoming_event: incoming_event.event.topic):
        run = list(group)
        yield readings(
            topics[name],
            [incoming_event.event for incoming_event in run],
            [incoming_event.origin for incoming_event in run],
        )


def table(topic: Topic, batch: pa.RecordBatch | pa.Table) -> Readings:
    """Return a batch from a client as a log entry, in the types of the topic."""
    conformed = conform(topic, batch)
    if "sequence" not in conformed.schema.names:
        numbers = pa.array(np.full(len(conformed), UNNUMBERED), pa.int64())
        conformed = conformed.append_column("sequence", numbers)
    nowhere = pa.array(np.full(len(conformed), NOWHERE), pa.int64())
    return Readings(topic.name, conformed.append_column(ORIGIN, nowhere))


def origin(*parts: bytes) -> int:
    """Return a digest of the parts that identify a message. The result is never ``NOWHERE``."""
    whole = blake2b(b"\0".join(parts), digest_size=7).digest()  # room to count rows from it
    return int.from_bytes(whole, "little") + 1
