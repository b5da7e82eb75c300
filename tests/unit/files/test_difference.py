"""The difference between the notifications of two scenarios."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from holdfast.files.difference import difference, pair_reports
from holdfast.model.event import Event, Notification
from holdfast.model.instant import SECOND


def reports(*marks: tuple[float, str, float], scope: str = "a") -> list[tuple[int, Notification]]:
    """(when it happened, what, how much later it came)."""
    return [
        (
            int((at + late) * SECOND),
            Notification("Warm", Event("T", int(at * SECOND), "s"), status, scope, None),  # type: ignore[arg-type]
        )
        for at, status, late in marks
    ]


IDEAL = reports((10, "ingress", 0), (20, "egress", 0), (40, "ingress", 0), (50, "egress", 0))


def fates(*marks: tuple[float, str, float]) -> list[tuple[str, int, bool]]:
    return [(each.fate, each.doubled, each.unended) for each in difference(IDEAL, reports(*marks)).alarms]


def test_a_run_with_the_same_notifications_differs_only_in_delay():
    same = difference(IDEAL, [(came + 2 * SECOND, note) for came, note in IDEAL])
    assert [each.fate for each in same.alarms] == ["told", "told"]
    assert same.delays() == [2 * SECOND, 2 * SECOND]
    assert [each.end_delay for each in same.alarms] == [2 * SECOND, 2 * SECOND]
    assert not same.false


def test_lost_shifted_merged_doubled_and_unended_alarms_are_distinguished():
    assert fates((10, "ingress", 1), (20, "egress", 1)) == [("told", 0, False), ("lost", 0, False)]
    assert fates((12, "ingress", 1), (20, "egress", 1))[0] == ("shifted", 0, False)
    assert fates((10, "ingress", 0), (50, "egress", 0)) == [("told", 0, False), ("merged", 0, False)]
    assert fates((10, "ingress", 0)) == [("told", 0, True), ("merged", 0, True)]
    again = fates((10, "ingress", 0), (13, "egress", 0), (15, "ingress", 0), (20, "egress", 0))
    assert again == [("told", 1, False), ("lost", 0, False)]


def test_a_notification_without_an_ideal_alarm_is_false():
    found = difference(IDEAL, reports((25, "ingress", 0), (30, "egress", 0)))
    assert {place: [each.start for each in some] for place, some in found.false.items()} == {
        ("Warm", "a"): [25 * SECOND]
    }
    assert found.counts() == {
        "alarms": 2, "told": 0, "shifted": 0, "merged": 0, "lost": 2, "doubled": 0, "unended": 0, "false": 1,
    }  # fmt: skip


def test_starts_after_the_end_of_the_history_do_not_count():
    late = reports((60, "ingress", 0))
    assert difference(IDEAL, late).false
    assert not difference(IDEAL, late, until=55 * SECOND).false


moments = st.lists(st.integers(0, 20), max_size=12).map(sorted)  # including several at one time


def alternating(times: list[int]) -> list[tuple[int, Notification]]:
    return reports(*((at, ("ingress", "egress")[i % 2], 0) for i, at in enumerate(times)))


@given(moments, moments)
def test_every_alarm_has_one_fate_and_every_report_is_counted(ours, theirs):
    ideal, other = alternating(ours), alternating(theirs)
    found, counts = difference(ideal, other), difference(ideal, other).counts()
    assert counts["told"] + counts["shifted"] + counts["merged"] + counts["lost"] == counts["alarms"]
    starts = counts["told"] + counts["shifted"] + counts["doubled"] + counts["false"]
    assert starts == sum(map(len, pair_reports(other).values())), "an alarm's, once more, or none's"
    assert counts["told"] == (Counter(ours[::2]) & Counter(theirs[::2])).total()
    assert difference(ideal, ideal).counts() == {
        **dict.fromkeys(counts, 0), "alarms": len(ours[::2]), "told": len(ours[::2]),
    }  # fmt: skip
    assert len(found.alarms) == len(ours[::2])


@given(moments)
def test_matches_of_several_sources_at_one_time_are_reported_unchanged(times):
    same = reports(*((at, "atomic", 0) for at in times))
    found = difference(same, same).counts()
    assert found == {**dict.fromkeys(found, 0), "alarms": len(times), "told": len(times)}
