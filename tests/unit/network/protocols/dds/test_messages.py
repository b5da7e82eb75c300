"""Messages: how long they are on a mote, whether they survive the wire, and when they are sent."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.errors import UsageError
from holdfast.model.instant import SECOND
from holdfast.network.protocols.dds import message, request
from holdfast.network.protocols.dds.ifs import SlotSchedule, grid_slots
from holdfast.network.protocols.dds.interest import FieldConstraint
from holdfast.network.protocols.dds.level import FULL
from holdfast.network.protocols.dds.message import (
    ENTRIES,
    MESSAGES,
    UNIT,
    DdsMessage,
    SampleName,
    SampleStream,
    bytes_of,
)
from support.motes import HEAT, Motes, deployment, subscribe

NAME = SampleName("7", SampleStream(1, "Warm"), 1_000_000, 42)
WISH = message.DdsSubscribe(1, "9", 2, 5, FULL, (FieldConstraint("value", ">", 3.5),), "Warm")
GONE = message.DdsUnsubscribe(1, "9", 2, 6)
EXAMPLES = (
    WISH,
    GONE,
    message.DdsNotification(WISH),
    message.Recognition(1, "9", 2, 5),
    message.Demand(1, 30.0, False, ("Warm",)),
    message.DataMessage(
        NAME, True, {"value": 3.5, "room": "FE05", "on": True, "n": None}, 7, status="egress", since=3
    ),
    message.SampleAck(NAME, True),
    message.EnergyUpdate(1, "9", 0.5),
    message.Role(1, 3, "9", True),
    message.NewRound(1),
    message.TableHandover(1, 3, 0, (WISH, GONE), True),
    message.DdsTaken(1, 3, 0),
    message.LevelRequest(1, 90.0, 4),
    message.Switch(1, "7", "9", True),
    message.Heartbeat(NAME, 40),
    message.Have(NAME),
    message.Nack(NAME.stream, NAME.session, (40, 41)),
)


def test_the_test_covers_every_type_of_message():
    assert {type(example) for example in EXAMPLES} == set(MESSAGES)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: type(each).__name__)
def test_a_message_survives_the_wire_and_fits_into_a_frame(example):
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(example), type=DdsMessage) == example
    assert 0 < bytes_of(example) <= 100


def test_the_evaluation_unit_is_twenty_bytes_and_a_hand_over_fits_a_frame():
    """[D9]"""
    assert bytes_of(message.DataMessage(NAME, True, {"value": 1.0}, 0)) == UNIT == 20
    assert bytes_of(message.TableHandover(1, 1, 0, (WISH,) * ENTRIES, True)) <= 100


def test_adjacent_nodes_of_a_grid_send_at_different_times():
    """[D32] Nor do two that have a neighbour in common."""
    slots, columns = grid_slots(7, 7), 7
    for a in range(49):
        for b in range(a):
            apart = max(abs(a // columns - b // columns), abs(a % columns - b % columns))
            assert apart > 2 or slots[str(a)] != slots[str(b)]


def test_a_sample_waits_for_its_nodes_slot():
    motes = Motes(deployment(mode="BLTDDS", schedule=SlotSchedule({"p": 3})), ("p", "s"))
    subscribe(motes, "s")
    motes.ask("p", request.DdsAdvertiseRequest(HEAT))
    motes.run(20 * SECOND)
    motes.ask("p", request.DdsPublishRequest(HEAT, {"value": 1}))
    motes.run(22 * SECOND)
    ((at, *_),) = motes.sent(message.DataMessage)
    assert at == 20 * SECOND + SECOND // 3
    assert motes.readings("s") == [1]


@pytest.mark.parametrize(("slots", "period", "message"), [({"p": 9}, SECOND, "0 to 8"), ({}, 3, "9 slots")])
def test_an_impossible_schedule_is_refused(slots, period, message):
    with pytest.raises(UsageError, match=message):
        SlotSchedule(slots, period)
