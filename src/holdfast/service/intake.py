"""Conversion of submissions of feeds to log entries.

Repetitions are dropped, the wall clock advances event time, and unusable parts are separated.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from ..model.instant import Duration, Instant
from ..model.topic import Topic
from .clock import WallTime
from .evaluation import printable
from .feeds.submission import NOWHERE, IncomingEvent, Rejected, runs
from .log.frame import ORIGIN, Advance, Entry, Pause, Readings, require_valid
from .origins import Origins, RepeatedRequest, Request, Requests


class Submission(NamedTuple):
    """Readings that a feed submits together.

    ``again`` means that the messages may be repetitions. Of several submissions with one ``request`` only the
    first is accepted. ``read`` is the instant up to which the feeds have delivered all readings of each
    topic; the wall clock may advance event time to it.
    """

    incoming: Sequence[IncomingEvent] = ()
    entries: Sequence[Entry] = ()
    again: bool = False
    request: Request | None = None
    read: Mapping[str, Instant] = MappingProxyType({})

    @property
    def size(self) -> int:
        """The number of readings in the submission."""
        return len(self.incoming) + sum(map(_count, self.entries))


@dataclass(frozen=True)
class EngineState:
    """The state of the engine that other threads may read.

    The engine's thread replaces it after each group.
    """

    topics: Mapping[str, Topic]
    due: Instant | None
    """When the next timer fires."""
    watermarks: Mapping[str, Instant]
    topic_groups: Sequence[Collection[str]]
    """Groups of topics that are evaluated together."""
    max_delay: Duration
    """The largest ``wait`` of an ordered condition."""


class Intake:
    """Converts groups of submissions to log entries.

    For each group, the log's thread calls ``to_entries``, appends the entries to the log, and calls ``add``.
    If ``to_entries`` raises, ``split`` separates the unusable parts of submissions.
    """

    def __init__(
        self,
        origins: Origins,
        requests: Requests,
        wall_time: WallTime,
        clock: Callable[[], Instant],
        state: Callable[[], EngineState],
    ) -> None:
        self._origins, self._requests, self._wall_time = origins, requests, wall_time
        self._clock, self._state = clock, state

    def add(self, entries: Sequence[Entry], requests: Iterable[Request] | None = None) -> None:
        """Record the messages and requests that the log now has, to recognize repetitions.

        ``requests`` defaults to those of the entries. Pass it for a request that delivered no readings.
        """
        self._origins.add(origin for entry in entries for origin in _origins(entry))
        self._requests.add(_requests(entries) if requests is None else requests, self._clock())

    def to_entries(self, group: list[Submission]) -> tuple[list[Entry], list[int | RepeatedRequest]]:
        """Return the new readings of a group as log entries, and the number of new readings of each
        submission.

        A repeated request has a ``RepeatedRequest`` in place of the number.
        """
        entries: list[Entry] = []
        incoming: list[IncomingEvent] = []
        counts: list[int | RepeatedRequest] = []
        origins_of_group: set[int] = set()
        requests: dict[bytes, bytes] = {}
        for submission in group:
            request = submission.request
            if request is not None:
                if (repeated := self._requests.find_repetition(request, requests)) is not None:
                    counts.append(repeated)
                    continue
                requests[request.key] = request.body
            new = [
                one for one in submission.incoming if self._is_new(one.origin, submission, origins_of_group)
            ]
            self._note_lags(new, submission.entries)
            origins_of_group.update(one.origin for one in new)
            if request is not None or submission.entries:
                entries += self._readings(incoming)
                incoming = []
                known = (self._resume(one, submission.read) for one in submission.entries)
                own = [*self._readings(new if request else ()), *known]
                entries += own if request is None else [_with_request(one, request) for one in own]
            if request is None:
                incoming += new
            counts.append(len(new) + sum(map(_count, submission.entries)))
        entries += self._readings(incoming)
        if reads := [one.read for one in group if one.read]:
            entries += self._advance(reads[-1])
        for entry in entries:
            require_valid(entry)
        return entries, counts

    def _note_lags(self, incoming: Iterable[IncomingEvent], entries: Iterable[Entry]) -> None:
        """Record how long the readings took to arrive."""
        now, lags = self._clock(), self._wall_time.lags
        for event, _ in incoming:
            lags.add(event.topic, event.source, now - event.time, now)
        for entry in entries:
            if isinstance(entry, Readings):
                lags.add_batch(entry.topic, entry.batch, now)

    def _time_limits(self, read: Mapping[str, Instant]) -> dict[str, Instant]:
        """Return the event time of each topic up to which the wall clock may advance it."""
        state = self._state()
        return self._wall_time.advance(read, state.watermarks, state.topic_groups, state.max_delay)

    def _resume(self, entry: Entry, read: Mapping[str, Instant]) -> Entry:
        """Add to a ``Pause`` the event times of topics that resume.

        The clocks of scopes ignore this step of time.
        """
        return entry._replace(until=self._time_limits(read)) if isinstance(entry, Pause) else entry

    def _advance(self, read: Mapping[str, Instant]) -> list[Entry]:
        """Return an entry that advances event time to the limits of the wall clock.

        Returns an empty list if no timer is due.
        """
        until, due = self._time_limits(read), self._state().due
        is_due = due is not None and max(until.values(), default=due) > due
        return [Advance(until)] if is_due else []

    def _is_new(self, origin: int, submission: Submission, origins_of_group: set[int]) -> bool:
        if origin == NOWHERE or not submission.again:
            return True
        return origin not in self._origins and origin not in origins_of_group

    def _readings(self, incoming: Iterable[IncomingEvent]) -> Iterator[Readings]:
        """Convert readings to log entries. Readings of topics that were removed meanwhile are dropped."""
        topics = self._state().topics
        return runs(topics, [one for one in incoming if one.event.topic in topics])

    def split(self, submission: Submission) -> tuple[Submission, list[Rejected]]:
        """Return a submission without the parts that no log entry can represent, and these as rejections."""
        bad: list[Rejected] = []
        incoming = [one for one in submission.incoming if self._is_valid(one.event.topic, one, bad)]
        entries = [one for one in submission.entries if self._is_valid("", one, bad)]
        return submission._replace(incoming=incoming, entries=entries), bad

    def _is_valid(self, topic: str, what: IncomingEvent | Entry, bad: list[Rejected]) -> bool:
        try:
            for entry in self._readings([what]) if isinstance(what, IncomingEvent) else [what]:
                require_valid(entry)
        except Exception as error:
            content = repr(what).encode() if isinstance(what, IncomingEvent) else printable(what)
            topic = what.topic if isinstance(what, Readings) else topic
            bad.append(Rejected("log", topic, f"the log cannot hold it: {error}", content, self._clock()))
            return False
        return True


def _origins(entry: Entry) -> list[int]:
    return np.asarray(entry.batch.column(ORIGIN)).tolist() if isinstance(entry, Readings) else []


def _with_request(entry: Entry, request: Request) -> Entry:
    return entry._replace(request=request.to_bytes()) if isinstance(entry, Readings) else entry


def _requests(entries: Iterable[Entry]) -> list[Request]:
    """Return the requests whose readings are in log entries, each once."""
    found = dict.fromkeys(one.request for one in entries if isinstance(one, Readings) and one.request)
    return list(map(Request.from_bytes, found))


def _count(entry: Entry) -> int:
    return len(entry.batch) if isinstance(entry, Readings) else 0
