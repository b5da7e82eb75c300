"""Mutes: whatever is muted, changed and corrected meanwhile, Alertmanager ends with what is active."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.event import Event
from holdfast.model.instant import SECOND, show_instant
from holdfast.service.core import Core
from holdfast.service.feeds.submission import IncomingEvent, runs
from holdfast.service.log.frame import Advance, DefinitionEntry
from holdfast.service.log.log import Appended
from holdfast.service.sinks.delivery import as_known, choose, is_muted
from holdfast.service.sinks.message import alerts

START, LATER = 1_750_000_000 * SECOND, 1_900_000_000 * SECOND
DEFINITIONS = {
    "corrected": "state W on T [v > 25 for 4 s; v < 22] per source ordered 2 s late correct 40 s",
    "corrected at once": "state W on T [v > 25; v < 22] per source ordered 0 s late correct 40 s",
    "levels": "levels W on T: warn [v > 25; v < 22], alarm [v > 30; v < 28] per source",
    "unknown": "state W on T [v > 25; v < 22] per source unknown after 6 s",
}
STEPS = st.one_of(
    st.tuples(
        st.just("read"),
        st.sampled_from("ab"),
        st.sampled_from((20.0, 23.0, 27.0, 33.0, 35.0)),
        st.sampled_from((0, 0, 0, 5, 15, 30)),
    ),
    st.tuples(st.just("mute"), st.sampled_from(((), ("a",), ("a", "b"), (None,)))),
    st.tuples(st.just("advance")),
)


class MutedService:
    """A definition that runs, and Alertmanager behind mutes."""

    def __init__(self, folder, text):
        self.core, self.at, self.rows = Core(Path(folder), lambda: START), 0, {}
        self.take(DefinitionEntry(f"topic T (v float)\n{text}\n"))
        assert self.core.definition_error is None
        self.muted, self.withheld, self.active = set(), {}, set()

    def take(self, entry):
        one = Appended(self.core.position, entry)
        return self.core.take(one)

    def send(self, emitted):
        for alert in alerts(emitted, LATER, {}):
            key = alert["labels"]["scope"], alert["labels"].get("level")
            (self.active.add if alert["endsAt"] == show_instant(LATER) else self.active.discard)(key)

    def note(self, emitted):
        numbered = [one._replace(position=len(self.rows) + i) for i, one in enumerate(emitted, 1)]
        self.rows |= {one.position: one for one in numbered}
        found = choose(numbered, self.muted, self.withheld, self.core.corrected)
        self.send(found.sent)
        self.withheld = found.withheld
        self.release()

    def release(self):
        free = {key: one for key, one in self.withheld.items() if not is_muted(key, self.muted)}
        rows = (self.rows[at] for at in sorted({at for one in free.values() for at in one.positions}))
        self.send([as_known(one, free[one.key]) for one in rows])
        self.withheld = {key: one for key, one in self.withheld.items() if key not in free}

    def step(self, what, *how):
        self.at += SECOND
        match what:
            case "mute":
                self.muted = {("W", scope) for scope in how[0]}
                self.release()
            case "advance":
                self.note(self.take(Advance({"T": START + self.at})))
            case "read":
                source, value, late = how
                event = Event("T", START + self.at - late * SECOND, source, {"v": value}, self.at)
                for entry in runs(self.core.topics, [IncomingEvent(event)]):
                    self.note(self.take(entry))


@pytest.mark.parametrize("name", DEFINITIONS)
@given(story=st.lists(STEPS, max_size=80))
def test_alertmanager_has_the_active_conditions_after_all_mutes(name, story):
    with TemporaryDirectory() as folder:
        world = MutedService(folder, DEFINITIONS[name])
        for step in [*story, ("mute", ())]:
            world.step(*step)
        assert world.active == {(one.scope, one.level) for one in world.core.engine.holding()}
