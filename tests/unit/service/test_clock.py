"""How far wall time lets event time come."""

from __future__ import annotations

from holdfast.model.instant import DAY, HOUR, MINUTE, SECOND
from holdfast.service.clock import Lags, WallTime, read_until

NOW = 1_750_000_000 * SECOND
IDLE = 5 * SECOND


class Feed:
    def __init__(self, read, *topics):
        self.read, self.topics = read, topics

    def serves(self, topic):
        return topic in self.topics

    def read_until(self):
        return self.read


def advance(wall, read, watermark=None, together=({"T"},), spread=0):
    return wall.advance({"T": read} if isinstance(read, int) else read, watermark or {}, together, spread)


def test_a_topic_waits_for_its_slowest_feed():
    feeds = [Feed(NOW - 2, "A", "B"), Feed(NOW - 7, "B"), Feed(None, "C")]
    assert read_until(feeds, ["A", "B", "C", "D"], NOW) == {"A": NOW - 2, "B": NOW - 7, "D": NOW}


def test_topics_that_are_evaluated_together_wait_for_each_other():
    wall = WallTime(IDLE)
    for topic in "ABC":
        wall.lags.add(topic, "s", 0, NOW)
    together = ({"A", "B"}, {"C"})
    assert advance(wall, {"A": NOW, "C": NOW}, together=together) == {"C": NOW - IDLE}
    both = advance(wall, {"A": NOW, "B": NOW - MINUTE, "C": NOW}, together=together)
    assert both == {"A": NOW - MINUTE - IDLE, "B": NOW - MINUTE - IDLE}


def test_wall_time_stays_behind_live_readings_by_idle_time_and_their_lag():
    wall = WallTime(IDLE)
    wall.lags.add("T", "s1", 0, NOW)
    wall.lags.add("T", "s2", 3 * SECOND, NOW)
    assert advance(wall, NOW + MINUTE) == {"T": NOW + MINUTE - IDLE - 3 * SECOND}
    assert advance(wall, NOW + MINUTE + SECOND // 2) == {}, "a second makes it worth an entry of the log"


def test_one_source_that_stores_and_forwards_does_not_delay_others():
    wall = WallTime(IDLE)
    wall.lags.add("T", "live", 0, NOW)
    wall.lags.add("T", "stored", 10 * HOUR, NOW)
    assert advance(wall, NOW) == {"T": NOW - IDLE}


def test_old_readings_sent_now_advance_time_at_the_speed_of_the_clock():
    wall = WallTime(IDLE)
    wall.lags.add("T", "s1", DAY, NOW)
    assert advance(wall, NOW + 10 * SECOND) == {"T": NOW - DAY + 5 * SECOND}


def test_a_source_that_was_live_long_ago_does_not_make_old_readings_late():
    wall = WallTime(IDLE)
    wall.lags.add("T", "live", 0, NOW - 3 * DAY)
    wall.lags.add("T", "old", DAY, NOW)
    assert advance(wall, NOW + 10 * SECOND) == {"T": NOW - DAY + 5 * SECOND}


def test_time_continues_after_a_restart_from_its_last_value_until_a_reading_arrives():
    wall = WallTime(IDLE)
    watermark = {"T": NOW - HOUR}
    assert advance(wall, NOW, watermark) == {"T": NOW - HOUR - IDLE}
    assert advance(wall, NOW + MINUTE, watermark) == {"T": NOW - HOUR + MINUTE - IDLE}
    wall.lags.add("T", "s", 0, NOW + MINUTE)
    assert advance(wall, NOW + MINUTE, watermark) == {"T": NOW + MINUTE - IDLE}
    assert advance(WallTime(IDLE), NOW) == {}, "nothing was ever heard"


def test_configured_disorder_does_not_count_as_lag():
    lags = Lags()
    for source, lag in (("a", 0), ("b", 20 * SECOND), ("c", HOUR)):
        lags.add("T", source, lag, NOW)
    assert (lags.of({"T"}, IDLE), lags.of({"T"}, 30 * SECOND), lags.of({"U"}, IDLE)) == (0, 20 * SECOND, None)
