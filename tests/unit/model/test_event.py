"""Events, notifications and their ids."""

import json
import math
from hashlib import blake2b

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.model.event import Event, Notification, notification_id

NOTE = Notification(
    "Warm",
    Event("Temperature", 1_189_690_500_000_000, "s4", {"value": 25.4}, 7),
    "ingress",
    "room-12",
    None,
)


def test_an_id_never_changes_between_versions():
    """Sinks recognise a repetition by it, also across versions: never change this literal."""
    assert NOTE.id == "e6d9935889abe9a5655c"
    assert notification_id("Present", None, "egress", -1, "é", 0) == "089181723edc95466c18"


@given(
    st.text(),
    st.none() | st.text(),
    st.sampled_from(["ingress", "egress", "atomic"]),
    st.integers(-(2**63), 2**63 - 1),
    st.text(),
    st.integers(-(2**63), 2**64),
)
@example('\x00\x1f\x7f\u2028"\\/\b\f\n\r\t', "é🙂", "ingress", 0, "\ud800", 2**70)
def test_an_id_is_a_digest_of_documented_fields(subscription, scope, status, time, source, sequence):
    parts = [subscription, scope, status, time, source, sequence]
    text = json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    assert notification_id(*parts) == blake2b(text, digest_size=10).hexdigest()


@pytest.mark.parametrize(
    "other",
    [
        NOTE._replace(subscription="Warmer"),
        NOTE._replace(scope=None),
        NOTE._replace(scope="room-13"),
        NOTE._replace(status="egress"),
        NOTE._replace(event=Event("Temperature", 1, "s4", {}, 7)),
        NOTE._replace(event=Event("Temperature", NOTE.event.time, "s5", {}, 7)),
        NOTE._replace(event=Event("Temperature", NOTE.event.time, "s4", {}, 8)),
    ],
)
def test_different_notifications_have_different_ids(other):
    assert other.id != NOTE.id


def test_attributes_and_since_are_no_part_of_the_id():
    assert NOTE._replace(since=3, event=Event("X", NOTE.event.time, "s4", {}, 7)).id == NOTE.id


def test_the_json_of_a_notification_equals_the_output_of_the_command():
    assert NOTE.to_json() == {
        "id": "e6d9935889abe9a5655c",
        "subscription": "Warm",
        "scope": "room-12",
        "status": "ingress",
        "time": "2007-09-13T13:35:00.000000Z",
        "since": None,
        "topic": "Temperature",
        "source": "s4",
        "location": None,
        "attributes": {"value": 25.4},
    }


def test_missing_values_are_null_in_json():
    values = {"a": math.nan, "b": None, "c": 0.0, "d": False, "e": "", "f": 2**60}
    note = NOTE._replace(event=Event("T", 0, "s", values))
    assert note.to_json()["attributes"] == {"a": None, "b": None, "c": 0.0, "d": False, "e": "", "f": 2**60}


def test_since_and_location_are_shown():
    note = NOTE._replace(since=0, status="egress", event=Event("T", 1, "s", {}, 0, (1.0, 2.5), "lab"))
    assert note.to_json()["since"] == "1970-01-01T00:00:00.000000Z"
    assert note.to_json()["location"] == [1.0, 2.5]
    note = NOTE._replace(event=Event("T", 1, "s", {}, 0, None, "lab"))
    assert note.to_json()["location"] == "lab"


def test_a_missing_coordinate_is_not_printed_as_nan():
    note = NOTE._replace(event=Event("T", 1, "s", {}, 0, (math.nan, 1.0)))
    json.dumps(note.to_json(), allow_nan=False)


def test_events_are_ordered_by_time_source_and_sequence():
    events = [
        Event("T", 1, "a", {}, 9),
        Event("T", 1, "b", {}, 0),
        Event("T", 0, "z", {}, 5),
        Event("T", 1, "a", {}, 2),
    ]
    assert [e.order for e in sorted(events, key=lambda e: e.order)] == [
        (0, "z", 5), (1, "a", 2), (1, "a", 9), (1, "b", 0),
    ]  # fmt: skip


def test_notifications_are_ordered_by_time_subscription_scope_source_and_sequence():
    def note(time, subscription, scope, source, sequence):
        return Notification(subscription, Event("T", time, source, {}, sequence), "atomic", scope, None)

    inorder = [
        note(0, "Z", "z", "z", 9),
        note(1, "A", "b", "a", 0),
        note(1, "B", None, "z", 0),  # no scope comes first
        note(1, "B", "a", "a", 1),
        note(1, "B", "a", "a", 2),
        note(1, "B", "a", "b", 0),
        note(1, "B", "b", "a", 0),
    ]
    backwards = inorder[::-1]
    assert sorted(backwards, key=lambda n: n.order) == inorder


def test_events_are_compared_by_value():
    assert Event("T", 1, "s", {"v": 1}) == Event("T", 1, "s", {"v": 1})
    with pytest.raises(AttributeError):
        NOTE.event.time = 3
