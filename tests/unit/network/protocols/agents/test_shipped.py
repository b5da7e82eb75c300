"""Strategies that a subscriber ships give the results of the relation machine, and may do nothing else."""

from __future__ import annotations

from importlib.resources import files

import pytest

from holdfast.errors import UsageError
from holdfast.model.instant import SECOND
from holdfast.network.protocols.agents.code_store import LONGEST, MOST, CodeStore, digest_of
from holdfast.network.protocols.agents.shipped import (
    BURST,
    STARLARK,
    ShippedAgent,
    ShippedMessage,
    WorkerResult,
)
from holdfast.network.protocols.cbps.client import SubmissionRefused
from holdfast.network.protocols.cbps.message import CodeRequest, CodeText
from support.agents import oracle, relationship_of, walks
from support.agents_in_memory import AgentsInMemory

RING = files("holdfast").joinpath("examples/agents/ring.star").read_text()
MEET = relationship_of("""topic User ()
relate Meet (a User, b User) pairs ("ann", "bob")
  when distance(a, b) <= 10 m until distance(a, b) >= 30 m""")


def world_of(*, code=RING, **options):
    return AgentsInMemory(MEET, ("ann", "bob"), STARLARK, code=code, **options)


@pytest.mark.parametrize("seed", [4, 5, 7])
def test_a_shipped_ring_reports_the_results_of_the_machine(seed):
    world = world_of(seed=seed)
    events = walks(("ann", "bob"), 40, seed, together=0.0, size=40.0, step=8.0)
    for event in events:
        world.say(event)
    rows = world.rows()
    assert rows == oracle(MEET, events)
    assert rows


def test_code_is_requested_where_it_is_needed_and_once_over_each_link():
    """T24: what a second subscription carries over the same links is the digest alone."""
    world = world_of()
    texts = [(a, b) for a, b, message in world.sent if isinstance(message, CodeText)]
    assert sorted(texts) == [("hub", "east"), ("hub", "west"), ("subscriber", "hub")]
    world.watch("another", RING)
    assert len(world.agents()) == 4
    assert [message for *_, message in world.sent if isinstance(message, CodeText)] == [
        CodeText(digest_of(RING), RING)
    ] * 3


def test_code_without_permission_is_not_requested_and_the_subscriber_is_informed():
    world = world_of(allowed=())
    assert not world.agents()
    assert not [message for *_, message in world.sent if isinstance(message, CodeRequest | CodeText)]
    (refused,) = {(what.name, what.why) for what in world.deliveries() if isinstance(what, SubmissionRefused)}
    assert refused[0] == "relation"
    assert f"--allow-code {digest_of(RING)}" in refused[1]


def test_code_with_a_wrong_digest_is_not_run():
    other = "def start(me, others, relation):\n    return {}\n"
    codes = CodeStore(requested_from={"1234": "hub"})
    assert codes.store("1234", other, "hub") is None  # it is another text
    codes = CodeStore(requested_from={digest_of(other): "hub"})
    assert codes.store(digest_of(other), other, "mallory") is None  # who was not asked
    assert codes.store(digest_of(other), other, "hub") == []
    assert codes.get(digest_of(other)) == other


def test_stored_code_is_bounded():
    codes = CodeStore()
    for i in range(2 * MOST // LONGEST):
        text = f"# {i}".ljust(LONGEST)
        codes.requested_from[digest_of(text)] = "hub"
        codes.store(digest_of(text), text, "hub")
    assert sum(map(len, codes.texts.values())) <= MOST
    assert digest_of(text) in codes.texts


def test_an_agent_that_floods_is_ended_and_the_subscriber_is_informed():
    world = world_of()
    east = world.net.nodes["east"]
    (hosted,) = east.state.agents.values()
    world.net.ask("east", WorkerResult(hosted.peer, ({"say": "bob", "message": 1},) * (BURST + 1)))
    world.settle()
    (refused,) = [what for what in world.deliveries() if isinstance(what, SubmissionRefused)]
    assert "sends more than" in refused.why
    assert not world.agents()  # the subscription is withdrawn


@pytest.mark.parametrize(
    "want",
    [
        {"say": "eve", "message": 1},
        {"say": "bob", "message": "x" * 5_000},
        {"report": "atomic", "by": "ann", "value": 1.0},
        {"report": "ingress", "by": "ann", "value": 1.0, "reading": {"time": "now"}},
        {"open": "/etc/passwd"},
        17,
    ],
)
def test_forbidden_outputs_of_an_agent_are_refused(want):
    agent = ShippedAgent("ann", ("bob",), MEET.relation)
    with pytest.raises(UsageError):
        agent.check_outputs((want,), 0)


def test_a_limited_agent_may_send_again_after_a_while():
    agent = ShippedAgent("ann", ("bob",), MEET.relation)
    word = {"say": "bob", "message": {"x": 1.5}}
    assert agent.check_outputs((word,) * BURST, 0)[0].message == ShippedMessage('{"x":1.5}')
    with pytest.raises(UsageError):
        agent.check_outputs((word,) * 11, SECOND // 10)
    agent = ShippedAgent("ann", ("bob",), MEET.relation)
    agent.check_outputs((word,) * BURST, 0)
    assert len(agent.check_outputs((word,) * 10, SECOND // 10)) == 10
