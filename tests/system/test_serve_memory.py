"""``holdfast serve`` for an hour: readings come, conditions start and end, pages listen; its memory stays."""

from __future__ import annotations

import asyncio
import json
import os
import time
from datetime import UTC, datetime
from statistics import median

import httpx
import psutil
import pytest

from support.patience import PATIENCE
from support.served import Served

APP = """\
topic Climate (temperature float)
state Warm on Climate [temperature > 25; temperature < 22] per source
"""
SETTINGS = """\
[keep]
snapshot = "10 s"
seal = "2 min"
"""
SOURCES, RATE, PAGES = 200, 300, 100
MINUTES = float(os.environ.get("HOLDFAST_SOAK_MINUTES") or 60)


def readings(second):
    """A second of readings: of every fifteenth source the condition starts or ends."""
    for i in range(RATE):
        number = second * RATE + i
        flips = (number // (15 * SOURCES)) % 2 == 0
        yield {
            "topic": "Climate",
            "time": datetime.fromtimestamp(time.time() + i / 1e6, UTC).isoformat(),
            "source": f"room-{number % SOURCES}",
            "temperature": 30.0 if number % 15 == 0 and flips else 20.0,
        }


async def listen(client, url, received, i):
    async with client.stream("GET", f"{url}/api/events") as answer:
        async for line in answer.aiter_lines():
            received[i] += line.startswith("data:")


async def run_for_an_hour(service, process):
    """Memory in MiB every ten seconds, and the number of notifications that each page has received."""
    received, memory = [0] * PAGES, []
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(limits=limits, timeout=PATIENCE, trust_env=False) as client:
        open_ended = httpx.Timeout(60, read=None)
        async with httpx.AsyncClient(limits=limits, timeout=open_ended, trust_env=False) as pages:
            listening = [asyncio.create_task(listen(pages, service.url, received, i)) for i in range(PAGES)]
            started, second = time.monotonic(), 0
            while time.monotonic() - started < 60 * MINUTES:
                lines = "".join(json.dumps(one) + "\n" for one in readings(second))
                answer = await client.post(f"{service.url}/api/readings", content=lines)
                assert answer.status_code < 300, answer.text
                second += 1
                if second % 10 == 0:
                    memory.append(process.memory_info().rss / 2**20)
                if second % 300 == 0:
                    print(f"{second} s: {memory[-1]:.0f} MiB, {min(received):,} notifications", flush=True)
                await asyncio.sleep(max(0.0, started + second - time.monotonic()))
            for one in listening:
                one.cancel()
    return memory, received


@pytest.mark.soak
def test_memory_of_the_service_stays_flat_for_an_hour(tmp_path):
    definition, settings = tmp_path / "app.hf", tmp_path / "serve.toml"
    definition.write_text(APP)
    settings.write_text(SETTINGS)
    with Served(tmp_path, definition, "--config", settings) as service:
        memory, received = asyncio.run(run_for_an_hour(service, psutil.Process(service.pid)))
    sixth = max(1, len(memory) // 6)
    early, late = median(memory[sixth : 2 * sixth]), median(memory[-sixth:])
    print(f"{early:.0f} MiB in the second sixth, {late:.0f} in the last, {max(memory):.0f} at most")
    assert min(received) > 0
    assert late < 1.1 * early
