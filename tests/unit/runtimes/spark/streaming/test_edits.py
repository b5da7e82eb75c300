"""Another definition on the checkpoint of a live query: what is known stays, as far as that follows."""

from __future__ import annotations

import base64
import time

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Engine, Event, UsageError, check, parse

live = pytest.importorskip("support.live")
few = settings(max_examples=20)

TOPIC = "topic T (v float)\n"
SECOND = 1_000_000


def text_of(high, low=22, guard="", more=""):
    return f"{TOPIC}state Warm on T [v > {high}{guard}; v < {low}] per source\n{more}"


MANY = "state Many = at least 2 of Warm until fewer than 1\n"
OTHERS = "state Cool on T [v < 10; v > 12] per source\n"  # in the machine in which Warm was


def reading(at, source, value):
    return Event("T", at * SECOND, source, {"v": float(value)}, at)


def as_rows(notifications):
    found = [(n.event.time // SECOND, n.subscription, n.scope, n.status, n.since) for n in notifications]
    return sorted(found, key=str)


class EditedQuery:
    """A live query that is restarted for each part of a history, each with its own definition."""

    def __init__(self, here):
        self.here, self.parts, self.deliveries = here, 0, []

    def forgets(self):
        """Let all files go that have come so far."""
        for path in self.here.inbox.iterdir():
            path.unlink()

    def takes(self, text, *events, crash=None, **how):
        """Process a part of the history; return the notifications."""
        app = parse(text)
        self.deliveries.clear()
        if events:
            self.parts += 1
            self.here.put(f"{self.parts}.parquet", check(app).topics[0], events)
        stream = live.Stream(self.here.live(app, sink=self.deliveries.append, shards=3, **how))
        self.holding = stream.record.holding
        stream.run(crash)
        self.holding = stream.record.holding
        return as_rows(self.deliveries)


def test_active_scopes_remain_active_where_that_follows_from_the_revision():
    with live.site() as here:
        query = EditedQuery(here)
        text = text_of(25, more=MANY + OTHERS)
        query.takes(text, reading(1, "a", 26), reading(2, "b", 30), reading(3, "c", 5))
        assert query.holding == 4
        wider = text.replace("v > 25", "v > 24")
        assert query.takes(wider, reading(4, "a", 24.5)) == []  # unchanged scopes are not notified
        assert query.takes(wider, reading(5, "a", 21), reading(6, "b", 21), reading(7, "c", 11)) == [
            (5, "Warm", "a", "egress", 1 * SECOND),
            (6, "Many", None, "egress", 2 * SECOND),
            (6, "Warm", "b", "egress", 2 * SECOND),
        ]
        assert query.takes(wider, reading(8, "c", 13)) == [(8, "Cool", "c", "egress", 3 * SECOND)]


def test_files_that_were_read_decide_a_revision_that_does_not_follow():
    with live.site() as here:
        query = EditedQuery(here)
        query.takes(text_of(25), reading(1, "a", 26), reading(2, "b", 30), reading(3, "c", 24.5))
        assert query.takes(text_of(27), reading(4, "d", 20)) == [(3, "Warm", "a", "revised", None)]
        assert query.takes(text_of(24), reading(5, "b", 20)) == [
            (1, "Warm", "a", "revised", 1 * SECOND),
            (3, "Warm", "c", "revised", 3 * SECOND),
            (5, "Warm", "b", "egress", 2 * SECOND),
        ]
        assert query.holding == 2


def test_files_decide_a_revised_state_with_a_roster(tmp_path):
    (tmp_path / "sensors.csv").write_text("source\na\nb\nf\ng\n")
    roster = f'roster "{tmp_path / "sensors.csv"}"\n'
    with live.site() as here:
        query = EditedQuery(here)
        rows = (reading(1, "a", 26), reading(2, "b", 30), reading(3, "f", 24.5), reading(4, "g", 24.5))
        query.takes(text_of(25).rstrip() + f" {roster}", *rows)
        assert query.takes(text_of(24).rstrip() + f" {roster}", reading(5, "b", 20)) == [
            (3, "Warm", "f", "revised", 3 * SECOND),
            (4, "Warm", "g", "revised", 4 * SECOND),
            (5, "Warm", "b", "egress", 2 * SECOND),
        ]


def test_active_scopes_are_unknown_until_a_reading_decides_where_a_file_is_gone():
    with live.site() as here:
        query = EditedQuery(here)
        query.takes(text_of(25), reading(1, "a", 26), reading(2, "b", 26))
        query.forgets()
        query.takes(text_of(25), reading(3, "b", 30))
        assert query.takes(text_of(27), reading(4, "d", 20)) == [
            (3, "Warm", "a", "unknown", 1 * SECOND),
            (3, "Warm", "b", "unknown", 2 * SECOND),
        ]


def test_files_decide_a_revision_after_which_no_input_arrives():
    with live.site() as here:
        query = EditedQuery(here)
        query.takes(text_of(25), reading(1, "a", 26), reading(2, "b", 24.5))
        assert query.takes(text_of(24), finish=True) == [(2, "Warm", "b", "revised", 2 * SECOND)]


def test_files_decide_a_revision_at_the_current_watermark():
    """The latest reading was in a file that has gone."""
    first, second = reading(100, "z", 20), reading(5, "a", 28)
    guard = " for 10 s"
    engine = Engine(text_of(25, guard=guard))
    for event in (first, second):
        engine.push(event)
    expected = engine.revise(text_of(27, guard=guard), [second], whole=False)
    with live.site() as here:
        query = EditedQuery(here)
        query.takes(text_of(25, guard=guard), first)
        query.forgets()
        query.takes(text_of(25, guard=guard), second)
        edit = query.takes(text_of(27, guard=guard), reading(101, "z", 20))
        assert (edit, query.holding) == (as_rows(expected), len(engine.holding()))
        assert query.holding == 0, "the source is late: its minimum duration waits for its readings"


def test_scopes_without_a_file_are_unknown_after_a_revision_until_a_reading_decides():
    with live.site() as here:
        query = EditedQuery(here)
        query.takes(text_of(25), reading(1, "a", 26), reading(2, "b", 30))
        query.forgets()
        assert query.takes(text_of(27)) == []  # no batch, no word
        assert query.takes(text_of(27), reading(3, "a", 28)) == [
            (2, "Warm", "a", "unknown", 1 * SECOND),
            (2, "Warm", "b", "unknown", 2 * SECOND),
            (3, "Warm", "a", "known", 1 * SECOND),
        ]
        assert query.takes(text_of(27), reading(4, "b", 20)) == [(4, "Warm", "b", "egress", 2 * SECOND)]
        assert query.holding == 1


def test_a_revision_that_is_reverted_before_a_batch_changes_nothing():
    with live.site() as here:
        query = EditedQuery(here)
        query.takes(text_of(25), reading(1, "a", 26))
        query.takes(text_of(28))
        query.takes(text_of(23))
        assert query.takes(text_of(25), reading(2, "a", 24)) == []
        assert query.takes(text_of(25), reading(3, "a", 21)) == [(3, "Warm", "a", "egress", 1 * SECOND)]


@pytest.mark.parametrize("crash", live.CRASHES)
def test_a_query_that_dies_in_the_batch_of_a_revision_emits_it_once(crash):
    with live.site() as here:
        query = EditedQuery(here)
        query.takes(text_of(25), reading(1, "a", 26))
        with pytest.raises(live.Crash):
            query.takes(text_of(27), reading(2, "a", 28), crash=crash)
        emitted = {n.id: n for n in query.deliveries}
        query.takes(text_of(27))
        assert as_rows((emitted | {n.id: n for n in query.deliveries}).values()) == [
            (1, "Warm", "a", "revised", None),
            (2, "Warm", "a", "ingress", None),
        ]


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (f"{TOPIC}state Warm on T [v > 25; v < 22]\n", "its scopes or its topic are others"),
        (f"{TOPIC}state Warm on T [v > 26; v < 22] per source ordered 1 s\n", "it is ordered"),
        (f"{TOPIC}filter Warm on T where v > 25\n", "its scopes or its topic are others"),
        (
            "topic T (v int)\nstate Warm on T [v > 25; v < 22] per source\n",
            "an attribute that it looks at has another kind or unit",
        ),
        (
            f"{TOPIC}region hall = rectangle (0, 0) (1, 1)\nstate Warm on T [v > 25; v < 22] scope hall\n",
            "its scopes or its topic are others",
        ),
    ],
)
def test_a_revision_that_cannot_carry_over_state_is_refused_and_changes_nothing(other, why):
    with live.site() as here:
        query = EditedQuery(here)
        query.takes(text_of(25), reading(1, "a", 26))
        with pytest.raises(UsageError, match=f"'Warm' has changed.*It cannot keep what is known: {why}"):
            query.takes(other)
        assert query.takes(text_of(25), reading(2, "a", 21)) == [(2, "Warm", "a", "egress", 1 * SECOND)]


def levels_text(high, low=22, guard="", more=""):
    rungs = f"mild [v > {high - 2}; v < {low - 1}], hot [v > {high}{guard}; v < {low}]"
    return f"{TOPIC}levels Warm on T: {rungs} per source\n{more}"


def test_levels_are_decided_by_files_or_unknown_until_a_reading_decides():
    with live.site() as here:
        query = EditedQuery(here)
        query.takes(levels_text(25), reading(1, "a", 26), reading(2, "b", 24.5), reading(3, "c", 20))
        edit = query.takes(levels_text(24), reading(4, "d", 20))
        assert edit == [(2, "Warm", "b", "revised", 2 * SECOND)]
        assert [n.event.attributes["level"] for n in query.deliveries] == ["hot"]
        query.forgets()
        assert query.takes(levels_text(27), reading(5, "d", 20)) == [
            (4, "Warm", "a", "unknown", 1 * SECOND),
            (4, "Warm", "b", "unknown", 2 * SECOND),
        ]
        assert query.holding == 2
        assert query.takes(levels_text(27), reading(6, "a", 28), reading(7, "b", 20.5)) == [
            (6, "Warm", "a", "known", 1 * SECOND),
            (7, "Warm", "b", "egress", 2 * SECOND),
        ]


def test_a_count_consumes_a_revision_before_the_readings_of_its_batch():
    """The revision makes 'a' unknown, then a reading makes it warm."""
    with live.site() as here:
        query = EditedQuery(here)
        query.takes(text_of(23, 20, "", MANY), reading(0, "a", 20))
        query.forgets()
        query.takes(text_of(23, 22, "", MANY), reading(1, "a", 20), reading(2, "c", 24.5))
        query.forgets()
        now = text_of(23, 20, "", MANY.replace("2", "3"))
        assert sorted(query.takes(now, reading(3, "a", 24.5), reading(4, "b", 24.5))) == [
            (2, "Warm", "a", "unknown", None),
            (3, "Warm", "a", "ingress", None),
            (4, "Many", None, "ingress", None),
            (4, "Warm", "b", "ingress", None),
        ]


_parts = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from((20, 21.5, 23, 24.5, 26, 28))), min_size=1, max_size=6
)
_texts = st.builds(
    lambda form, *some: form(*some),
    st.shared(st.sampled_from((text_of, text_of, levels_text)), key="form"),
    st.sampled_from((23, 24, 25, 27)),
    st.sampled_from((20, 22)),
    st.sampled_from(("", "", " for 1 s")),
    st.sampled_from(("", MANY, MANY.replace("2", "3"), MANY.replace(" until fewer than 1", ""))),
)


@few
@given(st.lists(st.tuples(_texts, _parts), min_size=2, max_size=3), st.booleans())
def test_live_revisions_emit_what_a_revised_engine_emits(story, forgets):
    if any("Many" in text for text, _ in story):  # one cannot come later: its stage would be a further one
        story = [(text if "Many" in text else text + MANY, part) for text, part in story]
    engine, out, at, history = None, [], 0, []
    with live.site() as here:
        query, emitted = EditedQuery(here), []
        for text, part in story:
            events = [reading(at + i, *row) for i, row in enumerate(part)]
            at += len(events)
            out += [] if engine is None else engine.revise(text, None if forgets else history)
            engine = engine or Engine(text)
            history += events
            for event in events:
                out += engine.push(event)
            emitted += query.takes(text, *events)
            if forgets:
                query.forgets()
    assert sorted(emitted, key=str) == as_rows(out)


def test_a_definition_stored_by_another_version_is_refused_with_a_message():
    with live.site() as here:
        query = EditedQuery(here)
        query.takes(text_of(25), reading(1, "a", 26))
        (file,) = here.folder.rglob("query.json")
        plan = msgspec.json.decode(file.read_bytes())
        plan["definition"] = base64.b64encode(b"\x80\x04cgone\nClass\n.").decode()
        file.write_bytes(msgspec.json.encode(plan))
        with pytest.raises(UsageError, match="another version of Holdfast wrote"):
            query.takes(text_of(27), reading(2, "a", 20))


def test_levels_carry_over_changed_table_rows(tmp_path):
    limits = tmp_path / "limits.csv"
    text = TABLED.format(limits).replace(
        "state Warm on T [v > L.high; v < L.low]",
        "levels Warm on T: mild [v > 21; v < 20], hot [v > L.high; v < L.low]",
    )
    limits.write_text("source,high,low\na,25,22\nb,25,22\nc,25,22\n")
    with live.site() as here:
        query = EditedQuery(here)
        query.takes(text, reading(1, "a", 26), reading(2, "b", 30), reading(3, "c", 24.5))
        limits.write_text("source,high,low\na,25,22\nb,31,22\nc,24,22\n")
        assert query.takes(text, reading(4, "d", 20)) == [
            (2, "Warm", "b", "revised", 2 * SECOND),
            (3, "Warm", "c", "revised", 3 * SECOND),
        ]
        query.forgets()
        limits.write_text("source,high,low\na,27,22\nb,31,22\nc,24,22\n")
        assert query.takes(text, reading(5, "d", 20)) == [(4, "Warm", "a", "unknown", 1 * SECOND)]
        assert query.takes(text, reading(6, "a", 28)) == [(6, "Warm", "a", "known", 1 * SECOND)]


TABLED = """topic T (v float)
table L "{}" (source text, high float, low float)
state Warm on T [v > L.high; v < L.low] per source
"""


def test_changed_table_rows_are_carried_over_scope_by_scope(tmp_path):
    limits = tmp_path / "limits.csv"
    text = TABLED.format(limits)
    limits.write_text("source,high,low\na,25,22\nb,25,22\nc,25,22\n")
    with live.site() as here:
        query = EditedQuery(here)
        query.takes(text, reading(1, "a", 26), reading(2, "b", 30), reading(3, "c", 24.5))
        limits.write_text("source,high,low\na,25,22\nb,31,22\nc,24,22\n")
        assert query.takes(text, reading(4, "d", 20)) == [
            (3, "Warm", "b", "revised", None),
            (3, "Warm", "c", "revised", 3 * SECOND),
        ]
        query.forgets()
        limits.write_text("source,high,low\na,27,22\nb,31,22\nc,24,22\n")
        assert query.takes(text, reading(5, "d", 20)) == [(4, "Warm", "a", "unknown", 1 * SECOND)]
        assert query.takes(text, reading(6, "a", 28)) == [(6, "Warm", "a", "known", 1 * SECOND)]


@pytest.mark.parametrize("forgets", [False, True])
def test_a_revised_count_consumes_the_active_scopes(forgets):
    with live.site() as here:
        query = EditedQuery(here)
        text = text_of(25, more=MANY)
        rows = reading(1, "a", 26), reading(2, "b", 30), reading(3, "c", 30), reading(4, "c", 5)
        query.takes(text, *rows)
        if forgets:
            query.forgets()
        fewer = text.replace("at least 2", "at least 1")
        assert query.takes(fewer, reading(5, "d", 20)) == []  # it holds by either
        more = text.replace("at least 2", "at least 4")
        found = query.takes(more, reading(6, "d", 20))
        status, since = ("unknown", 2 * SECOND) if forgets else ("revised", None)
        assert [row[1:] for row in found] == [("Many", None, status, since)]
        last = query.takes(more, reading(7, "a", 20), reading(8, "b", 20))
        ended = [(8, "Many", None, "egress", 2 * SECOND)] if forgets else []
        assert [row for row in last if row[1] == "Many"] == ended


def test_a_revised_mute_keeps_the_reported_state_of_scopes():
    """The epoch began on a Thursday."""
    with live.site() as here:
        query = EditedQuery(here)
        text = text_of(25, more='mute Warm during "Thu 00:00 – Fri 06:00"\n')
        assert query.takes(text, reading(1, "a", 26), reading(2, "b", 30), reading(3, "c", 5)) == []
        shorter = text.replace("Thu 00:00", "Fri 00:00")
        emitted = query.takes(shorter, reading(4, "d", 20)) + query.takes(shorter, reading(5, "d", 20))
        assert [row[1:4] for row in emitted] == [("Warm", "a", "ingress"), ("Warm", "b", "ingress")]
        ended = query.takes(shorter, reading(6, "a", 20)) + query.takes(shorter, reading(7, "d", 20))
        assert [row[1:4] for row in ended] == [("Warm", "a", "egress")]


ALL = "state All = at least 3 of Warm\n"


another_stage = pytest.mark.parametrize("first", ["", MANY], ids=["at a stage more", "at a stage it has"])


@another_stage
@pytest.mark.parametrize("forgets", [False, True])
def test_a_new_count_consumes_the_scopes_that_are_active_already(forgets, first):
    with live.site() as here:
        query = EditedQuery(here)
        rows = reading(1, "a", 26), reading(2, "b", 30), reading(3, "c", 5)
        query.takes(text_of(25, more=OTHERS + first), *rows)
        if forgets:
            query.forgets()
        more = OTHERS + first + ALL + MANY.replace("Many", "Two")
        two = (2, "Two", None, "ingress", None) if forgets else (2, "Two", None, "revised", 2 * SECOND)
        assert query.takes(text_of(25, more=more), reading(4, "d", 20)) == [two]
        assert query.takes(text_of(25, more=more), reading(5, "c", 26)) == [
            (5, "All", None, "ingress", None),
            (5, "Cool", "c", "egress", 3 * SECOND),
            (5, "Warm", "c", "ingress", None),
        ]


@another_stage
@pytest.mark.parametrize("forgets", [False, True])
def test_a_new_correlation_of_states_consumes_the_scopes_that_are_active_already(forgets, first):
    with live.site() as here:
        query = EditedQuery(here)
        rows = reading(1, "a", 26), reading(2, "c", 5), reading(3, "b", 30)
        query.takes(text_of(25, more=OTHERS + first), *rows)
        if forgets:
            query.forgets()
        both = text_of(25, more=f"{OTHERS}{first}correlate Both = Warm, Cool overlapping\n")
        found = query.takes(both, reading(4, "d", 20)) + query.takes(both, reading(5, "d", 20))
        known = ("ingress", None) if forgets else ("revised", 2 * SECOND)
        assert [row for row in found if row[1] == "Both"] == [
            (2, "Both", "a,c", *known),
            (3, "Both", "b,c", "ingress", None),  # the watermark had not passed it
        ]


def test_a_count_over_a_revised_state_equals_one_that_always_had_it():
    with live.site() as here:
        query = EditedQuery(here)
        text = text_of(25, more=MANY)
        rows = reading(1, "a", 24.5), reading(2, "b", 24.5), reading(3, "a", 21), reading(4, "c", 20)
        query.takes(text, *rows)
        assert query.takes(text.replace("v > 25", "v > 24"), reading(5, "d", 20)) == [
            (2, "Many", None, "revised", 2 * SECOND),  # it has held since two were warm: one still is
            (2, "Warm", "b", "revised", 2 * SECOND),
        ]


def test_the_history_is_read_once_although_the_clock_causes_batches(monkeypatch):
    times, reads = [time.time()], []
    with live.site() as here:
        query = EditedQuery(here)
        query.takes(text_of(25), reading(1, "a", 26), reading(2, "b", 24.5))
        query.deliveries.clear()
        monkeypatch.setattr("time.time", lambda: times[0])
        edited = here.live(parse(text_of(24)), sink=query.deliveries.append, shards=3, idle=10.0)
        stream = live.Stream(edited)
        for _ in range(3):
            times[0] += 60
            assert stream.step()
            reads.append(stream.read[-1])
        assert reads == [["1.parquet"], [], []]
        assert as_rows(query.deliveries) == [(2, "Warm", "b", "revised", 2 * SECOND)]


ROOMS = """topic T (v float, room text)
state Warm on T [v > 25 for 1 readings; v < 22] per source unknown after 1 h
state Many = at least {} of Warm within room
"""


def in_room(at, source, value, room="r"):
    return Event("T", at * SECOND, source, {"v": float(value), "room": room}, at)


def test_a_member_at_the_current_watermark_is_counted_in_its_room():
    with live.site() as here:
        query = EditedQuery(here)
        query.takes(ROOMS.format(3), in_room(1, "a", 30), in_room(2, "b", 30))
        query.forgets()
        found = query.takes(ROOMS.format(2), in_room(3, "d", 20))
        found += query.takes(ROOMS.format(2), in_room(4, "d", 20))
        assert [row[:4] for row in found] == [(2, "Many", "r", "ingress")]


def test_a_revised_correlation_of_states_consumes_ended_intervals():
    with live.site() as here:
        query = EditedQuery(here)
        text = text_of(25, more=f"{OTHERS}correlate Chilled = Warm before Cool within {{}} s\n")
        rows = reading(1, "a", 26), reading(2, "a", 21), reading(3, "b", 30), reading(4, "b", 20)
        query.takes(text.format(50), *rows)
        query.forgets()
        found = query.takes(text.format(60), reading(5, "d", 5))
        found += query.takes(text.format(60), reading(6, "e", 20))
        assert [row[:4] for row in found if row[1] == "Chilled"] == [
            (5, "Chilled", "a,d", "atomic"),
            (5, "Chilled", "b,d", "atomic"),  # the watermark had not passed it
        ]


def component(high, low, more="", each="source"):
    rules = f"enter A.v > {high}\n  exit A.v < {low}\n"
    return f"{TOPIC}state Warm\n  A = avg T over 2 s each {each}\n  {rules}{more}"


BESIDE = "state Mild\n  A = avg T over 2 s each source\n  enter A.v > 15\n  exit A.v < 12\n"


@pytest.mark.parametrize("more", ["", BESIDE, MANY], ids=["alone", "beside another", "counted"])
def test_components_restart_and_active_scopes_are_unknown_until_they_decide(more):
    story = [
        (component(25, 22, more), [(1, "a", 30), (1, "b", 30), (1, "c", 30), (2, "a", 30)]),
        (component(32, 24, more), [(3, "a", 40), (3, "b", 20), (4, "a", 40), (5, "b", 20), (6, "b", 20)]),
        (component(33, 23, more), [(7, "c", 30), (8, "c", 28), (10, "a", 9), (13, "a", 9), (14, "c", 9)]),
        (component(33, 23, more), [(15, "c", 9), (16, "c", 9), (18, "c", 9)]),
    ]
    engine, out = None, []
    with live.site() as here:
        query, emitted = EditedQuery(here), []
        for text, rows in story:
            events = [reading(*row) for row in rows]
            if engine is not None:
                engine._running.latest = {}  # a live query does not store the latest readings
                out += engine.revise(text)
            engine = engine or Engine(text)
            for event in events:
                out += engine.push(event)
            emitted += query.takes(text, *events)
        assert query.holding == len(engine.holding())
    assert sorted(emitted, key=str) == as_rows(out)
    assert {"unknown", "known", "egress"} <= {row[3] for row in emitted}


@pytest.mark.parametrize("crash", live.CRASHES)
def test_a_query_that_dies_in_the_batch_of_a_restarted_component_emits_it_once(crash):
    with live.site() as here:
        query = EditedQuery(here)
        query.takes(component(25, 22), reading(1, "a", 30), reading(2, "b", 10))
        with pytest.raises(live.Crash):
            query.takes(component(32, 24), reading(3, "b", 10), crash=crash)
        emitted = {n.id: n for n in query.deliveries}
        query.takes(component(32, 24))
        found = as_rows((emitted | {n.id: n for n in query.deliveries}).values())
        assert found == [(2, "Warm", "a", "unknown", 1 * SECOND)]
        assert query.holding == 1


def test_a_component_with_changed_scopes_is_refused_and_nothing_changes():
    with live.site() as here:
        query = EditedQuery(here)
        query.takes(component(25, 22), reading(1, "a", 30), reading(2, "b", 10))
        with pytest.raises(UsageError, match="It cannot keep what is known: its scopes are others"):
            query.takes(component(25, 22, each="place"))
        assert query.takes(component(25, 22), reading(6, "a", 9), reading(8, "a", 9)) == [
            (6, "Warm", "a", "egress", 1 * SECOND)
        ]


USERS = "topic T (v float)\n"


def spot(at, source, x):
    return Event("T", at * SECOND, source, {"v": 1.0}, at, (float(x), 0.0))


def near(metres, far, pairs=""):
    band = f"when distance(a, b) <= {metres} m until distance(a, b) >= {far} m"
    return f"{USERS}relate Meet (a T, b T) {pairs} {band}\n"


@pytest.mark.parametrize("pairs", ["", 'pairs ("a", "b"), ("b", "c"), ("d", "e")'])
def test_relationships_restart_and_are_unknown_until_both_members_report(pairs):
    story = [
        (near(5, 9, pairs), [(1, "a", 0), (2, "b", 3), (2, "c", 7), (2, "d", 50), (3, "e", 53), (4, "x", 0)]),
        (near(2, 6, pairs), [(5, "a", 0), (6, "b", 1), (7, "c", 9), (8, "d", 50), (9, "x", 0)]),
        (near(2, 7, pairs), [(10, "e", 55), (11, "d", 60), (12, "e", 90), (13, "a", 9), (14, "x", 0)]),
    ]
    engine, out = None, []
    with live.site() as here:
        query, emitted = EditedQuery(here), []
        for text, rows in story:
            events = [spot(*row) for row in rows]
            out += [] if engine is None else engine.revise(text)
            engine = engine or Engine(text)
            for event in events:
                out += engine.push(event)
            emitted += query.takes(text, *events)
        assert query.holding == len(engine.holding())
    assert sorted(emitted, key=str) == as_rows(out)
    assert {"unknown", "known", "egress"} <= {row[3] for row in emitted}


def test_a_relationship_with_other_members_is_refused_if_they_meet_in_other_shards():
    with live.site() as here:
        query = EditedQuery(here)
        query.takes(near(5, 9, 'pairs ("a", "b")'), spot(1, "a", 0), spot(2, "b", 3), spot(3, "x", 1))
        with pytest.raises(UsageError, match="meets in other shards than what is known"):
            query.takes(near(5, 9, 'pairs ("a", "b"), ("b", "c")'))


def test_revised_correlations_and_folds_restart():
    text = (
        "topic T (v float, u float)\ncorrelate Both within {0} s  v > 8  u > 20\n"
        "state Warm on T [v > 5; v < 1] per source\nfold Storm = Warm cells 5 m within 40 m beyond {1}\n"
    )

    def at(second, source, v, x):
        return Event("T", second * SECOND, source, {"v": float(v), "u": float(x)}, second, (float(x), 1.0))

    story = [
        (text.format(5, 2), [at(1, "a", 9, 0), at(2, "b", 9, 6)]),
        (text.format(9, 1), [at(3, "c", 1, 30), at(4, "d", 9, 30)]),
        (text.format(9, 3), [at(5, "a", 0, 0), at(6, "b", 0, 6)]),
    ]
    engine, out = None, []
    with live.site() as here:
        query, emitted = EditedQuery(here), []
        for text, events in story:
            out += [] if engine is None else engine.revise(text)
            engine = engine or Engine(text)
            for event in events:
                out += engine.push(event)
            emitted += query.takes(text, *events)
            query.forgets()
        assert query.holding == len(engine.holding())
    assert sorted(emitted, key=str) == as_rows(out)
    assert {"revised", "atomic"} <= {row[3] for row in emitted}


@pytest.mark.parametrize("forgets", [False, True])
def test_a_count_that_is_revised_to_report_joining_members_continues(forgets):
    with live.site() as here:
        query = EditedQuery(here)
        query.takes(text_of(25, more=MANY), *(reading(1, source, 26) for source in "ab"))
        if forgets:
            query.forgets()
        joining = text_of(25, more=MANY.replace("\n", " joined\n"))
        emitted = query.takes(joining, reading(3, "d", 20)) + query.takes(joining, reading(4, "c", 26))
        emitted += query.takes(joining, reading(5, "d", 20))
        assert [row[:4] for row in emitted if row[1] == "Many"] == [(4, "Many", None, "joined")]


def test_an_additional_attribute_restarts_a_component():
    with live.site() as here:
        query = EditedQuery(here)
        query.takes(component(25, 22), reading(1, "a", 30), reading(2, "b", 10))
        more = component(25, 22).replace("v float", "v float, u float")
        assert query.takes(more, reading(3, "b", 10)) == [(2, "Warm", "a", "unknown", 1 * SECOND)]


@pytest.mark.parametrize("more", ["", " unknown after 1 h"])
@pytest.mark.parametrize("forgets", [False, True])
def test_a_member_started_by_the_same_revision_is_counted_in_its_room(more, forgets):
    text = ROOMS.replace("v > 25 for 1 readings", "v > {}").replace(" unknown after 1 h", more)
    with live.site() as here:
        query = EditedQuery(here)
        query.takes(text.format(30, 2), in_room(1, "d", 20))
        if forgets:
            query.forgets()
        query.takes(text.format(30, 2), in_room(4, "a", 26), in_room(5, "d", 20))
        found = query.takes(text.format(25, 1), in_room(6, "d", 20))
        found += query.takes(text.format(25, 1), in_room(8, "d", 20))
        found += query.takes(text.format(25, 1), in_room(9, "a", 20), in_room(10, "d", 20))
        if forgets and not more:  # of "a" nothing is known: its file is gone and it was inactive
            assert [row for row in found if row[1] == "Many"] == []
            return
        assert [row[:4] for row in found if row[1] == "Many"] == [
            (4, "Many", "r", "ingress" if forgets else "revised"),
            (9, "Many", "r", "egress"),
        ]
