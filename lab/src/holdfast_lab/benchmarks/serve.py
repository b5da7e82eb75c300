"""``holdfast serve`` behind Mosquitto, beside a paho consumer that does nothing with what it hears.

The same messages, published with quality 1 as fast as the broker takes them, are heard by both: how many a
second each takes.  Then, at half of what the service can take, how long it is from a publication to the
notification that it causes, with a thousand pages listening.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
        theirs = MESSAGES / _consumed(broker, MESSAGES)
        with _serving(Path(folder), broker) as (url, process):
            progress(f"the same to holdfast serve, {SUBSCRIPTIONS} subscriptions, durable log")
            ours = MESSAGES / _served(url, broker, MESSAGES)
            progress(f"{SECONDS:g} s at half of that, {PAGES:,} pages open")
            before = process.memory_info().rss
            told, heard, seen = asyncio.run(_latencies(url, broker, ours / 2))
            grown = process.memory_info().rss - before
    cut = quantiles(told, n=100)
    detail = {"rate": round(ours / 2), "notifications": len(told), "pages": seen, "heard by pages": heard}
    return [
        Row("messages/s, a paho consumer that does nothing", theirs, "/s"),
        Row("messages/s, holdfast serve", ours, "/s", detail={"subscriptions": SUBSCRIPTIONS}),
        times("holdfast serve to the consumer", ours / theirs, least=0.7),
        Row("publish to notification, median, at half of it", cut[49] * 1e3, "ms", detail=detail),
        Row("publish to notification, p99, at half of it", cut[98] * 1e3, "ms", "≤ 100 ms", cut[98] <= 0.1),
        Row("pages open on events", float(seen), "", f"{PAGES:,}", seen == PAGES),
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


def _publish(broker: tuple[str, int], number: int) -> None:
    """All of it, as fast as the broker takes it; in a process of its own."""
    client = _client("devices", broker)
    sent = [
        client.publish(
            f"{READINGS}/s{i % SOURCES}", f'{{"temperature": {20 + i % 7}.5, "sequence": {i}}}', qos=1
        )
        for i in range(number)
    ]
    sent[-1].wait_for_publish(600)
    client.disconnect()


def _published(broker: tuple[str, int], number: int) -> Any:
    process = multiprocessing.get_context("spawn").Process(target=_publish, args=(broker, number))
    process.start()
    return process


def _consumed(broker: tuple[str, int], number: int) -> float:
    """Seconds until a consumer has heard so many messages."""
    client, done = _client("consumer", broker), threading.Event()
    heard, begun = 0, 0.0

    def on_message(*_: Any) -> None:
        nonlocal heard, begun
        begun = begun or time.perf_counter()
        heard += 1
        if heard == number:
            done.set()

    client.on_message = on_message
    client.subscribe(f"{READINGS}/#", 1)
    time.sleep(0.5)
    publisher = _published(broker, number)
    done.wait(600)
    seconds = time.perf_counter() - begun
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
        time.sleep(0.5)
        yield place, psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


def _status(url: str) -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"{url}/api/status", timeout=60, trust_env=False).json()
    return found


def _served(url: str, broker: tuple[str, int], number: int) -> float:
    """Seconds from the first message that is in the log to the last that is evaluated."""
    publisher, begun = _published(broker, number), 0.0
    while True:
        status = _status(url)
        begun = begun or (time.perf_counter() if status["readings"] else 0.0)
        if status["readings"] >= number and not status["behind"]:
            break
        time.sleep(0.01)
    publisher.join()
    return time.perf_counter() - begun


async def _latencies(url: str, broker: tuple[str, int], rate: float) -> tuple[list[float], int, int]:
    """Seconds from publications to the notifications that they cause; how many pages heard how many."""
    heard: dict[str, float] = {}
    listener = _client("listener", broker)
    listener.on_message = lambda _c, _d, one: heard.setdefault(
        json.loads(one.payload)["source"], time.perf_counter()
    )
    listener.subscribe(EVENTS, 1)
    limits = httpx.Limits(max_connections=None)
    counts = [0] * PAGES
    async with httpx.AsyncClient(limits=limits, timeout=None, trust_env=False) as client:
        pages = [asyncio.create_task(_page(client, url, counts, i)) for i in range(PAGES)]
        await asyncio.sleep(PAGES / 100 + 2)
        sent = await asyncio.to_thread(_paced, broker, rate)
        await asyncio.sleep(2)
        for page in pages:
            page.cancel()
        await asyncio.gather(*pages, return_exceptions=True)
    listener.disconnect()
    listener.loop_stop()
    told = [heard[source] - at for source, at in sent.items() if source in heard]
    if len(told) < len(sent):
        raise AssertionError(f"{len(sent) - len(told)} of {len(sent)} notifications did not come")
    return told, sum(counts), sum(count > 0 for count in counts)


async def _page(client: httpx.AsyncClient, url: str, counts: list[int], i: int) -> None:
    await asyncio.sleep(i / 100)  # the service allows 200 requests a second
    async with client.stream("GET", f"{url}/api/events") as answer:
        async for line in answer.aiter_lines():
            counts[i] += line.startswith("data:")


def _paced(broker: tuple[str, int], rate: float) -> dict[str, float]:
    """Publish at a rate; ten times a second a reading starts a condition. When each was published."""
    client, sent = _client("paced", broker), dict[str, float]()
    begun, number = time.perf_counter(), 0
    while (now := time.perf_counter() - begun) < SECONDS:
        for _ in range(int(now * rate) - number):
            client.publish(f"{READINGS}/s{number % SOURCES}", '{"temperature": 20.5}', qos=1)
            number += 1
        if len(sent) < now * 10:
            source = f"alarm-{len(sent)}"
            sent[source] = time.perf_counter()
            client.publish(f"{READINGS}/{source}", '{"temperature": 100.5}', qos=1)
        time.sleep(0.002)
    client.disconnect()
    return sent
