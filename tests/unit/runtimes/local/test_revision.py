"""An edit with a history: of files, of topics that have gone, for what is muted; and what is no history."""

from __future__ import annotations

import pytest

from holdfast import Engine, Event, UsageError, replay

HEAD = "topic T (v float)\ntopic U (v float)\n"
WARM = "state Warm on T [v > {}; v < 22] per source\n"
NEAR = "state Near\n  A = max T over 10 s\n  B = latest U\n  enter A.v > 25 && B.v > 1\n  exit B.v < 1\n"


def rows(topic, *pairs):
    return "".join(f"2020-01-01T00:00:{at:02},{topic},{source},{v}\n" for at, source, v in pairs)


@pytest.fixture
def files(tmp_path):
    """Readings of two topics, in two files, neither in order."""
    head = "time,topic,source,v\n"
    late = rows("T", (40, "a", 23), (30, "b", 30)) + rows("U", (35, "u", 0.5))
    early = rows("U", (12, "u", 2), (5, "u", 3)) + rows("T", (20, "b", 20), (10, "a", 26), (11, "b", 25.5))
    (tmp_path / "1.csv").write_text(head + late)
    (tmp_path / "2.csv").write_text(head + early)
    return str(tmp_path)


def test_readings_of_files_are_merged_in_order_across_topics(files):
    text = HEAD + WARM.format(25)
    times = [at for _, batch in replay(text, files).readings() for at in batch.column("time").to_pylist()]
    assert len(times) == 8
    assert times == sorted(times)


@pytest.mark.parametrize("new", [WARM.format(25.7), WARM.format(25), WARM.format(24) + NEAR, NEAR])
def test_a_revision_is_decided_by_files(files, new):
    old = HEAD + WARM.format(25)
    engine, ideal = Engine(old), Engine(HEAD + new)
    for one in (engine, ideal):
        for topic, batch in replay(old, files).readings():
            one.push_batch(topic, batch)
    engine.revise(HEAD + new, replay(old, files).readings())
    assert engine.holding() == ideal.holding()
    assert engine.unknown() == ideal.unknown()


def test_removed_topics_are_ignored_in_a_history():
    engine = Engine(HEAD + WARM.format(25))
    events = [Event("U", 1, "u", {"v": 1.0}), Event("T", 2, "a", {"v": 26.0})]
    for event in events:
        engine.push(event)
    output = engine.revise("topic T (v float)\n" + WARM.format(27), events)
    assert [(n.scope, n.status, n.since) for n in output] == [("a", "revised", None)]


def test_removed_attributes_are_ignored_and_unknown_ones_are_refused():
    engine = Engine("topic T (v float, w float)\n" + WARM.format(25))
    event = Event("T", 2, "a", {"v": 26.0, "w": 1.0})
    engine.push(event)
    with pytest.raises(UsageError, match="has no 'other'"):
        engine.revise(
            "topic T (v float)\n" + WARM.format(27), [Event("T", 2, "a", {"v": 26.0, "other": 1.0})]
        )
    output = engine.revise("topic T (v float)\n" + WARM.format(27), [event])
    assert [(n.scope, n.status, n.since) for n in output] == [("a", "revised", None)]


def test_a_condition_that_starts_by_the_current_watermark_is_reported_with_its_reading():
    long = HEAD + "state Long on T [v > {} for 10 s; v < 22] per source\n"
    engine = Engine(long.format(25))
    event = Event("T", 1_000_000, "a", {"v": 24.0})
    engine.push(event)
    engine.advance(60_000_000)
    (output,) = engine.revise(long.format(23), [event])
    assert (output.status, output.since, output.event.attributes) == ("revised", 11_000_000, {"v": 24.0})


def test_a_muted_condition_reports_a_revision_when_the_mute_ends():
    text = HEAD + WARM + "state Off on U [v > 0; v < 1]\nmute Warm while Off\n"
    engine = Engine(text.format(25))
    events = [
        Event("U", 1, "u", {"v": 1.0}),
        Event("T", 2, "a", {"v": 24.0}),
        Event("T", 3, "a", {"v": 24.0}),
    ]
    for event in events:
        engine.push(event)
    assert engine.revise(text.format(23), events) == []
    assert [one.subscription for one in engine.holding()] == ["Off", "Warm"]


@pytest.mark.parametrize("wrong", [[7.5], ["T"], [("T",)], [None]])
def test_an_invalid_history_is_refused_and_changes_nothing(wrong):
    engine = Engine(HEAD + WARM.format(25))
    engine.push(Event("T", 1, "a", {"v": 26.0}))
    with pytest.raises(UsageError, match="a history has events, batches"):
        engine.revise(HEAD + WARM.format(27), wrong)
    assert [one.scope for one in engine.holding()] == ["a"]
