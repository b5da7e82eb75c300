"""Brokers as processes: the commands as typed, and what survives when links are cut and brokers killed."""

from __future__ import annotations

import asyncio
import json
import random
import re
import select
import signal
import socket
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import ClassVar

import psutil
import pytest

from support.overlay_chaos import (
    EIGHT,
    FOUR,
    LINE,
    BrokerProcess,
    Chaos,
    Overlay,
    Plan,
    flood,
    nonsense,
)
from support.patience import PATIENCE, free_port, until

WARM = """
topic Temperature (value float)
state Warm on Temperature [value > 25; value < 22] per source
filter Hot on Temperature where value > 40
"""


class RunningCommand:
    """A command in a process of its own, whose lines can be waited for."""

    all: ClassVar[list[RunningCommand]] = []

    def __init__(self, *arguments: str | Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "holdfast", *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        self.all.append(self)

    def line(self, stream: str = "stdout") -> str:
        """The next line of output."""
        assert self.has_more(stream, PATIENCE), f"it says nothing on {stream}"
        return getattr(self.process, stream).readline().decode()

    def has_more(self, stream: str = "stdout", patience: float = 0) -> bool:
        """Whether another line was printed."""
        return bool(select.select([getattr(self.process, stream)], [], [], patience)[0])

    def say(self, *lines: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("".join(f"{line}\n" for line in lines).encode())

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        """Ask the process to stop; return its exit status and the remaining output."""
        self.process.send_signal(number)
        return self.rest()

    def rest(self) -> tuple[int, str, str]:
        """Wait for the end of the process; return its exit status and the remaining output."""
        out, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out.decode(), err.decode()


@pytest.fixture(autouse=True, scope="module")
def _kill_all() -> Iterator[None]:
    yield
    for running in RunningCommand.all:
        if running.process.poll() is None:
            running.process.kill()
            running.process.communicate()


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    """A broker; where it listens."""
    running = RunningCommand("broker", "--name", "hub", "--listen", "127.0.0.1:0")
    yield running.line().split()[-1]
    status, out, err = running.end()
    assert (status, out) == (0, ""), err
    assert "internal errors" not in err


@pytest.fixture
def definition(tmp_path) -> Path:
    path = tmp_path / "warm.hf"
    path.write_text(WARM)
    return path


def subscribe(broker: str, *arguments: str | Path) -> RunningCommand:
    """Start a subscriber and wait until the broker has its subscription."""
    running = RunningCommand("subscribe", *arguments, "--connect", broker)
    assert running.line("stderr") == "subscribed at 'hub'\n"
    return running


def events(*values: float, source: str = "s1") -> list[str]:
    return [json.dumps({"source": source, "topic": "Temperature", "value": value}) for value in values]


def test_a_subscriber_prints_when_a_condition_starts_and_ends(broker, definition, holdfast):
    subscriber = subscribe(broker, definition, "--count", "3")
    ran = holdfast("publish", *events(24, 26, 27, 41, 23, 21), "--connect", broker, "--settle", "0")
    assert (ran.status, ran.out, ran.err) == (0, "", "6 events sent\n")
    status, out, err = subscriber.rest()
    assert (status, err) == (0, "")
    lines = [json.loads(line) for line in out.splitlines()]
    assert [(n["subscription"], n["status"], n["attributes"]["value"]) for n in lines] == [
        ("Warm", "ingress", 26.0),
        ("Hot", "atomic", 41.0),
        ("Warm", "egress", 21.0),
    ]
    assert list(lines[0]) == [
        *("id", "subscription", "scope", "status", "time", "since"),
        *("topic", "source", "location", "attributes"),
    ]
    assert lines[2]["since"] == lines[0]["time"]


def test_the_overlay_page_shows_the_real_output(broker, tmp_path):
    """The page docs/howto/overlay.md uses three terminals, which the test of pages cannot open."""
    page = (Path(__file__).parents[2] / "docs" / "howto" / "overlay.md").read_text()
    for name in ("warm.hf", "readings.jsonl"):
        (found,) = re.findall(rf"```\w+ title={name}\n(.*?)```", page, re.DOTALL)
        (tmp_path / name).write_text(found)
    (shown,) = re.findall(r"```text\n({.*?\n)```", page, re.DOTALL)
    subscriber = subscribe(broker, tmp_path / "warm.hf", "--count", "3")
    publisher = RunningCommand("publish", "--topics", tmp_path / "warm.hf", "--connect", broker)
    publisher.say((tmp_path / "readings.jsonl").read_text().rstrip())
    _, _, output = publisher.rest()
    assert f"< readings.jsonl\n{output}```" in page
    assert subscriber.rest()[1] == shown


def test_a_broker_provides_the_regions_in_which_sensors_are_redundant(tmp_path, holdfast):
    """With only ``scope regions`` a subscriber gets notifications for each region of the network once.
    [S6]"""
    (tmp_path / "house.toml").write_text("[rooms]\nnorth = { rectangle = [0, 5, 9, 9] }\nsouth = {}\n")
    (tmp_path / "app.hf").write_text(WARM.splitlines()[1] + REDUNDANT)
    regions = ("--regions", tmp_path / "house.toml")
    hub = RunningCommand("broker", "--name", "hub", "--listen", "127.0.0.1:0", *regions).line().split()[-1]
    subscriber = subscribe(hub, tmp_path / "app.hf", "--count", "2", "--wire", "xml")
    output = [
        {"topic": "Temperature", "source": f"s{i % 2}", "x": i % 2, "y": 6, "value": value}
        for i, value in enumerate([26, 26, 27, 21, 20])
    ]
    ran = holdfast("publish", *map(json.dumps, output), "--connect", hub, "--settle", "0")
    assert ran.err == "5 events sent\n"
    await_status = [json.loads(line) for line in subscriber.rest()[1].splitlines()]
    assert [(n["status"], n["scope"], n["source"]) for n in await_status] == [
        ("ingress", "north", "s0"),
        ("egress", "north", "s1"),
    ]


REDUNDANT = "\nstate Warm on Temperature [value > 25; value < 22] scope regions\n"


def test_subscribing_to_regions_of_a_broker_without_regions_is_refused(broker, tmp_path, holdfast):
    (tmp_path / "app.hf").write_text(WARM.splitlines()[1] + REDUNDANT)
    ran = holdfast("subscribe", tmp_path / "app.hf", "--connect", broker)
    assert ran.status == 2
    assert "broker 'hub' has none: declare some, or start the broker with --regions" in ran.err


def test_a_content_filter_needs_no_definition_and_works_over_xml(broker, holdfast):
    where = 'topic == "Room" && temp >= 20 && name != "Ann"'
    subscriber = subscribe(broker, "--where", where, "--count", "1", "--wire", "xml")
    room = {"topic": "Room", "source": "s", "time": "2007-09-13T13:35:00Z"}
    lines = [json.dumps({**room, "temp": t, "name": n}) for t, n in ((19, "Bob"), (21, "Ann"), (21, "Bob"))]
    ran = holdfast("publish", *lines, "--connect", broker, "--settle", "0", "--wire", "xml")
    assert ran.status == 0, ran.err
    (line,) = subscriber.rest()[1].splitlines()
    assert json.loads(line)["attributes"] == {"temp": 21.0, "name": "Bob"}
    assert json.loads(line)["time"] == "2007-09-13T13:35:00.000000Z"


def test_lines_of_standard_input_are_published_as_they_arrive_and_bad_lines_are_named(broker, definition):
    subscriber = subscribe(broker, definition, "--only", "Hot")
    publisher = RunningCommand("publish", "--topics", definition, "--connect", broker, "--settle", "0")
    publisher.say('{"source": "s1", "value": 50}')
    assert json.loads(subscriber.line())["attributes"] == {"value": 50.0}
    publisher.say("oops", "", '{"source": "s1", "value": "warm"}', '{"source": "s1", "valeu": 3}')
    publisher.say('{"value": 3}', '{"source": "s2", "value": 60}')
    status, _, err = publisher.rest()
    assert status == 0
    assert err.splitlines() == [
        "warning: line 2: not a JSON object: JSON is malformed: invalid character (byte 0)",
        "warning: line 4: value 'warm' is not a number",
        "warning: line 5: topic 'Temperature' has no attribute 'valeu'. Did you mean 'value'?",
        "warning: line 6: it has no source; add one, or give --source",
        "2 events sent, 4 lines rejected",
    ]
    assert json.loads(subscriber.line())["source"] == "s2"
    waiting = RunningCommand("publish", "--topics", definition, "--connect", broker, "--settle", "0")
    waiting.say('{"source": "s3", "value": 70}')
    assert json.loads(subscriber.line())["source"] == "s3"
    assert waiting.end(signal.SIGINT) == (0, "", "")
    assert subscriber.end(signal.SIGINT) == (0, "", "")


SETTLES = (0.5, 2, 8, 32, 128)
"""Seconds for a subscription to come, which nobody sees: a slow machine needs the longer ones."""


def test_three_publishers_in_sequence_cause_a_start_and_an_end(broker, definition, holdfast):
    """Each publisher sends one event and ends in order; its event still counts, and nothing is lost."""
    attic = RunningCommand("broker", "--name", "attic", "--listen", "127.0.0.1:0", "--connect", broker)
    address = attic.line().split()[-1]
    for at, home in ((broker, "hub"), (address, "attic")):
        subscriber = RunningCommand("subscribe", definition, "--only", "Warm", "--connect", at)
        assert subscriber.line("stderr") == f"subscribed at '{home}'\n"
        await_status: dict[str, list] = defaultdict(list)
        for settle in SETTLES:
            source = f"{home} {settle}"
            for value in (31, 29, 20):
                options = ("--connect", broker, "--settle", str(settle))
                ran = holdfast("publish", *events(value, source=source), *options)
                assert (ran.status, ran.err) == (0, "1 event sent\n")
            while len(await_status[source]) < 2 and subscriber.has_more(patience=settle):
                one = json.loads(subscriber.line())
                await_status[one["source"]].append(one)
            if len(await_status[source]) == 2:
                break
        assert [(n["status"], n["attributes"]["value"]) for n in await_status[source]] == [
            ("ingress", 31.0),
            ("egress", 20.0),
        ]
        start, end = await_status[source]
        assert end["since"] == start["time"]
        subscriber.end()
    attic.end()


def test_a_filtering_publisher_sends_only_starts_and_ends(definition, holdfast):
    """Of twenty readings two arrive at the broker, beside the advertisement of the filter."""
    hub = RunningCommand("broker", "--name", "hub", "--listen", "127.0.0.1:0")
    address = hub.line().split()[-1]
    subscriber = subscribe(address, definition, "--only", "Warm")
    lines = events(*[24] * 5, 26, *[27] * 7, 21, *[20] * 6)

    def messages_received() -> int:
        return int(json.loads(holdfast("broker", "--ask", address).out)["received"])

    def comes(*options: str) -> int:
        """How much comes to the broker, when it has come."""
        before = messages_received()
        ran = holdfast("publish", *lines, "--connect", address, *options)
        assert (ran.status, ran.err) == (0, "20 events sent\n")
        assert [json.loads(subscriber.line())["attributes"]["value"] for _ in range(2)] == [26.0, 21.0]
        return messages_received() - before

    all_that_is_output = comes("--settle", "0")
    filtered = (comes("--filter", "--settle", str(settle)) for settle in SETTLES)
    assert any(some <= all_that_is_output - 10 for some in filtered)
    subscriber.end()
    hub.end()


def test_a_run_in_which_every_line_is_rejected_fails(broker, holdfast):
    number = "9" * 400
    lines = [json.dumps({"source": "s"}), "oops", f'{{"topic": "T", "source": "s", "value": {number}}}']
    ran = holdfast("publish", *lines, "--connect", broker, "--settle", "0")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.splitlines() == [
        "warning: line 1: it has no topic; add one, or give --topic",
        "warning: line 2: not a JSON object: JSON is malformed: invalid character (byte 0)",
        "warning: line 3: value 99999999999999999999… has 400 digits; a number has 308 at most",
        "0 events sent, 3 lines rejected",
    ]
    ran = holdfast("publish", lines[1], *events(1), "--connect", broker, "--settle", "0")
    assert ran.status == 0


def test_with_strict_the_first_bad_line_ends_the_run(broker, holdfast):
    ran = holdfast(
        "publish", *events(1), "oops", *events(2), "--connect", broker, "--settle", "0", "--strict"
    )
    assert ran.status == 1
    assert "line 2: not a JSON object" in ran.err


def test_a_publisher_can_wait_for_a_broker_that_starts_later(holdfast):
    address = f"127.0.0.1:{free_port()}"
    early = RunningCommand("publish", *events(1), "--connect", address, "--settle", "0", "--wait")
    late = RunningCommand("broker", "--name", "late", "--listen", address)
    late.line()
    status, _, err = early.rest()
    assert (status, err.splitlines()[-1]) == (0, "1 event sent")
    late.end()


def test_a_subscriber_survives_the_end_of_its_broker(definition, holdfast):
    first = RunningCommand("broker", "--name", "hub", "--listen", "127.0.0.1:0")
    address = first.line().split()[-1]
    subscriber = subscribe(address, definition, "--only", "Warm")
    holdfast("publish", *events(26), "--connect", address, "--settle", "0")
    assert json.loads(subscriber.line())["status"] == "ingress"
    first.process.kill()
    first.rest()
    unknown = json.loads(subscriber.line())
    assert (unknown["status"], unknown["scope"], unknown["attributes"]) == ("unknown", "s1", {})
    second = RunningCommand("broker", "--name", "hub", "--listen", address)
    assert second.line() == f"listening on {address}\n"
    while not subscriber.has_more():
        holdfast("publish", *events(27), "--connect", address)
    known = json.loads(subscriber.line())
    assert (known["status"], known["attributes"]) == ("known", {"value": 27.0})
    assert known["since"] == unknown["since"]
    subscriber.end()
    second.end()


MUGGY = """
topic Temperature (value float)
topic Humidity (value float)
state Muggy
  A = Temperature
  B = Humidity
  enter A.value > 25 && B.value > 70   set humidity = B.value
  exit  A.value < 22
correlate Storm within 5 min  Temperature > 25  Humidity > 70
"""
STORY = [("Temperature", 26), ("Humidity", 80), ("Temperature", 27), ("Temperature", 20), ("Humidity", 60)]
"""A reading each minute: it gets muggy in the second, and ends in the fourth."""


class House:
    """A hub with three more brokers; a thermometer in the attic, a hygrometer in the cellar, a subscriber
    in the office, and a subscriber of all readings at the hub."""

    def __init__(self, definition: Path) -> None:
        self.at = {
            "hub": RunningCommand("broker", "--name", "hub", "--listen", "127.0.0.1:0").line().split()[-1]
        }
        for name in ("attic", "cellar", "office"):
            options = ("--listen", "127.0.0.1:0", "--connect", self.at["hub"])
            self.at[name] = RunningCommand("broker", "--name", name, *options).line().split()[-1]
        self.subscriber = RunningCommand("subscribe", definition, "--connect", self.at["office"])
        self.listener = RunningCommand("subscribe", "--where", "value > -300", "--connect", self.at["hub"])
        for running in (self.subscriber, self.listener):
            running.line("stderr")
        self.sensors = {
            topic: RunningCommand("publish", "--topics", definition, "--connect", self.at[home])
            for topic, home in (("Temperature", "attic"), ("Humidity", "cellar"))
        }
        self.known: set[str] = set()

    def tell(self, hour: int) -> list[str]:
        """Publish all readings, each when the previous one has arrived at the hub; return the lines."""
        lines = []
        for minute, (topic, value) in enumerate(STORY):
            time = f"2026-07-01T{hour:02}:{minute:02}:00.000000Z"
            reading = {"topic": topic, "source": topic[0], "time": time, "sequence": 100 * hour + minute}
            lines.append(json.dumps({**reading, "value": value}))
            self.say(topic, lines[-1], time)
        return lines

    def say(self, topic: str, line: str, time: str) -> None:
        """Publish a reading and wait until it is at the hub. The first of a topic is repeated, because its
        broker may not have the subscription yet."""
        self.sensors[topic].say(line)
        received = ""
        while received != time:
            if topic in self.known or self.listener.has_more(patience=0.2):
                received = json.loads(self.listener.line())["time"]
            else:
                self.sensors[topic].say(line)
        self.known.add(topic)


def test_conditions_over_publishers_at_two_brokers_emit_what_a_replay_emits(tmp_path, holdfast):
    """The readings are published until their end arrives. After that all brokers know each other, and the
    same readings must give the exact notifications."""
    definition = tmp_path / "muggy.hf"
    definition.write_text(MUGGY)
    house = House(definition)
    first: set[tuple[str, str]] = set()
    hour = 0
    while not {("Muggy", "egress"), ("Storm", "atomic")} <= first:
        hour += 1
        house.tell(hour)
        while house.subscriber.has_more(patience=0.2):
            line = json.loads(house.subscriber.line())
            first.add((line["subscription"], line["status"]))
    readings = tmp_path / "readings.jsonl"
    readings.write_text("".join(f"{line}\n" for line in house.tell(hour + 1)))
    replayed = holdfast("replay", definition, "--input", readings).out.splitlines(keepends=True)
    assert len(replayed) == 5
    await_status: list[str] = []
    while len(await_status) < len(replayed):
        line = house.subscriber.line()  # it may be one of the hour before
        await_status += [line] * (f"T{hour + 1:02}:" in json.loads(line)["time"])
    assert sorted(await_status) == sorted(replayed)
    assert json.loads(holdfast("broker", "--ask", house.at["hub"]).out)["routing: conditions run here"] == 2


def test_a_condition_restarts_when_the_broker_that_runs_it_dies(tmp_path, holdfast):
    definition = tmp_path / "high.hf"
    definition.write_text(
        "topic Temperature (value float)\n"
        "state High  A = Temperature each source  enter A.value > 25  exit A.value < 22\n"
    )
    hub = RunningCommand("broker", "--name", "hub", "--listen", "127.0.0.1:0").line().split()[-1]
    attic = RunningCommand(
        "broker", "--name", "attic", "--listen", "127.0.0.1:0", "--connect", hub, "--retry", "0.1"
    )
    address = attic.line().split()[-1]
    subscriber = subscribe(hub, definition)
    sensor = RunningCommand("publish", "--topics", definition, "--connect", address, "--source", "s1")

    def next_status() -> tuple[str, str]:
        while not subscriber.has_more(patience=0.2):
            sensor.say('{"value": 30}')
        line = json.loads(subscriber.line())
        return line["status"], line["scope"]

    assert next_status() == ("ingress", "s1")
    until(lambda: "routing: conditions run here" in holdfast("broker", "--ask", address).out)
    attic.process.kill()
    attic.rest()
    assert json.loads(subscriber.line())["status"] == "unknown"
    RunningCommand("broker", "--name", "attic", "--listen", address, "--connect", hub).line()
    assert next_status() == ("ingress", "s1")


def test_a_program_that_uses_only_xml_and_sockets_can_take_part(broker, definition):
    """The clients of the thesis open a socket, write elements, and read elements."""
    host, port = broker.rsplit(":", 1)
    with socket.create_connection((host, int(port)), PATIENCE) as listener:
        listener.sendall(
            b'<ISCAConfig><Registration request="true"><Notification/></Registration></ISCAConfig>'
            b'<ISCAMsg><Subscription><ac name="speed" type="long" op="ANY"/></Subscription></ISCAMsg>'
        )
        received = listener.recv(1 << 16)
        assert b'<ISCAConfig><Registration reply="true">' in received or b"request" in received
        with socket.create_connection((host, int(port)), PATIENCE) as sensor:
            while b"</ISCAMsg>" not in received:
                sensor.sendall(b"<ISCAMsg><Notification>")
                sensor.sendall(b'<av name="speed" type="long" value="62"/></Notification></ISCAMsg>')
                received += listener.recv(1 << 16)
    assert b'<av name="speed" type="long" value="62" />' in received


def test_a_broker_reports_its_statistics(broker, holdfast):
    ran = holdfast("broker", "--ask", broker)
    assert ran.status == 0
    assert json.loads(ran.out)["name"] == "hub"
    assert json.loads(ran.out)["internal errors"] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["broker"], "a broker needs a name, unique in its overlay: --name NAME"),
        (["broker", "--name", "b", "--listen", "here"], "--listen here: write it as HOST:PORT"),
        (["broker", "--name", "b", "--when-full", "drop"], "--when-full drop: there is no such choice here"),
        (["broker", "--name", "b", "--max-frame", "1"], "--max-frame 1: at least 1024 bytes"),
        (["broker", "--name", "b", "--tls-cert", "x"], "--tls-cert and --tls-key belong together"),
        (["broker", "--name", "b", "--token-file", "nowhere"], "--token-file nowhere: No such file"),
        (["subscribe"], "give a definition (APP.hf), or a filter: --where"),
        (["subscribe", "--where", "a > 1 || b > 2"], "joined by '&&'"),
        (["subscribe", "--where", "a >"], "--where:1:"),
        (["publish", "{}", "--wire", "soap"], "--wire soap: there is no such choice here"),
    ],
)
def test_wrong_use_of_the_overlay_commands_is_explained(arguments, message, holdfast):
    ran = holdfast(*arguments)
    assert ran.status == 2
    assert message in ran.err


def test_an_unknown_subscription_of_a_definition_is_named(definition, holdfast):
    ran = holdfast("subscribe", definition, "--only", "Warn")
    assert (ran.status, "Did you mean 'Warm'?" in ran.err) == (2, True)


def test_an_unreachable_broker_is_named_with_its_address(holdfast):
    address = f"127.0.0.1:{free_port()}"
    ran = holdfast("publish", *events(1), "--connect", address)
    assert ran.status == 1
    assert f"error: {address}:" in ran.err
    assert "holdfast broker" in ran.err


def test_an_occupied_port_is_named(broker, holdfast):
    ran = holdfast("broker", "--name", "second", "--listen", broker)
    assert ran.status == 2
    assert f"--listen {broker}: " in ran.err
    assert "address already in use" in ran.err.lower()


# --- chaos ---


async def ordeal(folder: Path, rounds: list[list[str]], plan: Plan = EIGHT) -> dict[str, int]:
    """Rounds of failures of an overlay of processes, with garbage from a stranger to each of them; the
    numbers of published, received and lost events."""
    async with Overlay(folder, plan) as overlay:
        chaos = Chaos(overlay)
        try:
            await chaos.settled()
            for n, failed in enumerate(rounds):
                await chaos.good_times()
                for broker in overlay.brokers.values():
                    await nonsense(broker.address, n)
                await chaos.bad_times(failed)
            await chaos.good_times()
            await chaos.the_end()
        finally:
            await chaos.stop()
    chaos.require_paired()
    return chaos.account()


@pytest.mark.parametrize(
    ("plan", "rounds"),
    [
        (FOUR, [["wire b2"], ["b3", "wire b4"]]),
        pytest.param(EIGHT, [["wire b2"], ["b3"], ["b5", "wire b8"]], marks=pytest.mark.soak),
    ],
    ids=["four brokers", "eight brokers"],
)
def test_only_messages_that_cross_a_failure_are_lost_and_none_is_repeated(tmp_path, plan, rounds):
    account = asyncio.run(ordeal(tmp_path, rounds, plan))
    assert account["lost"] > 0  # how much depends on how long a failure lasts
    assert account["heard"] >= account["wanted in good times"] > 0


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
def test_a_long_random_series_of_failures_loses_only_messages_that_cross_them(tmp_path, seed):
    rng = random.Random(seed)
    rounds = [rng.sample(EIGHT.breakable, rng.choice([1, 1, 2, 3])) for _ in range(25)]
    account = asyncio.run(ordeal(tmp_path, rounds))
    print(account)
    assert account["lost"] > 0
    assert account["heard"] >= account["wanted in good times"] > 0


@pytest.mark.soak
def test_fifty_clients_at_three_brokers_stay_exact_while_the_middle_one_is_killed(tmp_path):
    rng = random.Random(21)
    rounds = [["middle"] if n % 2 else rng.sample(LINE.breakable, 1) for n in range(40)]
    account = asyncio.run(ordeal(tmp_path, rounds, LINE))
    print(account)
    pairs = len(LINE.publishers) * len(LINE.listeners)
    assert account["wanted in good times"] == ((len(rounds) + 1) * 6 + 1) * pairs


@pytest.mark.soak
def test_a_million_tiny_messages_do_not_make_a_broker_grow(tmp_path):
    async def story() -> int:
        broker = BrokerProcess("hub", tmp_path / "hub.log", options=["--queue", "100"])
        await broker.start()
        assert broker.process is not None
        try:
            await flood(broker.address, 10_000)
            before = psutil.Process(broker.process.pid).memory_info().rss
            await flood(broker.address, 1_000_000)
            return psutil.Process(broker.process.pid).memory_info().rss - before
        finally:
            assert await broker.terminate() == 0

    assert asyncio.run(story()) < 16 << 20


def test_agents_watch_a_relationship_by_a_strategy_that_is_shipped_or_known(tmp_path, holdfast):
    """Two publishers, a broker that allows the strategy or its signer, and three subscribers with equal
    notifications."""
    from importlib.resources import files

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
    )

    ring = tmp_path / "ring.star"
    ring.write_text(files("holdfast").joinpath("examples/agents/ring.star").read_text())
    friends = tmp_path / "friends.hf"
    friends.write_text(
        'topic User ()\nrelate Meet (a User, b User) pairs ("ann", "bob")\n'
        "  when distance(a, b) <= 10 m until distance(a, b) >= 50 m using range_ring\n"
    )
    other, key, public = tmp_path / "other.star", tmp_path / "key.pem", tmp_path / "public.pem"
    other.write_text(ring.read_text() + "# signed\n")
    mine = Ed25519PrivateKey.generate()
    key.write_bytes(mine.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(mine.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    allowed = ("--allow-code", ring, "--allow-signer", public)
    hub = RunningCommand("broker", "--name", "hub", "--listen", "127.0.0.1:0", *allowed)
    at = hub.line().removeprefix("listening on ").strip()
    shipped = ("--ship", other, "--sign", key)
    receiver = [subscribe(at, friends, *more) for more in ((), ("--ship", ring), shipped)]
    walkers = {
        name: RunningCommand(
            "publish", "--connect", at, "--topics", friends, "--topic", "User", "--source", name
        )
        for name in ("ann", "bob")
    }

    def say(name: str, second: int, x: float) -> None:
        line = {"time": f"2026-01-01T00:00:{second:02}Z", "x": x, "y": 0.0}
        walkers[name].say(json.dumps(line))

    second = 0
    for x in (5.0, 90.0):  # repeat both positions until they have arrived
        await_status: list[dict] = []
        for one in receiver:
            while not one.has_more(patience=0.3):
                second += 1
                say("ann", second, 0.0)
                say("bob", second, x)
            await_status.append(json.loads(one.line()))
        assert {row["status"] for row in await_status} == {"ingress" if x == 5.0 else "egress"}
        assert {row["scope"] for row in await_status} == {"ann,bob"}
        assert {row["attributes"]["distance"] for row in await_status} == {x}
    for code in (friends, other):  # an unsigned strategy
        refused = holdfast("subscribe", friends, "--connect", at, "--ship", code)
        assert refused.status == 2
        assert "--allow-code" in refused.err
    unshipped = holdfast("subscribe", friends, "--connect", at, "--sign", key)
    assert unshipped.status == 2
    assert "--sign signs what --ship ships" in unshipped.err


@pytest.mark.soak
def test_relationships_are_unknown_after_their_broker_is_killed_until_they_are_certain(tmp_path):
    """``kill -9`` of the broker beside one of two publishers, and another in its place."""
    friends = tmp_path / "friends.hf"
    friends.write_text(
        'topic User ()\nrelate Meet (a User, b User) pairs ("ann", "bob")\n'
        "  when distance(a, b) <= 10 m until distance(a, b) >= 50 m using range_ring (volatility a 2)\n"
    )
    hub = RunningCommand("broker", "--name", "hub", "--listen", "127.0.0.1:0").line().split()[-1]
    edge = f"127.0.0.1:{free_port()}"

    def beside(at: str, name: str) -> RunningCommand:
        return RunningCommand(
            "publish", "--connect", at, "--topics", friends, "--topic", "User", "--source", name
        )

    def begin() -> tuple[RunningCommand, RunningCommand]:
        broker = RunningCommand("broker", "--name", "edge", "--listen", edge, "--connect", hub)
        assert broker.line().split()[-1] == edge
        return broker, beside(edge, "ann")

    receiver, bob = subscribe(hub, friends), beside(hub, "bob")
    seconds = count(1)

    def await_status(ann: RunningCommand, x: float) -> dict:
        """The next notification while both positions are published again and again."""
        while not receiver.has_more(patience=0.3):
            at = (datetime(2026, 1, 1) + timedelta(seconds=next(seconds))).isoformat()
            ann.say(json.dumps({"time": at, "x": 0.0, "y": 0.0}))
            bob.say(json.dumps({"time": at, "x": x, "y": 0.0}))
        return json.loads(receiver.line())

    broker, ann = begin()
    assert await_status(ann, 5.0)["status"] == "ingress"
    broker.end(signal.SIGKILL)
    assert json.loads(receiver.line())["status"] == "unknown"
    ann.process.kill()
    broker, ann = begin()
    again = await_status(ann, 6.0)
    assert (again["status"], again["attributes"]["distance"]) == ("ingress", 6.0)
    assert await_status(ann, 90.0)["status"] == "egress"
