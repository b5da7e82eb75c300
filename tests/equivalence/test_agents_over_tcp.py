"""Agents on brokers that talk over TCP, with a connection that is lost and comes back."""

from __future__ import annotations

from holdfast.model.instant import SECOND
from holdfast.network.overlay.shipped.pool import WorkerBounds
from holdfast.network.protocols.agents.code_store import digest_of
from holdfast.network.protocols.agents.library import active_bundle
from holdfast.network.protocols.agents.shipped import STARLARK
from holdfast.network.protocols.cbps.client import SubmissionRefused, Submit
from support.agents import oracle, relationship_of, walks
from support.agents_on_tcp import AgentsOnTcp
from support.agents_on_tcp import run as run_in

LOOP = "def start(me, others, relation):\n    for i in range(1 << 30):\n        pass\n"
ALLOWED = (digest_of(LOOP),)
BOUNDS = WorkerBounds(wall=SECOND // 2)
MEET = relationship_of("""topic User ()
relate Meet (a User, b User) pairs ("ann", "bob")
  when distance(a, b) <= 10 m until distance(a, b) >= 30 m""")


def run(story, **options):
    run_in(AgentsOnTcp(MEET, allowed=ALLOWED, bounds=BOUNDS, **options), story)


def test_agents_report_the_results_of_the_machine():
    events = walks(("ann", "bob"), 30, 3, size=40.0, together=0.0, step=8.0)

    async def story(world):
        for event in events:
            await world.say(event)
        assert world.rows() == oracle(MEET, events)

    run(story)


def test_a_lost_connection_is_reported_and_the_state_is_restored():
    async def story(world):
        together = walks(("ann", "bob"), 3, 1, size=4.0, together=0.0, idle=0.0)
        for event in together:
            await world.say(event)
        assert [c["status"] for c in world.emissions()] == ["ingress"]
        hub = world.nodes[0]
        next(link for name, link in hub.links.items() if name == "west")._transport.abort()
        await world.until(lambda: world.statuses() == ["ingress", "unknown"])
        await world.until(
            lambda: len(world.agents()) == 2 and all(one.ways_to_partners for one in world.agents())
        )
        for event in walks(("ann", "bob"), 5, 2, size=4.0, together=0.0, idle=0.0)[6:]:
            await world.say(event)
        assert world.statuses() == ["ingress", "unknown", "ingress"]

    run(story)


def test_agents_survive_the_end_and_replacement_of_a_broker():
    """The relationship is unknown then. Once both have reported, what is certain is notified."""

    async def story(world):
        for event in walks(("ann", "bob"), 3, 1, size=4.0, together=0.0, idle=0.0):
            await world.say(event)
        assert world.statuses() == ["ingress"]
        await world.restart()
        await world.until(lambda: world.statuses() == ["ingress", "unknown"])
        await world.until(
            lambda: len(world.agents()) == 2 and all(one.ways_to_partners for one in world.agents())
        )
        for event in walks(("ann", "bob"), 5, 2, size=4.0, together=0.0, idle=0.0)[6:]:
            await world.say(event)
        assert world.statuses() == ["ingress", "unknown", "ingress"]

    run(story)


def test_an_endless_agent_is_stopped_while_other_agents_continue():
    """An operator has allowed an endless loop. Its subscriber receives the reason for the end, others all
    reports."""
    events = walks(("ann", "bob"), 20, 3, size=40.0, together=0.0, step=8.0)

    async def story(world):
        mallory, received = await world.subscriber("mallory")
        mallory.ask(Submit(active_bundle("Loop", MEET.relation, STARLARK, code=LOOP), "loop", LOOP))
        for event in events:
            await world.say(event)
        assert world.rows() == oracle(MEET, events)
        await world.until(lambda: any(isinstance(what, SubmissionRefused) for what in received))
        (refused,) = [what for what in received if isinstance(what, SubmissionRefused)]
        assert refused.name == "loop"
        assert "took longer than 0.5 s" in refused.why
        await world.until(lambda: len(world.agents()) == 2)

    run(story)
