"""``holdfast serve`` is killed under load, and Mosquitto restarted: nothing is lost or notified twice."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter

import httpx
import paho.mqtt.client as paho
import pyarrow.parquet as pq
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from support.patience import PATIENCE, until
from support.served import Mosquitto, Served

APP = """\
topic Climate (temperature float)
state  Warm on Climate [temperature > 25; temperature < 22] per source
filter Hot  on Climate where temperature > 29.5
"""
START = 1_780_000_000


class LoadPublisher(threading.Thread):
    """Devices that publish with quality 2 through a client that outlives its broker.  The next readings wait
    until the broker has those before: of what is published while it is away, Paho sends some out of order."""

    def __init__(self, port, rate, seed):
        super().__init__()
        self._chance, self._rate, self._port = random.Random(seed), rate, port
        self.published: list[dict] = []
        self.done = threading.Event()

    def run(self):
        client = paho.Client(CallbackAPIVersion.VERSION2, "devices", clean_session=False)
        client.max_queued_messages_set(0)
        client.reconnect_delay_set(1, 1)
        arrived = set()
        client.on_publish = lambda _client, _data, number, _reason, _properties: arrived.add(number)
        client.connect("127.0.0.1", self._port)
        client.loop_start()
        values = [20.0] * 25
        while not self.done.is_set():
            sent = []
            for _ in range(max(1, self._rate // 20)):
                number = len(self.published)
                device = number % len(values)
                values[device] = min(31.0, max(19.0, values[device] + self._chance.uniform(-2, 2)))
                line = {
                    "time": f"{START + number / 1000:.6f}",
                    "sequence": number,
                    "temperature": round(values[device], 3),
                }
                sent.append(client.publish(f"site/room-{device}/climate", json.dumps(line), qos=2).mid)
                self.published.append(line | {"source": f"room-{device}"})
            time.sleep(0.05)
            until(lambda: arrived.issuperset(sent), "published")  # noqa: B023
            arrived.clear()
        client.disconnect()
        client.loop_stop()


def settings(folder, broker):
    path = folder / "serve.toml"
    path.write_text(
        f"""
[[mqtt]]
url = "{broker.url}"
[[mqtt.map]]
from = "site/{{source}}/climate"
topic = "Climate"
time_unit = "s"

[[parquet]]
name = "files"
folder = "told"

[keep]
snapshot = "2 s"
seal = "5 s"
"""
    )
    return path


def run_with_kills(tmp_path, holdfast, kills, rate, pause, seed):
    """Run the service with kills. Return its notifications and those of a replay of the published
    readings."""
    chance = random.Random(seed)
    definition = tmp_path / "app.hf"
    definition.write_text(APP)
    with Mosquitto(tmp_path / "broker") as broker:
        service = Served(tmp_path, definition, "--config", settings(tmp_path, broker))
        service.start()
        until(lambda: _feed(service)["connected"], "a connection")
        publisher = LoadPublisher(broker.port, rate, seed)
        publisher.start()
        try:
            for i in range(kills):
                time.sleep(chance.uniform(*pause))
                service.kill()
                if i % 5 == 1:  # the broker goes and comes back as well
                    broker.stop()
                    broker.start()
                service.start()
            until(lambda: len(publisher.published) > 500, "enough to be killed under")
        finally:
            publisher.done.set()
            publisher.join()
        number = len(publisher.published)
        until(lambda: _log_size(service) >= number, "all readings in the log")
        until(lambda: _is_done(_status(service)), "all told")
        service.stop()
    lines = tmp_path / "published.jsonl"
    lines.write_text(
        "".join(
            json.dumps(line | {"time": float(line["time"]), "topic": "Climate"}) + "\n"
            for line in publisher.published
        )
    )
    replayed = holdfast("replay", definition, "-i", lines, "--time-unit", "s")
    assert replayed.status == 0, replayed.err
    logged = holdfast("replay", definition, "-i", f"log:{tmp_path / 'data'}")
    assert logged.status == 0, logged.err
    return number, _stored_ids(tmp_path), _ids(replayed.out), _ids(logged.out)


def _ids(text):
    return Counter(json.loads(line)["id"] for line in text.splitlines())


def _stored_ids(folder):
    files = sorted((folder / "told").glob("*.parquet"))
    return Counter(one for path in files for one in pq.read_table(path)["id"].to_pylist())


def _status(service):
    return httpx.get(f"{service.url}/api/status", timeout=PATIENCE, trust_env=False).json()


def _is_done(status):
    """Whether everything in the log has been evaluated and its notifications stored."""
    return not (status["waiting"] or status["behind"] or status["sinks"][-1]["behind"])


def _feed(service):
    return _status(service)["feeds"][0]


def _log_size(service):
    """Readings in the log, counted from its files: the service counts only since it started."""
    from holdfast.service.log.log import read_segment, segments_of
    from holdfast.service.log.seal import reading_files

    try:
        tail = segments_of(service.folder / "data")
        waiting = [
            len(one.entry.batch) for s in tail for one in read_segment(s) if hasattr(one.entry, "batch")
        ]
        done = [pq.read_metadata(path).num_rows for path in reading_files(service.folder / "data")]
    except FileNotFoundError:  # a segment was sealed meanwhile
        return 0
    time.sleep(0.3)
    return sum(done) + sum(waiting)


def test_notifications_survive_two_kills_under_load(tmp_path, holdfast):
    number, emitted, replayed, logged = run_with_kills(tmp_path, holdfast, 2, 200, (0.5, 1.0), seed=5)
    assert number > 500
    assert len(replayed) > 20
    assert emitted == replayed, "0 lost, 0 twice"
    assert logged == replayed, "the log replays to the same ids"


@pytest.mark.soak
def test_notifications_survive_fifty_kills_under_load(tmp_path, holdfast):
    number, emitted, replayed, logged = run_with_kills(tmp_path, holdfast, 50, 2_000, (0.2, 2.0), seed=11)
    assert emitted == replayed
    assert logged == replayed
    print(f"50 kills, {number:,} readings, {len(emitted):,} notifications: 0 lost, 0 twice")
