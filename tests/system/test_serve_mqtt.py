"""``holdfast serve`` and brokers: TLS, users, wills, sessions, shared subscriptions."""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
from contextlib import AsyncExitStack, contextmanager

import httpx
import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from holdfast.service.config import parse
from holdfast.service.feeds import mqtt
from holdfast.service.serve import Address, ServicePlan, serving
from support.certificates import make_certificates
from support.patience import PATIENCE, until
from support.served import Mosquitto, Served, program

APP = """\
topic Climate (temperature float)
state Warm on Climate [temperature > 25; temperature < 22] per source
"""


@pytest.fixture
def definition(tmp_path):
    path = tmp_path / "app.hf"
    path.write_text(APP)
    return path


@contextmanager
def client(port, name, tls=None, user=None):
    """A client of the broker that remembers the last message of each channel."""
    mine = paho.Client(CallbackAPIVersion.VERSION2, name)
    mine.deliveries = {}
    mine.on_message = lambda _c, _d, one: mine.deliveries.update({one.topic: one.payload.decode()})
    if tls is not None:
        mine.tls_set(str(tls), cert_reqs=ssl.CERT_REQUIRED)
    if user is not None:
        mine.username_pw_set(*user)
    mine.connect("127.0.0.1", port)
    mine.loop_start()
    try:
        yield mine
    finally:
        mine.disconnect()
        mine.loop_stop()


def status(service):
    return httpx.get(f"{service.url}/api/status", timeout=PATIENCE, trust_env=False).json()


def statuses_of(service):
    found = httpx.get(f"{service.url}/api/notifications", timeout=PATIENCE, trust_env=False).json()
    return [one["status"] for one in found["notifications"]]


@pytest.mark.parametrize("version", [3, 5])
def test_an_mqtt_broker_with_tls_and_users_publishes_our_presence(tmp_path, definition, version):
    """The broker requires a password and trusts our certificate. It stores messages while we are killed,
    publishes our will, and a message of quality 2 is processed once."""
    folder = make_certificates(tmp_path)
    passwords = tmp_path / "passwords"
    subprocess.run(
        [program("mosquitto_passwd", "mosquitto"), "-b", "-c", passwords, "holdfast", "secret"],
        check=True, capture_output=True,
    )  # fmt: skip
    (tmp_path / "broker.password").write_text("secret\n")
    settings = tmp_path / "serve.toml"
    with Mosquitto(
        tmp_path / "broker", f"cafile {folder / 'ca.pem'}", f"certfile {folder / 'cert.pem'}",
        f"keyfile {folder / 'key.pem'}", f"password_file {passwords}", "allow_anonymous false",
    ) as broker:  # fmt: skip
        settings.write_text(
            f"""
[[mqtt]]
url = "mqtts://127.0.0.1:{broker.port}"
version = {version}
user = "holdfast"
password_file = "broker.password"
ca = "ca.pem"
will = {{topic = "services/holdfast"}}
[[mqtt.map]]
from = "site/{{source}}"
topic = "Climate"
payload = "number"
qos = 2
"""
        )
        service = Served(tmp_path, definition, "--config", settings)
        with client(broker.port, "test", folder / "ca.pem", ("holdfast", "secret")) as mine, service:
            mine.subscribe("services/#", 1)
            until(lambda: mine.deliveries.get("services/holdfast") == "here", "its word")
            mine.publish("site/a", "26", qos=2)
            until(lambda: status(service)["readings"] == 1, "a reading")
            service.kill()
            until(lambda: mine.deliveries["services/holdfast"] == "gone", "its will")
            for value in ("21", "27"):
                mine.publish("site/a", value, qos=2).wait_for_publish(PATIENCE)
            service.start()
            until(lambda: mine.deliveries["services/holdfast"] == "here", "its return")
            until(lambda: statuses_of(service) == ["ingress", "egress", "ingress"], "what came meanwhile")
            service.stop()
            until(lambda: mine.deliveries["services/holdfast"] == "gone", "its good-bye")


def test_a_refusing_or_absent_mqtt_broker_is_reported_while_the_service_continues(tmp_path, definition):
    """The page shows why no readings arrive, and the service continues."""

    async def trouble(site, words):
        async with asyncio.timeout(PATIENCE):
            while words not in (site.feeds[0].status()["trouble"] or ""):
                await asyncio.sleep(0.01)

    async def story(broker):
        config = parse(f'[[mqtt]]\nurl = "{broker.url}"\n')
        plan = ServicePlan(definition, tmp_path / "data", Address("127.0.0.1", 0), config, tmp_path)
        async with serving(plan) as (site, _):
            await trouble(site, "refused: Not authorized")
            broker.stop()
            await trouble(site, "cannot be reached")

    with Mosquitto(tmp_path / "broker", "allow_anonymous false") as broker:
        asyncio.run(story(broker))


def test_a_lost_broker_is_visible_in_health_and_metrics(tmp_path, definition):
    async def answers(client, code):
        async with asyncio.timeout(PATIENCE):
            while (found := await client.get("/health")).status_code != code:
                await asyncio.sleep(0.05)
        return found.json(), (await client.get("/metrics")).text

    async def story(broker):
        config = parse(f'[[mqtt]]\nurl = "{broker.url}"\n')
        plan = ServicePlan(definition, tmp_path / "data", Address("127.0.0.1", 0), config, tmp_path)
        async with serving(plan) as (site, address), httpx.AsyncClient(
            base_url=f"http://{address}", timeout=PATIENCE, trust_env=False
        ) as client:  # fmt: skip
            body, metrics = await answers(client, 200)
            label = f'{{feed="{broker.url}"}}'
            assert (body["status"], body["troubles"]) == ("ok", {})
            async with asyncio.timeout(PATIENCE):
                while not site.feeds[0].status()["caught_up"]:
                    await asyncio.sleep(0.05)
            assert f"holdfast_feed_connected{label} 1" in metrics
            broker.stop()
            body, metrics = await answers(client, 503)
            assert "is not connected" in body["troubles"][f"feed {broker.url}"]
            assert f"holdfast_feed_connected{label} 0" in metrics
            assert f"holdfast_feed_caught_up{label} 0" in metrics
            assert (await client.post("/api/readings", content=READING)).json()["taken"] == 1
            broker.start()
            assert (await answers(client, 200))[0]["status"] == "ok"

    with Mosquitto(tmp_path / "broker") as broker:
        asyncio.run(story(broker))


@pytest.mark.parametrize("rules", ["", "topic readwrite site/#\n"])
def test_a_feed_catches_up_whether_or_not_the_broker_delivers_heartbeats(
    tmp_path, definition, monkeypatch, rules
):
    """One of the brokers has rules by which the service may not read its own heartbeats."""
    monkeypatch.setattr(mqtt, "OVERDUE", 1.0)
    monkeypatch.setattr(mqtt, "QUIET", 0.5)
    (tmp_path / "rules").write_text(rules)
    settings = ["allow_anonymous true", *([f"acl_file {tmp_path / 'rules'}"] if rules else [])]

    async def story(broker):
        config = parse(
            f'[[mqtt]]\nurl = "{broker.url}"\n[[mqtt.map]]\nfrom = "site/{{source}}"\ntopic = "Climate"\n'
        )
        plan = ServicePlan(definition, tmp_path / "data", Address("127.0.0.1", 0), config, tmp_path)
        async with serving(plan) as (site, _), asyncio.timeout(PATIENCE):
            feed = site.feeds[0]
            assert feed.read_until() is None
            while not feed.status()["caught_up"] or site.service.core.engine.paused:
                await asyncio.sleep(0.05)
            assert (feed.messages, feed.trouble) == (0, None), "a heartbeat is no message"
            broker.stop()
            while feed.connected or not site.service.core.engine.paused:
                await asyncio.sleep(0.05)
            assert feed.read_until() is None

    with Mosquitto(tmp_path / "broker", *settings) as broker:
        asyncio.run(story(broker))


def test_timers_advance_where_a_broker_accepts_heartbeats_and_never_delivers_them(
    tmp_path, definition, monkeypatch
):
    """Rules let the service write heartbeats and not read them, and a device reports all the time."""
    monkeypatch.setattr(mqtt, "OVERDUE", 2.0)
    (tmp_path / "rules").write_text("topic readwrite site/#\ntopic write holdfast/#\n")

    async def story(broker):
        config = parse(
            f'[[mqtt]]\nurl = "{broker.url}"\n[[mqtt.map]]\nfrom = "site/{{source}}"\ntopic = "Climate"\n'
        )
        plan = ServicePlan(definition, tmp_path / "data", Address("127.0.0.1", 0), config, tmp_path)
        device = paho.Client(CallbackAPIVersion.VERSION2, "device")
        device.connect("127.0.0.1", broker.port)
        device.loop_start()
        async with serving(plan) as (site, _), asyncio.timeout(PATIENCE):
            while site.feeds[0].read_until() is None or site.service.core.engine.paused:
                device.publish("site/a", '{"temperature": 20}', qos=1)
                await asyncio.sleep(0.1)
        device.disconnect()
        device.loop_stop()

    settings = ["allow_anonymous true", f"acl_file {tmp_path / 'rules'}"]
    with Mosquitto(tmp_path / "broker", *settings) as broker:
        asyncio.run(story(broker))


def test_heartbeats_of_other_publishers_advance_no_clock_and_end_no_feed(tmp_path, definition):
    async def story(broker):
        config = parse(
            f'[[mqtt]]\nurl = "{broker.url}"\n[[mqtt.map]]\nfrom = "site/{{source}}"\ntopic = "Climate"\n'
        )
        plan = ServicePlan(definition, tmp_path / "data", Address("127.0.0.1", 0), config, tmp_path)
        seen = []
        other = paho.Client(CallbackAPIVersion.VERSION2, "other")
        other.on_message = lambda _client, _data, message: seen.append(message)
        other.connect("127.0.0.1", broker.port)
        other.subscribe("holdfast-heartbeat/#", qos=1)
        other.loop_start()
        async with serving(plan) as (site, _), asyncio.timeout(PATIENCE):
            feed = site.feeds[0]
            while not seen or feed.read_until() is None:
                await asyncio.sleep(0.05)
            channel, (run, connection, _) = seen[0].topic, seen[0].payload.decode().split()
            for forged in (
                f"{run} x y",
                f"{run} {connection} z",
                f"{run} {connection} 253402300799000000",
                "",
            ):
                other.publish(channel, forged, qos=1)
            known = len(seen)
            while len(seen) < known + 6:  # all of these, and heartbeats behind them
                await asyncio.sleep(0.05)
            assert feed.read_until() <= site.service.clock()
            assert (feed.connected, site.tasks[id(feed)].restarts) == (True, 0)
        other.disconnect()
        other.loop_stop()

    with Mosquitto(tmp_path / "broker") as broker:
        asyncio.run(story(broker))


READING = json.dumps({"topic": "Climate", "source": "a", "temperature": 20.0})
SPOILT = {  # messages that were the end of a feed
    "csv": b"1," + b"9" * 200_000,
    "json": b'{"temperature": 1, "sequence": 1e999}',
    "sparkplug": bytes.fromhex("0801120f0a0873657175656e6365650000807f"),
}


@pytest.mark.parametrize("payload", SPOILT)
def test_a_message_that_fails_its_mapping_is_rejected_and_the_next_one_is_accepted(
    tmp_path, definition, payload
):
    kinds = {
        "csv": 'payload = "csv"\ncolumns = ["sequence", "temperature"]',
        "json": "",
        "sparkplug": 'payload = "sparkplug"',
    }
    channel = "site/group/DDATA/edge/{}"

    async def story(broker):
        config = parse(
            f'''
[[mqtt]]
url = "{broker.url}"
[[mqtt.map]]
from = "site/+/+/+/{{source}}"
topic = "Climate"
{kinds[payload]}
[[mqtt.map]]
from = "good/{{source}}"
topic = "Climate"
payload = "number"
'''
        )
        plan = ServicePlan(definition, tmp_path / "data", Address("127.0.0.1", 0), config, tmp_path)
        async with serving(plan) as (site, _), asyncio.timeout(PATIENCE):
            with client(broker.port, "test") as mine:
                while not site.feeds[0].connected:
                    await asyncio.sleep(0.01)
                mine.publish(channel.format("a"), SPOILT[payload], qos=1)
                mine.publish("good/b", "21", qos=1)
                while site.service.counts.logged < 1 or not site.service.store.rejects():
                    await asyncio.sleep(0.01)
            assert sum(site.service.counts.rejected.values()) == 1
            assert site.feed_status()[0]["restarts"] == 0
            (rejected,) = site.service.store.rejects()
            return rejected["reason"]

    with Mosquitto(tmp_path / "broker") as broker:
        reason = asyncio.run(story(broker))
    assert any(word in reason for word in ("not CSV", "not a whole number", "not JSON"))


@pytest.mark.parametrize("version", [3, 5])
def test_services_of_one_share_divide_the_messages(tmp_path, definition, version):
    """Every message is taken by one of two services, and each takes some."""

    async def story(broker):
        async with AsyncExitStack() as stack:
            sites = []
            for name in ("north", "south"):
                config = parse(
                    f"""
[[mqtt]]
url = "{broker.url}"
version = {version}
client = "{name}"
share = "site"
[[mqtt.map]]
from = "site/{{source}}"
topic = "Climate"
"""
                )
                plan = ServicePlan(definition, tmp_path / name, Address("127.0.0.1", 0), config, tmp_path)
                site, _ = await stack.enter_async_context(serving(plan))
                sites.append(site)
            mine = stack.enter_context(client(broker.port, "test"))

            def logged_counts():
                return [site.service.counts.logged for site in sites]

            number = 0
            while min(logged_counts()) < 5:  # a subscription is there when its first message comes
                mine.publish(f"site/s{number % 7}", json.dumps({"temperature": number}), qos=1)
                number += 1
                await asyncio.sleep(0.005)
            async with asyncio.timeout(PATIENCE):
                while sum(logged_counts()) < number:
                    await asyncio.sleep(0.01)
            await asyncio.sleep(0.2)
            assert sum(logged_counts()) == number, "none is taken twice"

    with Mosquitto(tmp_path / "broker") as broker:
        asyncio.run(asyncio.wait_for(story(broker), PATIENCE))
