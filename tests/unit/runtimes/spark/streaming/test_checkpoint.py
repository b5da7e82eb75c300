"""The checkpoint: one query at a time, a stable plan, and refusals with a remedy."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from holdfast import check, parse
from holdfast.errors import UsageError

checkpoint = pytest.importorskip("holdfast.runtimes.spark.streaming.checkpoint")
job = pytest.importorskip("holdfast.runtimes.spark.job")

TOPIC = "topic Temperature (value float)\n"
WARM = "state Warm on Temperature [value > 25; value < 22] per source\n"
HOT = "state Hot on Temperature [value > 35; value < 30.5] per source\n"
COOL = "state Cool on Temperature [value < 10; value > 12]\n"
READING = {"--source": "/inbox", "--zone": "UTC"}


@pytest.fixture
def here(tmp_path: Path):
    return checkpoint.Checkpoint(tmp_path / "checkpoint")


def plan_of(old, *subscriptions: str, reading=READING, shards=None):
    return checkpoint.plan_query(old, check(parse(TOPIC + "".join(subscriptions))), reading, shards)


def numbers(plan) -> dict[str, int]:
    """The number of the operator that serves each subscription."""
    return {name: slot.number for slot in plan.slots for names in slot.record.names for name in names}


# --- the plan ----------------------------------------------------------------------------------------


def test_conditions_with_the_same_scopes_share_a_machine():
    plan = plan_of(None, WARM, HOT, COOL)
    assert numbers(plan) == {"Warm": 0, "Hot": 0, "Cool": 1}
    assert (plan.shards, plan.next_number) == (16, 2)


def test_the_same_definition_is_the_same_plan():
    first = plan_of(None, WARM, HOT, COOL)
    assert plan_of(first, WARM, HOT, COOL) == first


def test_the_order_of_a_definition_does_not_change_the_plan():
    first = plan_of(None, WARM, HOT, COOL)
    assert plan_of(first, COOL, HOT, WARM).slots == first.slots


def test_a_new_condition_gets_its_own_machine():
    assert numbers(plan_of(plan_of(None, WARM), WARM, HOT)) == {"Warm": 0, "Hot": 1}


def test_a_machine_number_is_never_reused():
    plan = plan_of(None, WARM)
    seen = [0]
    for _ in range(3):
        plan = plan_of(plan, COOL)
        seen.append(numbers(plan)["Cool"])
        plan = plan_of(plan, WARM)
        seen.append(numbers(plan)["Warm"])
    assert seen == sorted(set(seen)), "an old state cannot return"


def test_one_of_two_conditions_that_share_a_machine_can_be_removed():
    plan = plan_of(None, WARM, HOT)
    (both,) = plan.slots
    plan = plan_of(plan, HOT)
    (left,) = plan.slots
    assert (left.number, left.record.meanings) == (both.number, both.record.meanings[1:])
    assert numbers(plan_of(plan, WARM, HOT)) == {"Hot": 0, "Warm": 1}


def test_the_running_operators_are_those_of_the_plan():
    plan = plan_of(plan_of(None, WARM, HOT), HOT, COOL)
    found = job.Job(check(parse(TOPIC + HOT + COOL)), plan.slots).operators
    assert {number: operator.record for number, operator in found.items()} == {
        slot.number: slot.record for slot in plan.slots
    }


def test_two_names_of_one_condition_can_be_added_and_removed():
    warm_too = WARM.replace("Warm", "Mild")
    plan = plan_of(None, WARM, warm_too)
    assert numbers(plan) == {"Warm": 0, "Mild": 0}
    plan = plan_of(plan, warm_too)
    assert numbers(plan) == {"Mild": 0}
    plan = plan_of(plan, WARM, warm_too)
    assert numbers(plan) == {"Mild": 0, "Warm": 1}, "what left and comes back starts afresh"


def test_a_new_condition_starts_at_the_watermark_of_its_topics():
    checked = check(parse(TOPIC + "topic Door (open bool)\n" + WARM + MEAN))
    plan = checkpoint.plan_query(None, checked, READING, None, {"Temperature": 7, "Door": 9})
    assert [slot.watermark for slot in plan.slots] == [7, 7]
    later = checkpoint.plan_query(plan, checked, READING, None, {"Temperature": 11, "Door": 12})
    assert later == plan, "those that go on started when they did"


# --- refusals ----------------------------------------------------------------------------------------


def test_the_number_of_shards_cannot_be_changed():
    query = plan_of(None, WARM, shards=4)
    assert plan_of(query, WARM).shards == 4
    assert plan_of(query, WARM, shards=4).shards == 4
    with pytest.raises(UsageError) as refused:
        plan_of(query, WARM, shards=8)
    assert str(refused.value) == (
        "--shards 8: this checkpoint has 4 shards, for good. Leave the option out, or start a new checkpoint."
    )


@pytest.mark.parametrize(
    ("reading", "message"),
    [
        ({"--source": "/other", "--zone": "UTC"}, "--source was '/inbox' and is '/other'"),
        ({"--source": "/inbox"}, "--zone was 'UTC' and is ''"),
        ({**READING, "--map": "time=ts"}, "--map was '' and is 'time=ts'"),
    ],
)
def test_changed_reading_options_are_refused(reading, message):
    query = plan_of(None, WARM)
    with pytest.raises(UsageError) as refused:
        plan_of(query, WARM, reading=reading)
    assert str(refused.value) == (
        f"{message}: that is another stream. Use what it was, or start a new checkpoint."
    )


def test_a_changed_condition_is_named_with_its_former_meaning():
    query = plan_of(None, WARM, HOT)
    with pytest.raises(UsageError) as refused:
        plan_of(query, WARM, HOT.rstrip() + " ordered 1 s\n")
    assert str(refused.value) == (
        "'Hot' has changed: its delivery was 'timely' and is 'ordered 1000000 µs, late drop'. It cannot keep "
        "what is known: it is ordered. What holds now was decided by the old definition: give the new "
        "condition a name of its own (the old one may be removed), or start a new checkpoint."
    )


def test_a_changed_state_gets_a_new_slot_that_names_the_replaced_one():
    first = plan_of(None, WARM, HOT, COOL)
    second = plan_of(first, WARM, HOT.replace("< 30.5", "< 31.5"), COOL)
    assert numbers(second) == numbers(first) | {"Hot": first.next_number}
    (slot,) = [slot for slot in second.slots if slot.replaces is not None]
    assert slot.replaces == numbers(first)["Hot"]
    assert [revision.slots for revision in second.former_definitions] == [first.slots]
    assert plan_of(second, WARM, HOT.replace("< 30.5", "< 31.5"), COOL) == second
    assert plan_of(second, WARM).former_definitions == ()


def test_an_unused_attribute_may_be_added_and_a_used_one_may_not_change():
    query = plan_of(None, WARM)
    wider, other = (
        check(parse(topic + WARM))
        for topic in (TOPIC.replace(")", ", battery float)"), TOPIC.replace("float", "int"))
    )
    assert checkpoint.plan_query(query, wider, READING, None).slots == query.slots
    with pytest.raises(UsageError, match="'Warm' has changed"):
        checkpoint.plan_query(query, other, READING, None)


def test_a_removed_name_may_get_another_meaning():
    query = plan_of(None, WARM, HOT)
    query = plan_of(query, WARM)
    assert numbers(plan_of(query, WARM, HOT.replace("< 30.5", "< 31"))) == {"Warm": 0, "Hot": 1}


# --- components --------------------------------------------------------------------------------------

MEAN = "state Mean A = avg Temperature over 1 min each source enter A.value > 25 exit A.value < 22\n"
PEAK = "state Peak A = max Temperature over 1 min each source enter A.value > 35 exit A.value < 30\n"
ANY = "state Any M = Mean enter M.status == ingress exit M.status == egress\n"


def slots_of_components(query) -> list[tuple[int, int, tuple[str, ...]]]:
    """The slots_of_components of conditions that build on others."""
    found = [(slot.number, slot.record) for slot in query.slots if slot.record.kind == "component"]
    return [(number, stored.stage, stored.key) for number, stored in found]


def test_components_are_identified_by_stage_and_key_and_can_be_added_and_removed():
    query = plan_of(None, WARM, MEAN, ANY)
    assert slots_of_components(query) == [(1, 0, ("source",)), (2, 1, ())]
    query = plan_of(query, WARM, MEAN, PEAK)
    assert slots_of_components(query) == [(1, 0, ("source",))]
    assert query.stages == 2, "what Spark keeps cannot be changed"
    query = plan_of(query, MEAN, ANY, PEAK)
    assert slots_of_components(query) == [(1, 0, ("source",)), (3, 1, ())], "a number is never used again"


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (MEAN.replace("each source", "each place"), "its key was .source.* its scopes are others"),
        (MEAN.replace("exit A.value < 22", "exit true"), "its end was .*: its scopes are others"),
        (WARM.replace("Warm", "Mean"), "it becomes a condition of another kind"),
    ],
)
def test_a_component_that_cannot_continue_is_named_with_its_former_meaning(other, words):
    with pytest.raises(UsageError, match=f"(?s)'Mean' has changed: .*{words}"):
        plan_of(plan_of(None, MEAN), other)


@pytest.mark.parametrize(
    "other",
    [
        TOPIC + MEAN.replace("1 min", "2 min"),
        TOPIC + "collide max\n" + MEAN,
        TOPIC + MEAN.rstrip() + " tick 1 s\n",
        TOPIC + MEAN.replace("each source", "each source within 5 m of (1, 2)"),
        TOPIC.replace(")", ", battery float)") + MEAN,
    ],
    ids=["a window", "how readings meet", "a tick", "a place", "an attribute more"],
)
def test_a_changed_component_restarts_in_its_slot(other):
    before = plan_of(None, MEAN, PEAK)
    after = checkpoint.plan_query(before, check(parse(other + PEAK)), READING, None)
    assert slots_of_components(after) == slots_of_components(before)
    assert after.slots[0].record.meanings[0] != before.slots[0].record.meanings[0]


def test_a_definition_that_needs_another_stage_gets_one_and_others_keep_theirs():
    query = plan_of(None, MEAN)
    after = plan_of(query, MEAN, ANY)
    assert (query.stages, after.stages) == (1, 2)
    assert slots_of_components(after) == [(0, 0, ("source",)), (1, 1, ())]
    assert plan_of(after, MEAN).stages == 2, "fewer are no reason to begin anew"


def test_a_checkpoint_with_spare_stages_accepts_a_component_that_needs_one():
    first = checkpoint.plan_query(None, check(parse(TOPIC + MEAN)), READING, None, stages=2)
    after = plan_of(first, MEAN, ANY)
    assert (first.stages, after.stages) == (2, 2)
    assert {slot.record.stage for slot in after.slots} == {0, 1}
    assert numbers(after)["Mean"] == numbers(first)["Mean"]
    for asked, stages in ((1, 2), (3, 3)):
        more = checkpoint.plan_query(after, check(parse(TOPIC + MEAN + ANY)), READING, None, stages=asked)
        assert more.stages == stages


# --- on disk -----------------------------------------------------------------------------------------


def test_a_new_checkpoint_is_empty(here):
    assert here.load() is None
    with here.lock():
        assert here.load() is None, "a lock alone is no query"


def test_a_saved_query_is_loaded_again(here):
    query = plan_of(None, WARM, HOT, COOL)
    with here.lock():
        here.save(query)
    assert here.load() == query


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "not what it should be"),
        (b"{", "not what it should be"),
        (b"[]", "not what it should be"),
        (b'{"id": 7, "shards": 16}', "not what it should be"),
        (b'{"id": "x"}', "not what it should be"),
        (b"\xff\xfe", "not what it should be"),
        (b'{"id": "x", "shards": 16, "form": 99}', "made by another version of Holdfast (format 99, not 8)"),
        (b'{"id": "x", "shards": 16, "form": 7}', "made by another version of Holdfast (format 7, not 8)"),
    ],
)
def test_a_damaged_query_is_refused(here, raw, message):
    here.folder.mkdir()
    here.query_file.write_bytes(raw)
    with pytest.raises(UsageError) as refused:
        here.load()
    assert message in str(refused.value)
    assert str(here.folder) in str(refused.value)
    assert "start a new checkpoint" in str(refused.value)


@pytest.mark.parametrize("generation", [0, 1])
def test_a_checkpoint_without_its_query_file_is_refused(here, generation):
    checkpoint.Checkpoint(here.folder, generation).spark.mkdir(parents=True)
    with pytest.raises(UsageError, match=r"query\.json is missing; put back a copy"):
        here.load()


def test_a_query_that_died_before_it_had_a_plan_starts_new(here):
    here.folder.mkdir()
    here.ledger.touch()
    here.log.touch()
    assert here.load() is None


def test_a_checkpoint_is_locked_by_one_query_at_a_time(here):
    with here.lock():
        assert here.is_locked()
        with pytest.raises(UsageError, match="another 'holdfast run' uses this checkpoint"), here.lock():
            pass
        assert here.is_locked(), "asking does not take the lock away"
    assert not here.is_locked()
    with here.lock():
        pass


def test_a_query_that_died_releases_the_lock(here):
    with pytest.raises(RuntimeError), here.lock():
        raise RuntimeError
    assert not here.is_locked()


def test_a_path_that_cannot_be_a_checkpoint_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UsageError, match="choose another place"), checkpoint.Checkpoint(place).lock():
            pass


def test_the_list_of_waiting_files_is_saved_and_replaced(here):
    here.folder.mkdir()
    here.save_waiting(["a.parquet"], ["b.tmp"])
    assert msgspec.json.decode(here.waiting.read_bytes()) == {
        "incomplete": ["a.parquet"],
        "unknown": ["b.tmp"],
    }
    first = here.waiting.stat().st_ino
    here.save_waiting(["a.parquet"], ["b.tmp"])
    assert here.waiting.stat().st_ino == first, "nothing new, nothing written"
    here.save_waiting([], [])
    assert msgspec.json.decode(here.waiting.read_bytes()) == {"incomplete": [], "unknown": []}


def test_more_than_64_correlations_keep_their_machine_when_one_is_removed():
    def of(numbers):
        some = (f"correlate C{i} within 2 min\n  value >= {i}\n  speed < {i}\n" for i in numbers)
        return ["topic Wind (speed float)\n", *some]

    def places(plan, some):
        """The machine and the slot of each correlation."""
        running = job.Job(check(parse(TOPIC + "".join(some))), plan.slots).operators
        return {
            name: (number, one.key, one.meanings[i])
            for number, one in running.items()
            for i, names in enumerate(one.names)
            for name in names
        }

    first = plan_of(None, *of(range(70)))
    before = places(first, of(range(70)))
    assert len({number for number, *_ in before.values()}) == 2
    for gone in (0, 40, 69):
        rest = of(i for i in range(70) if i != gone)
        after = places(plan_of(first, *rest), rest)
        assert after == {name: at for name, at in before.items() if name != f"C{gone}"}


@pytest.mark.parametrize("form", [1, 5])
def test_a_checkpoint_of_another_version_is_refused_with_a_remedy(here, form):
    with here.lock():
        here.save(msgspec.structs.replace(plan_of(None, WARM), form=form))
    with pytest.raises(UsageError) as refused:
        here.load()
    assert f"{here.folder}: made by another version of Holdfast (format {form}, not " in str(refused.value)
    assert "end that query with the version that made it (--finish)" in str(refused.value)
