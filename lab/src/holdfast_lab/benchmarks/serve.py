"""``holdfast serve`` behind Mosquitto, beside a paho consumer that does nothing with what it hears.

The same messages, published with quality 1 faster than either can take them, are heard by both: how many a
second each takes.  Then, at half of what the service can take, how long it is from a publication to the
notification that it causes; and the same with a thousand pages listening.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import quantiles
from typing import Any

import httpx
import psutil

from holdfast.errors import UsageError

from . import Row, times
from .peers import mosquitto

MESSAGES = 40_000
SUBSCRIPTIONS = 100
SOURCES = 200
PAGES = 1_000
SECONDS = 20.0
READINGS, EVENTS = "holdfast/readings/Climate", "holdfast/events/#"


def definition(subscriptions: int = SUBSCRIPTIONS) -> str:
    """Conditions with bands of their own, of which few start at a time."""
    states = (
        f"state S{i} on Climate [temperature > {100 + i}; temperature < {99 + i}] per source"
        for i in range(subscriptions)
    )
    return "\n".join(["topic Climate (temperature float)", *states]) + "\n"


def run(progress: Callable[[str], None]) -> list[Row]:
    """Messages a second beside the consumer, latency at half of that, memory, pages."""
    if mosquitto.program() is None:
        raise UsageError("bench serve needs Mosquitto; on Debian or Ubuntu: sudo apt-get install mosquitto")
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder, mosquitto.running() as broker:
        progress(f"{MESSAGES:,} messages to a consumer that does nothing")
        theirs = MESSAGES / _measure_consumer(broker, MESSAGES)
        with _serving(Path(folder), broker) as (url, process):
            progress(f"the same to holdfast serve, {SUBSCRIPTIONS} subscriptions, durable log")
            ours = MESSAGES / _measure_service(url, broker, MESSAGES)
            progress(f"{SECONDS:g} s at half of that")
            alone, _ = _latencies(url, broker, ours / 2, 0)
            progress(f"the same with {PAGES:,} pages open")
            before = process.memory_info().rss
            sent, received = _latencies(url, broker, ours / 2, PAGES)
            grown = process.memory_info().rss - before
    seen = sum(count == len(sent) for count in received)
    cut, open_to_all = quantiles(alone, n=100), quantiles(sent, n=100)
    detail = {"rate": round(ours / 2), "notifications": len(alone)}
    pages = {"rate": round(ours / 2), "notifications": len(sent), "heard by each": min(received)}
    return [
        Row("messages/s, a paho consumer that does nothing", theirs, "/s"),
        Row("messages/s, holdfast serve", ours, "/s", detail={"subscriptions": SUBSCRIPTIONS}),
        times("holdfast serve to the consumer", ours / theirs, least=0.7),
        Row("publish to notification, median, at half of it", cut[49] * 1e3, "ms", detail=detail),
        Row("publish to notification, p99, at half of it", cut[98] * 1e3, "ms", "≤ 100 ms", cut[98] <= 0.1),
        Row("pages open on events", float(seen), "", f"{PAGES:,}", seen == PAGES, detail=pages),
        Row("publish to notification, median, with these pages", open_to_all[49] * 1e3, "ms"),
        Row("publish to notification, p99, with these pages", open_to_all[98] * 1e3, "ms"),
        Row("memory that it grew meanwhile", grown / 2**20, "MiB"),
    ]


# --- load ---


def _client(name: str, broker: tuple[str, int]) -> Any:
    import paho.mqtt.client as paho
    from paho.mqtt.enums import CallbackAPIVersion

    client = paho.Client(CallbackAPIVersion.VERSION2, name)
    client.max_inflight_messages_set(1_000)
    client.max_queued_messages_set(0)
    client.connect(*broker)
    client.loop_start()
    return client


def _subscribe_client(client: Any, channels: str, on_message: Callable[..., object]) -> None:
    """Let a client hear what is published there from now on: the broker has said that it will."""
    answered = threading.Event()
    client.on_message, client.on_subscribe = on_message, lambda *_: answered.set()
    client.subscribe(channels, 1)
    if not answered.wait(60):
        raise AssertionError(f"the broker does not answer who wants to hear {channels}")


def _publish(broker: tuple[str, int], number: int, start: Any) -> None:
    """All of it, as fast as the broker takes it, and when that began; in a process of its own."""
    messages = [
        (f"{READINGS}/s{i % SOURCES}", f'{{"temperature": {20 + i % 7}.5, "sequence": {i}}}')
        for i in range(number)
    ]
    start.value = time.perf_counter()
    mosquitto.publish(broker, messages)


def _start_publisher(broker: tuple[str, int], number: int) -> tuple[Any, Any]:
    """Who publishes, and when it began, by the clock that the processes of a machine share."""
    spawn = multiprocessing.get_context("spawn")
    start = spawn.Value("d", 0.0)
    process = spawn.Process(target=_publish, args=(broker, number, start))
    process.start()
    return process, start


def _measure_consumer(broker: tuple[str, int], number: int) -> float:
    """Seconds from the first message that is published to the last that a consumer hears."""
    client, done = _client("consumer", broker), threading.Event()
    received = 0

    def on_message(*_: Any) -> None:
        nonlocal received
        received += 1
        if received == number:
            done.set()

    _subscribe_client(client, f"{READINGS}/#", on_message)
    publisher, start = _start_publisher(broker, number)
    done.wait(600)
    seconds = time.perf_counter() - start.value
    publisher.join()
    client.disconnect()
    client.loop_stop()
    return seconds


@contextmanager
def _serving(folder: Path, broker: tuple[str, int]) -> Iterator[tuple[str, psutil.Process]]:
    """``holdfast serve`` as a process of its own; where it listens."""
    app = folder / "app.hf"
    app.write_text(definition(), encoding="utf-8")
    command = [sys.executable, "-m", "holdfast", "serve", str(app), "--listen", "127.0.0.1:0"]
    url = f"mqtt://{broker[0]}:{broker[1]}"
    process = subprocess.Popen([*command, "--mqtt", url], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        place = process.stdout.readline().split()[-1].rstrip("/")
        while not _status(place)["feeds"][0]["connected"]:
            time.sleep(0.1)
        yield place, psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


def _status(url: str) -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"{url}/api/status", timeout=60, trust_env=False).json()
    return found


def _measure_service(url: str, broker: tuple[str, int], number: int) -> float:
    """Seconds from the first message that is published to the last that is evaluated."""
    publisher, start = _start_publisher(broker, number)
    while (status := _status(url))["readings"] < number or status["behind"]:
        time.sleep(0.1)
    seconds = time.perf_counter() - start.value
    publisher.join()
    return seconds


def _latencies(url: str, broker: tuple[str, int], rate: float, pages: int) -> tuple[list[float], list[int]]:
    """Seconds from publications to the notifications that they cause; how many of them each page heard."""
    received: dict[str, float] = {}
    listener = _client("listener", broker)

    def on_message(_client: Any, _data: Any, one: Any) -> None:
        received.setdefault(json.loads(one.payload)["source"], time.perf_counter())

    _subscribe_client(listener, EVENTS, on_message)
    with _pages(url, pages) as counts:
        sent = _publish_paced(broker, rate, f"alarm-{pages}")
        _wait(lambda: len(received) == len(sent))
        listener.disconnect()
        listener.loop_stop()
        if len(received) < len(sent):
            raise AssertionError(f"{len(sent) - len(received)} of {len(sent)} notifications did not come")
        _wait(lambda: min(counts(), default=len(sent)) == len(sent))
        return [received[source] - at for source, at in sent.items()], counts()


def _wait(is_done: Callable[[], bool], seconds: float = 60) -> None:
    """Until it is done, or has been given the time to be."""
    end = time.perf_counter() + seconds
    while not is_done() and time.perf_counter() < end:
        time.sleep(0.1)


@contextmanager
def _pages(url: str, number: int) -> Iterator[Callable[[], list[int]]]:
    """So many pages that listen, in a process of their own; how many notifications each has heard."""
    if not number:
        yield list
        return
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_listen, args=(url, number, there))
    process.start()
    here.recv()

    def counts() -> list[int]:
        here.send("how many?")
        found: list[int] = here.recv()
        return found

    try:
        yield counts
    finally:
        process.terminate()
        process.join()


def _listen(url: str, number: int, pipe: Any) -> None:
    asyncio.run(_listening(url, number, pipe))


async def _listening(url: str, number: int, pipe: Any) -> None:
    """Open pages until each is answered; then say what they heard when asked."""
    counts = [-1] * number
    async with httpx.AsyncClient(
        limits=httpx.Limits(max_connections=None), timeout=None, trust_env=False
    ) as client:
        opened = [asyncio.create_task(_page(client, url, counts, i)) for i in range(number)]
        while -1 in counts:
            await asyncio.sleep(0.1)
        pipe.send("all are open")
        while not any(one.done() for one in opened):
            await asyncio.to_thread(pipe.recv)
            pipe.send(counts)
        await asyncio.gather(*opened)


async def _page(client: httpx.AsyncClient, url: str, counts: list[int], i: int) -> None:
    await asyncio.sleep(i / 100)  # the service allows 200 requests a second
    async with client.stream("GET", f"{url}/api/events") as answer:
        async for line in answer.aiter_lines():
            counts[i] = max(0, counts[i]) + line.startswith("data:")


def _publish_paced(broker: tuple[str, int], rate: float, name: str) -> dict[str, float]:
    """Publish at a rate; ten times a second a reading starts a condition. When each was published."""
    sent, number = dict[str, float](), 0
    with mosquitto.connect(broker, "paced") as peer:
        threading.Thread(target=_drain, args=(peer,), daemon=True).start()
        start = time.perf_counter()
        while (now := time.perf_counter() - start) < SECONDS:
            due = range(number, int(now * rate))
            messages = [
                mosquitto.message(i, f"{READINGS}/s{i % SOURCES}", '{"temperature": 20.5}') for i in due
            ]
            number = due.stop
            if len(sent) < now * 10:
                source = f"{name}-{len(sent)}"
                sent[source] = time.perf_counter()
                messages.append(mosquitto.message(0, f"{READINGS}/{source}", '{"temperature": 100.5}'))
            peer.sendall(b"".join(messages))
            time.sleep(0.002)
    return sent


def _drain(peer: socket.socket) -> None:
    """Take the broker's acknowledgements until the connection is closed."""
    with suppress(OSError):
        while peer.recv(1 << 16):
            pass
