"""A query that needs more stages than it has goes on with them, whatever dies on the way."""

from __future__ import annotations

import json

import pytest

from holdfast import Engine, UsageError, check, parse
from support.stages import SECOND, STAGES, part, reading

live = pytest.importorskip("support.live")
query = pytest.importorskip("holdfast.runtimes.spark.streaming.query")
damage = pytest.importorskip("holdfast.runtimes.spark.streaming.damage")


class GenerationStory:
    """A query and an engine with the same input and the same sequence of definitions."""

    def __init__(self, here, sink="jsonl"):
        self.here, self.sink, self.parts = here, f"{sink}:{here.folder / 'out'}", 0
        self.engine, self.expected = None, []

    def stream(self, text, **how):
        return live.Stream(self.here.live(parse(text), sink=self.sink, shards=3, **how))

    def arrives(self, text, events=None):
        """Let a file arrive, and push its events to the engine."""
        events = events or part(self.parts)
        self.parts += 1
        self.here.put(f"{self.parts}.parquet", check(parse(text)).topics[0], events)
        if self.engine is not None:
            self.engine._running.latest = {}  # a live query does not store the latest readings
            self.expected += self.engine.revise(text)
        self.engine = self.engine or Engine(text)
        for event in events:
            self.expected += self.engine.push(event)

    def takes(self, text, crash=None):
        self.arrives(text)
        self.stream(text).run(crash)

    def ids_written(self):
        return sorted(json.loads(line)["id"] for line in (self.here.folder / "out").read_text().splitlines())

    def same(self):
        """Whether the query and the engine emitted the same ids, each once."""
        assert {n.subscription for n in self.expected} >= {"Warm", "Hot", "Floor"}
        return self.ids_written() == sorted(n.id for n in self.expected)


def folders(here):
    return sorted(path.name for path in here.checkpoint.iterdir() if path.is_dir())


def test_changing_the_number_of_stages_emits_what_an_engine_emits():
    with live.site() as here:
        story = GenerationStory(here)
        for text in (*STAGES, STAGES[2], STAGES[1], STAGES[0], STAGES[2]):
            story.takes(text)
            story.takes(text)
        assert story.same()
        assert folders(here) == ["spark-2"], "the shards have what was kept"
        assert story.stream(STAGES[2]).record.holding == len(story.engine.holding())


def test_batch_numbers_continue_across_generations():
    with live.site() as here:
        story = GenerationStory(here, "parquet")
        for text in STAGES:
            story.takes(text)
        names = sorted(path.name for path in (here.folder / "out").iterdir() if path.is_dir())
        assert names == ["batch-000000000", "batch-000000001", "batch-000000002"]


@pytest.mark.parametrize("crash", live.CRASHES)
def test_a_query_that_dies_before_or_after_a_new_generation_emits_everything_once(crash):
    """A query that has had the stages from the beginning does the same."""

    def emitted_with(**how):
        with live.site() as here:
            story = GenerationStory(here)
            story.arrives(STAGES[0])
            story.stream(STAGES[0], **how).run()
            for text in STAGES:
                story.arrives(text)
                with pytest.raises(live.Crash):
                    story.stream(text).run(crash)
            story.stream(STAGES[2]).run()
            story.takes(STAGES[2])
            return story.ids_written()

    assert emitted_with() == emitted_with(stages=3)
    assert len(emitted_with()) == len(set(emitted_with()))


def test_a_query_that_dies_during_the_hand_over_is_unchanged(monkeypatch):
    with live.site() as here:
        story = GenerationStory(here)
        story.takes(STAGES[0])
        before = (here.checkpoint / "query.json").read_bytes()
        monkeypatch.setattr(live, "hand_over", dying(live.hand_over))
        with pytest.raises(live.Crash):
            story.stream(STAGES[1])
        monkeypatch.undo()
        assert (here.checkpoint / "query.json").read_bytes() == before
        assert folders(here) == ["spark", "states-1"]
        story.takes(STAGES[0])
        assert folders(here) == ["spark"], "what was left is removed"
        story.takes(STAGES[1])
        assert story.same()


def test_a_query_that_dies_after_the_hand_over_continues_from_there(monkeypatch):
    with live.site() as here:
        story = GenerationStory(here)
        story.takes(STAGES[0])
        monkeypatch.setattr(query, "remove_old_generations", dying(lambda *_: None))
        with pytest.raises(live.Crash):
            story.stream(STAGES[1])
        monkeypatch.undo()
        assert folders(here) == ["spark", "states-1"]
        story.takes(STAGES[1])
        assert folders(here) == ["spark-1", "states-1"]
        assert story.same()


def dying(act):
    """Do it, and die."""

    def then(*args):
        act(*args)
        raise live.Crash

    return then


def test_stages_added_before_the_first_batch_receive_the_state():
    with live.site() as here:
        story = GenerationStory(here)
        story.stream(STAGES[0])
        story.stream(STAGES[1])  # of nothing
        assert folders(here) == ["spark-1", "states-1"]
        story.takes(STAGES[1])
        story.stream(STAGES[2])
        story.stream(STAGES[2], stages=4)  # no batch between
        assert folders(here) == ["spark-3", "states-3"]
        story.takes(STAGES[2])
        assert story.same()


def test_stages_added_without_input_are_there_when_input_arrives():
    """Spark does a first batch though there is nothing to read."""
    with live.site() as here:
        story = GenerationStory(here)
        story.takes(STAGES[0])
        for text in (STAGES[1], STAGES[2]):
            story.stream(text).run()
            story.stream(text).run()
        assert folders(here) == ["spark-2"]
        story.takes(STAGES[2])
        story.takes(STAGES[2])
        assert story.same()
        assert story.stream(STAGES[2]).record.holding == len(story.engine.holding())


ENDED = """
state Ended
  W = Warm each floor
  enter W.valid && W.status == egress
  exit W.valid && W.status == ingress
"""


@pytest.mark.parametrize("stages", [None, 2], ids=["at a stage more", "at a stage it has"])
def test_a_component_added_at_a_later_stage_consumes_the_end_of_active_scopes(stages):
    """An engine has one machine for all components."""
    with live.site() as here:
        story = GenerationStory(here)
        story.arrives(STAGES[0], [reading(at, "a1", value) for at, value in enumerate((10, 40, 40, 40))])
        story.stream(STAGES[0], stages=stages).run()
        values = (10, 10, 10, 40, 40, 40, 10, 10, 10)
        text = STAGES[0] + ENDED
        story.arrives(text, [reading(at, "a1", value) for at, value in enumerate(values, 4)])
        story.stream(text).run()
        emitted_with = story.ids_written()
        ended = [note for note in story.expected if note.subscription == "Ended"]
        output = [(note.status, note.event.time // SECOND, note.id in emitted_with) for note in ended]
        assert output == [("ingress", 5, True), ("egress", 8, True), ("ingress", 11, True)]
        assert len(emitted_with) == len(story.expected)


@pytest.mark.parametrize("place", ["states-1", "spark-2", "spark/out"])
def test_a_sink_inside_a_generation_folder_is_refused(place):
    with live.site() as here:
        story = GenerationStory(here)
        story.takes(STAGES[0])
        here.checkpoint.joinpath(place).parent.mkdir(exist_ok=True)
        story.sink = f"parquet:{here.checkpoint / place}"
        with pytest.raises(UsageError, match=f"{place} lies where the checkpoint removes what is over"):
            story.stream(STAGES[0])
        story.sink = f"parquet:{here.checkpoint / 'states'}"
        story.stream(STAGES[0])


def test_a_lost_hand_over_is_detected():
    with live.site() as here:
        story = GenerationStory(here)
        story.takes(STAGES[0])
        plan = story.stream(STAGES[1])._plan
        checkpoint = live.Checkpoint(here.checkpoint, 1)
        damage.require_whole(checkpoint, plan.generation)
        name = sorted(plan.generation.states)[0]
        stored = (checkpoint.states / name).read_bytes()
        (checkpoint.states / name).write_bytes(stored[:-1])
        with pytest.raises(UsageError, match=f"states-1/{name}: damaged, and a shard is to go on from it"):
            damage.require_whole(checkpoint, plan.generation)
        (checkpoint.states / name).unlink()
        with pytest.raises(UsageError, match=f"states-1/{name}: missing, and a shard is to go on from it"):
            damage.require_whole(checkpoint, plan.generation)
        (checkpoint.states / name).write_bytes(stored)
        here.checkpoint.joinpath("files.jsonl").unlink()
        with pytest.raises(UsageError, match=r"files\.jsonl: it has 0 of the 1 files"):
            damage.require_whole(checkpoint, plan.generation)
