"""``holdfast serve`` among the real parts of others: Mosquitto in and out, Alertmanager."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from datetime import UTC, datetime

import httpx
import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from holdfast.definition.parse import parse
from holdfast.errors import UsageError
from support.patience import PATIENCE, free_port, until
from support.served import Mosquitto, Served, listens, process, program

APP = """\
topic Climate (temperature float)
state Warm on Climate [temperature > 25; temperature < 22] per place
"""


@pytest.fixture
def definition(tmp_path):
    path = tmp_path / "app.hf"
    path.write_text(APP)
    return path


def now(offset=0.0):
    return datetime.fromtimestamp(time.time() + offset, UTC).isoformat()


@pytest.mark.parametrize("version", [3, 5])
def test_devices_publish_over_mqtt_and_receive_active_conditions(tmp_path, definition, version):
    """Readings of three forms come from Mosquitto; events and retained states go back to it."""
    settings = tmp_path / "serve.toml"
    with Mosquitto(tmp_path / "broker") as broker:
        settings.write_text(
            f"""
[[mqtt]]
url = "{broker.url}"
version = {version}
[[mqtt.map]]
from = "building/{{place}}/{{source}}/climate"
topic = "Climate"
[mqtt.map.fields]
temperature = "data.temp"
[[mqtt.map]]
from = "plain/{{place}}/{{source}}"
topic = "Climate"
payload = "number"
qos = 2
[[mqtt.map]]
from = "lines/{{place}}/{{source}}"
topic = "Climate"
payload = "csv"
columns = ["time", "temperature"]
qos = 0
"""
        )
        received: dict[str, list] = {}
        client = paho.Client(CallbackAPIVersion.VERSION2, "test")
        client.on_message = lambda _c, _d, one: received.setdefault(one.topic, []).append(
            json.loads(one.payload)
        )
        client.connect("127.0.0.1", broker.port)
        client.subscribe([("holdfast/#", 1)])
        client.loop_start()
        with Served(tmp_path, definition, "--config", settings) as service:

            def status():
                return httpx.get(f"{service.url}/api/status", timeout=PATIENCE, trust_env=False).json()

            until(lambda: status()["feeds"][0]["connected"], "a connection")
            client.publish("building/lab/s1/climate", json.dumps({"data": {"temp": 26.5}}), qos=1)
            client.publish("plain/office/s2", "27.5", qos=2)
            client.publish("lines/attic/s3", f"{now()},28.5\n{now()},21", qos=0)
            client.publish("building/lab/s1/climate", "not JSON", qos=1)
            client.publish("building/lab/s1/climate", json.dumps({"data": {"temp": 20}}), qos=1)
            until(lambda: len(received.get("holdfast/events/Warm/attic", [])) == 2, "events")
            until(lambda: len(received.get("holdfast/events/Warm/lab", [])) == 2, "events")
            until(lambda: received.get("holdfast/events/Warm/office"), "events")
            assert [one["status"] for one in received["holdfast/events/Warm/attic"]] == ["ingress", "egress"]
            until(lambda: status()["rejected"], "the bad payload")
            (reason,) = status()["rejected"]
            assert reason.startswith("mqtt: not JSON")
            late = paho.Client(CallbackAPIVersion.VERSION2, "late")
            stored: dict[str, dict] = {}
            late.on_message = lambda _c, _d, one: stored.update({one.topic: json.loads(one.payload)})
            late.connect("127.0.0.1", broker.port)
            late.subscribe("holdfast/state/#", 1)
            late.loop_start()
            until(lambda: len(stored) == 3, "retained states")
            holds = {topic.rpartition("/")[2]: state["holds"] for topic, state in stored.items()}
            assert {topic.split("/")[1] for topic in received} == {"events", "state"}, (
                "heartbeats go elsewhere"
            )
            assert holds == {"attic": False, "lab": False, "office": True}
            for one in (late, client):
                one.disconnect()
                one.loop_stop()
            service.stop()


def test_alertmanager_receives_active_conditions(tmp_path, definition):
    """Debian's Alertmanager has an alert while the condition holds, and resolves it when it ends."""
    manager, port = program("prometheus-alertmanager", "prometheus-alertmanager"), free_port()
    rules = tmp_path / "alertmanager.yml"
    rules.write_text("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
    settings = tmp_path / "serve.toml"
    settings.write_text(
        f'allowed_hosts = ["127.0.0.1"]\n[[alertmanager]]\nname = "alerts"\nurl = "http://127.0.0.1:{port}"\n'
        'labels = {team = "heating"}\n'
    )
    command = (
        manager, f"--config.file={rules}", f"--storage.path={tmp_path / 'alerts'}",
        "--cluster.listen-address=", f"--web.listen-address=127.0.0.1:{port}",
    )  # fmt: skip
    alerts = f"http://127.0.0.1:{port}/api/v2/alerts"

    def known():
        return httpx.get(alerts, timeout=PATIENCE, trust_env=False).json()

    with process(*command, log=tmp_path / "alertmanager.log"):
        until(lambda: listens(port), "Alertmanager")
        with Served(tmp_path, definition, "--config", settings) as service:

            def read(value, at=0.0):
                line = {
                    "topic": "Climate",
                    "source": "s1",
                    "place": "lab",
                    "time": now(at),
                    "temperature": value,
                }
                answer = httpx.post(
                    f"{service.url}/api/readings", content=json.dumps(line), timeout=PATIENCE, trust_env=False
                )
                assert answer.json() == {"taken": 1, "rejected": []}, answer.text

            read(26, -30)
            (alert,) = until(known, "the alert")
            labels = {"alertname": "Warm", "scope": "lab", "team": "heating"}
            assert (alert["labels"], alert["status"]["state"]) == (labels, "active")
            read(20)
            until(lambda: known() == [], "its end")
            service.stop()


def test_alertmanager_receives_a_muted_condition_when_the_mute_ends(tmp_path):
    """Alertmanager of Debian has no alert while the condition is muted, also after a crash, but those of
    other scopes; when the mute ends it receives one with the level of that time."""
    manager, port = program("prometheus-alertmanager", "prometheus-alertmanager"), free_port()
    rules = tmp_path / "alertmanager.yml"
    rules.write_text("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
    definition, settings = tmp_path / "app.hf", tmp_path / "serve.toml"
    definition.write_text(
        "topic T (value float)\n"
        "levels Heat on T: warn [value > 25; value < 22], alarm [value > 30; value < 27] per source\n"
    )
    settings.write_text(
        f'allowed_hosts = ["127.0.0.1"]\n[[alertmanager]]\nname = "alerts"\nurl = "http://127.0.0.1:{port}"\n'
    )
    command = (
        manager, f"--config.file={rules}", f"--storage.path={tmp_path / 'alerts'}",
        "--cluster.listen-address=", f"--web.listen-address=127.0.0.1:{port}",
    )  # fmt: skip

    def active():
        found = httpx.get(f"http://127.0.0.1:{port}/api/v2/alerts", timeout=PATIENCE, trust_env=False).json()
        return {(one["labels"]["scope"], one["labels"]["level"]) for one in found}

    with process(*command, log=tmp_path / "alertmanager.log"):
        until(lambda: listens(port), "Alertmanager")
        with Served(tmp_path, definition, "--config", settings) as service:

            def post(path, body, method="POST"):
                url = f"{service.url}{path}"
                answer = httpx.request(
                    method, url, content=json.dumps(body), timeout=PATIENCE, trust_env=False
                )
                assert answer.status_code == 200, answer.text

            boiler = {"subscription": "Heat", "scope": "boiler"}
            post("/api/mute", boiler | {"seconds": 10_000})
            for source, value in (("boiler", 26), ("boiler", 31), ("attic", 26)):
                post("/api/readings", {"topic": "T", "source": source, "value": value})
            until(lambda: active() == {("attic", "warn")}, "the attic alone")
            service.kill()
            service.start()
            post("/api/readings", {"topic": "T", "source": "attic", "value": 31})
            until(lambda: active() == {("attic", "alarm")}, "the attic alone")
            post("/api/mute", boiler, "DELETE")
            until(lambda: active() == {("attic", "alarm"), ("boiler", "alarm")}, "the boiler")
            service.stop()


def test_an_overlay_is_a_source_of_readings(tmp_path, definition):
    """Events that ``holdfast publish`` sends to a broker of the overlay are readings of the service."""
    port = free_port()
    settings = tmp_path / "serve.toml"
    settings.write_text(f'[[overlay]]\nconnect = "127.0.0.1:{port}"\n')
    holdfast = (sys.executable, "-m", "holdfast")
    broker = (*holdfast, "broker", "--name", "hub", "--listen", f"127.0.0.1:{port}")
    output = {"topic": "Climate", "source": "s1", "place": "lab", "temperature": 26.5}
    line = json.dumps(output)
    with process(*broker, log=tmp_path / "broker.log"):
        until(lambda: listens(port), "the broker")
        with Served(tmp_path, definition, "--config", settings) as service:

            def holding():
                command = [*holdfast, "publish", line, "--connect", f"127.0.0.1:{port}"]
                subprocess.run(command, check=True, capture_output=True)
                found = httpx.get(f"{service.url}/api/conditions", timeout=PATIENCE, trust_env=False).json()
                return [(one["subscription"], one["scope"]) for one in found]

            assert until(holding, "a condition") == [("Warm", "lab")]
            service.stop()


def test_a_dds_domain_is_a_source_and_a_target(tmp_path, definition):
    """Samples of another participant are readings. It receives starts, and a late joiner the latest
    sample."""
    dds = pytest.importorskip("holdfast.service.dds", exc_type=UsageError)
    from cyclonedds.pub import DataWriter
    from cyclonedds.sub import DataReader
    from cyclonedds.topic import Topic as DdsTopic

    member = dds.Membership(domain=7 + free_port() % 200)
    settings = tmp_path / "serve.toml"
    settings.write_text(f"[[dds]]\ndomain = {member.domain}\n")
    (climate,) = parse(APP).check().topics
    sample, emitted = dds.sample_of(climate), dds.notification_type()
    participant = member.participant()
    writer = DataWriter(participant, DdsTopic(participant, "Climate", sample), qos=dds.ALL)

    def reader():
        return DataReader(
            participant, DdsTopic(participant, dds.NOTIFICATIONS, emitted), qos=dds.LAST_SAMPLES
        )

    early, received = reader(), []

    def has_received(who, number):
        received.extend(one for one in who.take(10) if isinstance(one, emitted))
        return len(received) >= number

    with Served(tmp_path, definition, "--config", settings) as service:

        def status():
            return httpx.get(f"{service.url}/api/status", timeout=PATIENCE, trust_env=False).json()

        until(lambda: writer.get_matched_subscriptions(), "its reader")
        writer.write(sample("s1", 0, -1, "lab", 26.5))
        until(lambda: has_received(early, 1), "a start")
        writer.write(sample(" ", 0, -1, "lab", 30.0))
        writer.write(sample("s1", 0, -1, "lab", None))
        writer.write(sample("s1", 0, -1, "lab", 20.5))
        until(lambda: has_received(early, 2), "its end")
        assert [(one.subscription, one.scope, one.status) for one in received] == [
            ("Warm", "lab", "ingress"),
            ("Warm", "lab", "egress"),
        ]
        assert json.loads(received[0].line)["attributes"] == {"temperature": 26.5}
        assert (status()["readings"], status()["rejected"]) == (3, {"dds: it has no source": 1})
        late, last = reader(), received[-1]
        received.clear()
        until(lambda: has_received(late, 1), "the last word")
        assert received == [last]
        service.stop()
