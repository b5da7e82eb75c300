"""EATDDS: the role of rendezvous node moves without any loss."""

from __future__ import annotations

import pytest

from holdfast.errors import UsageError
from holdfast.model.instant import SECOND
from holdfast.network.protocols.dds import message, request
from holdfast.network.protocols.dds.cluster import elect
from holdfast.network.protocols.dds.deployment import RotationSettings
from holdfast.network.protocols.dds.interest import FieldConstraint
from holdfast.network.protocols.dds.level import FULL
from holdfast.network.protocols.dds.message import DataMessage
from support.motes import Motes, deployment, publishing, subscribe

TERMS = RotationSettings(round=30 * SECOND, reports=20 * SECOND, sign=10 * SECOND, settle=3 * SECOND)
NODES = ("p", "q", "r", "s", "t", "x")


def motes(level: float = FULL, **more) -> Motes:
    return Motes(deployment(level, mode="EATDDS", publishers=("p", "q"), rotation=TERMS, **more), NODES)


def energies(found: Motes, **joules: float) -> None:
    for node in NODES:
        found.ask(node, request.ResidualEnergy(joules.get(node, 0.1)))


def holder(found: Motes) -> list[str]:
    return [node for node in NODES if node in found.states and 0 in found.states[node].rendezvous]


def test_the_node_of_the_cluster_with_most_energy_is_nominated_at_the_end_of_the_round():
    """[D48, D49] Not x, which has most of all and neither publishes nor subscribes."""
    found = motes()
    subscribe(found, "s")
    found.at(25 * SECOND, lambda: energies(found, r=0.5, s=0.8, q=0.6, x=0.9))
    found.run(29 * SECOND)
    assert holder(found) == ["r"]
    found.run(31 * SECOND)
    assert holder(found) == ["s"]


def test_rounds_are_started_by_the_main_rendezvous_node_and_common_to_all():
    """[D48] Hand-overs take a while, and three rounds later the fourth still begins at 120 s."""
    found = motes()
    subscribe(found, "s")
    for at, best in ((25, "q"), (55, "s"), (85, "p"), (115, "q")):
        found.at(at * SECOND, lambda best=best: energies(found, **{best: 0.9}))
    found.loses = lambda a, b, m: isinstance(m, message.DdsTaken) and found.now % (30 * SECOND) < 2 * SECOND
    found.run(125 * SECOND)
    started = [(at, sender, to) for at, sender, to, _ in found.sent(message.NewRound)]
    assert started == [(60 * SECOND, "r", "q"), (90 * SECOND, "r", "s"), (120 * SECOND, "r", "p")]
    assert holder(found) == ["q"]


def test_rounds_continue_half_a_round_later_without_a_main_rendezvous_node():
    found = motes()
    subscribe(found, "s")
    found.at(25 * SECOND, lambda: energies(found, q=0.9))
    found.at(35 * SECOND, lambda: found.kill("r"))
    found.at(65 * SECOND, lambda: energies(found, s=0.9))
    found.run(74 * SECOND)
    assert holder(found) == ["q"]
    found.run(77 * SECOND)
    assert holder(found) == ["s"]


def test_all_nodes_or_only_candidates_report_to_every_rendezvous_node():
    """[D47]"""
    for reporters, expected in (("all", {"p", "q", "s", "t", "x"}), ("cluster", {"p", "q", "s"})):
        found = Motes(
            deployment(mode="EATDDS", publishers=("p", "q"), rotation=RotationSettings(reporters=reporters)),
            NODES,
        )
        subscribe(found, "s")
        energies(found)
        assert {who for _, who, _, _ in found.sent(message.EnergyUpdate)} == expected


def test_samples_flow_through_the_holder_of_the_role_and_subscribers_are_handed_over():
    found = motes()
    subscribe(found, "s")
    subscribe(found, "t", where=(FieldConstraint("value", ">", 20),))
    for at, best in ((25, "q"), (55, "t"), (85, "p")):
        found.at(at * SECOND, lambda best=best: energies(found, **{best: 0.9}))
    last = publishing(found, range(90))
    found.run(last + 5 * SECOND)
    assert found.readings("s") == list(range(90))
    assert found.readings("t") == list(range(21, 90))
    forwarded = {sender for _, sender, _, data in found.sent(DataMessage) if data.forwarded}
    assert forwarded == {"r", "q", "t", "p"}
    assert holder(found) == ["p"]
    assert not [1 for at, *_ in found.sent(message.DdsSubscribe) if at > 12 * SECOND], (
        "nobody subscribed again"
    )


def test_a_table_that_does_not_fit_one_message_is_sent_in_pieces():
    names = tuple(f"s{i}" for i in range(11))
    found = Motes(deployment(FULL, mode="EATDDS", rotation=TERMS), ("p", "r", *names))
    for node in names:
        subscribe(found, node)
    found.at(
        25 * SECOND,
        lambda: [found.ask(n, request.ResidualEnergy(0.9 if n == "p" else 0.1)) for n in ("p", "r")],
    )
    found.loses = lambda a, b, m: isinstance(m, message.DdsTaken) and found.now < 31 * SECOND
    found.run(publishing(found, [1], start=40 * SECOND) + SECOND)
    pieces = {piece.number: len(piece.wishes) for _, _, _, piece in found.sent(message.TableHandover)}
    assert pieces == {0: 4, 1: 4, 2: 3}
    assert all(found.readings(node) == [1] for node in names)


def test_a_nominee_that_does_not_answer_is_passed_over():
    found = motes()
    subscribe(found, "s")
    found.at(25 * SECOND, lambda: energies(found, q=0.9, s=0.8))
    found.at(26 * SECOND, lambda: found.kill("q"))
    found.run(40 * SECOND)
    assert holder(found) == ["s"]


def test_a_late_joiner_finds_the_rendezvous_node_of_the_round():
    found = motes()
    subscribe(found, "s")
    found.at(25 * SECOND, lambda: energies(found, q=0.9))
    last = publishing(found, range(40))
    found.at(50 * SECOND, lambda: subscribe(found, "t"))
    found.run(last + SECOND)
    assert found.readings("t") == list(range(31, 40))


def test_a_late_joiner_finds_the_current_rendezvous_node_even_if_the_main_one_is_dead():
    found = motes()
    subscribe(found, "s")
    found.at(25 * SECOND, lambda: energies(found, q=0.9))
    found.at(35 * SECOND, lambda: found.kill("r"))
    last = publishing(found, range(50))
    found.at(50 * SECOND, lambda: subscribe(found, "t"))
    found.run(last + SECOND)
    assert found.readings("t")[-5:] == [45, 46, 47, 48, 49]
    assert found.readings("s") == list(range(50))


@pytest.mark.parametrize("victims", [("r",), ("q", "r")])
def test_when_the_rendezvous_node_dies_a_successor_takes_its_place(victims):
    """Even the second: then the first publisher that is alive; the sample that waited is delivered."""
    found = motes()
    subscribe(found, "s")
    if len(victims) == 2:
        found.at(25 * SECOND, lambda: energies(found, q=0.9))
    found.at(38 * SECOND, lambda: [found.kill(victim) for victim in victims])
    last = publishing(found, range(30), every=5 * SECOND)
    found.run(last + 60 * SECOND)
    assert holder(found) == ["p"]
    taken = [what.values["value"] for _, what in found.of(request.SampleAccepted)]
    assert len(taken) == 30
    assert found.readings("s") == taken


def test_a_successor_sends_no_acks_until_subscribers_had_time_to_subscribe():
    """The first subscriptions after the call get lost; still no sample is acknowledged without its reader."""
    found = motes()
    subscribe(found, "s")

    def loses(sender: str, to: str, what: object) -> bool:
        calls = [at for at, _, _, role in found.sent(message.Role) if role.fresh]
        return isinstance(what, message.DdsSubscribe) and bool(calls) and found.now < calls[0] + 2 * SECOND

    found.loses = loses
    found.at(38 * SECOND, lambda: found.kill("r"))
    found.run(publishing(found, range(20), every=5 * SECOND) + 60 * SECOND)
    assert found.readings("s") == [what.values["value"] for _, what in found.of(request.SampleAccepted)]


def test_a_restarted_main_rendezvous_node_learns_the_current_holder():
    found = motes()
    subscribe(found, "s")
    found.at(25 * SECOND, lambda: energies(found, q=0.9))
    found.at(40 * SECOND, lambda: found.kill("r"))
    found.at(45 * SECOND, lambda: found.start("r"))
    last = publishing(found, range(60))
    found.run(45 * SECOND + SECOND // 10)
    assert holder(found) == ["q"], "at once, before it acknowledges anything"
    found.run(last + SECOND)
    assert found.states["r"].roles[0].node == "q"
    assert found.readings("s") == list(range(60))


def test_a_rendezvous_node_that_forgot_its_role_takes_it_again_and_requests_subscriptions():
    """q has the role and is restarted: it knows only that the main RN should have it."""
    found = motes()
    subscribe(found, "s")
    found.at(25 * SECOND, lambda: energies(found, q=0.9))
    found.at(40 * SECOND, lambda: found.kill("q"))
    found.at(41 * SECOND, lambda: found.start("q"))
    last = publishing(found, range(15), every=6 * SECOND)
    found.run(last + 30 * SECOND)
    assert holder(found) == ["q"]
    assert found.readings("s") == [what.values["value"] for _, what in found.of(request.SampleAccepted)]


def test_main_and_present_rendezvous_node_may_be_restarted_at_the_same_time():
    """Neither knows anything; the publisher knows who had the role, and nothing is acknowledged too early."""
    found = motes()
    subscribe(found, "s")
    found.at(25 * SECOND, lambda: energies(found, q=0.9))
    for at, act in ((40, found.kill), (50, found.start)):
        found.at(at * SECOND, lambda act=act: [act("r"), act("q")])
    last = publishing(found, range(20), every=5 * SECOND)
    found.run(last + 30 * SECOND)
    assert holder(found) == ["q"]
    assert found.readings("s") == [what.values["value"] for _, what in found.of(request.SampleAccepted)]


def test_a_subscriber_missing_from_all_tables_subscribes_again():
    """Signs of life go to those in the table; a subscriber without them for long is in no table."""
    found = motes()
    subscribe(found, "s")
    found.at(30 * SECOND, lambda: found.states["r"].rendezvous[0].registry.wishes.clear())
    last = publishing(found, range(100))
    found.run(last + SECOND)
    assert found.readings("s")[-30:] == list(range(70, 100))


def test_two_nodes_that_claim_the_role_agree_on_the_later_term():
    """A hand-over whose last answer never arrives leaves two; the announcement settles it."""
    found = motes()
    subscribe(found, "s")
    found.loses = lambda a, b, m: (
        b == "r" and isinstance(m, message.DdsTaken | message.Role) and found.now < 50 * SECOND
    )
    found.at(25 * SECOND, lambda: energies(found, q=0.9, s=0.5))
    last = publishing(found, range(60))
    found.run(last + SECOND)
    assert len(holder(found)) == 1
    assert found.readings("s") == list(range(60))


def test_the_nearest_of_nodes_with_similar_energy_is_elected():
    """[D51]"""
    places = {"a": (0.0, 0.0), "b": (50.0, 50.0), "c": (1.0, 1.0)}
    assert elect({"a": 0.79, "b": 0.8, "c": 0.795}, 0.05, places, list(places)) == "c"
    assert elect({"a": 0.79, "b": 0.8, "c": 0.795}, 0.0, places, list(places)) == "b"


def test_the_node_with_most_energy_is_elected_among_equally_placed_ones():
    step = 100 / 6
    places = {f"{row},{column}": (column * step, row * step) for row in range(7) for column in range(7)}
    around = [("2,3", "4,3", "3,2", "3,4"), ("1,1", "1,5", "5,1", "5,5"), ("0,2", "2,0", "4,6", "6,4")]
    for alike in around:
        for best in alike:
            energies = {node: 0.9 if node == best else 0.8 for node in alike}
            assert elect(energies, 0.3, places, list(places)) == best


def test_an_impossible_rotation_is_refused():
    with pytest.raises(UsageError, match="above 0"):
        RotationSettings(round=0)
