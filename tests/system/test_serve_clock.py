"""The clock of ``holdfast serve`` beside a real broker: outages, backlogs, old timestamps."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from contextlib import contextmanager

import httpx
import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

from holdfast.model.instant import DAY, MINUTE, SECOND, show_instant
from support.patience import PATIENCE, until
from support.served import Mosquitto, Served

APP = """\
topic Climate (temperature float)
state Hot    on Climate [temperature > 30 for {length}; temperature < 25] per source
state Silent on Climate [silent {length}; !silent {length}] per source
state Warm   on Climate [temperature > 30; temperature < 25] per source ordered {wait}
state Lasts  on Climate [temperature > 30 for {length}; temperature < 25] per source ordered {wait}
state Gone   on Climate [silent {length}; !silent {length}] per source ordered {wait}
"""
ORDERED = ("Warm", "Lasts", "Gone")
SETTINGS = """
[keep]
idle = "1 s"
[[mqtt]]
url = "{url}"
[[mqtt.map]]
from = "site/{{source}}"
topic = "Climate"
"""


@contextmanager
def client(port, name):
    mine = paho.Client(CallbackAPIVersion.VERSION2, name)
    mine.connect("127.0.0.1", port)
    mine.loop_start()
    try:
        yield mine
    finally:
        mine.disconnect()
        mine.loop_stop()


@contextmanager
def serving(tmp_path, length, wait):
    """A broker, a client of it, and a service that is configured and not yet started."""
    definition, settings = tmp_path / "app.hf", tmp_path / "serve.toml"
    definition.write_text(APP.format(length=length, wait=wait))
    with Mosquitto(tmp_path / "broker") as broker, client(broker.port, "devices") as mine:
        settings.write_text(SETTINGS.format(url=broker.url))
        service = Served(tmp_path, definition, "--config", settings)
        try:
            yield mine, service, definition
        finally:
            service.kill()


def get(service, path, **query):
    return httpx.get(f"{service.url}{path}", params=query, timeout=PATIENCE, trust_env=False).json()


def notifications(service):
    return get(service, "/api/notifications", most=10_000)["notifications"]


def publish(mine, source, at, value):
    output = json.dumps({"time": show_instant(at), "temperature": value})
    return mine.publish(f"site/{source}", output, qos=1)


def starts_after_end(found):
    """Notifications whose start is later than they are."""
    return [one for one in found if one["since"] is not None and one["since"] > one["time"]]


def rows(found, before, *subscriptions):
    """The notifications of some subscriptions before an instant, in a defined order."""
    keys = ("time", "subscription", "scope", "status", "since")
    some = ([one[key] for key in keys] for one in found if one["subscription"] in subscriptions)
    return sorted((row for row in some if row[0] < show_instant(before)), key=repr)


def replay_log(tmp_path, definition):
    """The notifications of a replay of the stored readings, in order of time."""
    run = [sys.executable, "-m", "holdfast", "replay", definition, "--input", f"log:{tmp_path / 'data'}"]
    done = subprocess.run(run, check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_after_an_outage_no_alarm_starts_over_readings_that_wait_in_the_broker(tmp_path):
    """The room is hot for three seconds, the service is away for fifteen, and no device is ever silent.  A
    third device reports so much that it takes time to read what waits."""
    with serving(tmp_path, "6 s", "2 s") as (mine, service, definition):
        service.start()
        start = last = time.time_ns() // 1_000
        sent = 0

        def report(until_now, many=0):
            """Report from both devices every half second, from the third one often."""
            nonlocal last, sent
            while last + SECOND // 2 < until_now:
                last += SECOND // 2
                for i, source in enumerate("ab"):
                    hot = source == "a" and SECOND <= last - start < 4 * SECOND
                    publish(mine, source, last + i, 35 if hot else 20)
                for i in range(many):
                    publish(mine, "c", last + 2 + i, 20)
                sent += 2 + many

        for _ in range(4):
            time.sleep(0.5)
            report(time.time_ns() // 1_000)
        until(lambda: get(service, "/api/status")["readings"] == sent, "readings")
        service.kill()
        read = sent
        time.sleep(15)
        report(time.time_ns() // 1_000, many=500)
        service.start()
        for _ in range(12):
            time.sleep(0.5)
            report(time.time_ns() // 1_000)
        until(lambda: get(service, "/api/status")["readings"] >= sent - read, "what waited in the broker")
        until(lambda: get(service, "/api/status")["behind"] == 0, "their evaluation")
        found, cut = notifications(service), last - 3 * SECOND
        service.stop()
    timely = [one for one in found if one["subscription"] in ("Hot", "Silent")]
    assert [one for one in timely if one["scope"] != "c" and one["time"] < show_instant(last)] == []
    assert starts_after_end(found) == []
    assert len(rows(found, cut, "Warm")) == 2
    assert rows(found, cut, *ORDERED) == rows(replay_log(tmp_path, definition), cut, *ORDERED)


def test_a_day_of_old_timestamps_gives_live_what_a_replay_gives(tmp_path):
    """Devices send what they measured yesterday, with breaks in which only the clock goes on."""
    chance = random.Random(1)
    with serving(tmp_path, "20 min", "10 min") as (mine, service, definition):
        service.start()
        begin = time.time_ns() // 1_000 - 2 * DAY
        value = dict.fromkeys("abcde", 25.0)
        sent = 0
        for minute in range(0, 1_440, 2):
            for i, source in enumerate(value):
                value[source] += chance.uniform(-3, 3) + (27 - value[source]) / 8
                if (minute // 100 + i) % 7:  # else it is away
                    output = publish(mine, source, begin + minute * MINUTE + i, round(value[source], 2))
                    sent += 1
            if minute % 360 == 180:
                output.wait_for_publish(PATIENCE)
                time.sleep(2.5)
        until(lambda: get(service, "/api/status")["readings"] == sent, "all readings")
        until(lambda: get(service, "/api/status")["behind"] == 0, "their evaluation")
        time.sleep(2.5)
        found = notifications(service)
        service.stop()
    cut = begin + 1_400 * MINUTE
    assert starts_after_end(found) == []
    again = replay_log(tmp_path, definition)
    for name in ("Hot", "Silent", *ORDERED):
        assert rows(found, cut, name) == rows(again, cut, name)
        assert len(rows(again, cut, name)) > 5, name
