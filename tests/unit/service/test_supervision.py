"""Feeds and sinks that end are started again, and that is visible."""

from __future__ import annotations

import asyncio

import httpx

from holdfast.service import supervision
from holdfast.service.serve import Address, ServicePlan, serving
from support.patience import PATIENCE


class Failing:
    """A feed that fails twice, then brings nothing."""

    connected = True
    runs = 0

    def __init__(self, _service):
        self.go_on = asyncio.Event()

    async def run(self):
        self.runs += 1
        if self.runs == 1:
            raise ZeroDivisionError("of its own")
        if self.runs == 2:
            return
        await asyncio.Event().wait()

    def serves(self, _topic):
        return True

    def read_until(self):
        return None

    def status(self):
        return {"name": "broken", "kind": "test", "connected": True, "caught_up": False, "lag": None,
                "trouble": None, "messages": 0, "waiting": 0, "dropped": 0}  # fmt: skip


def test_a_feed_that_ends_is_restarted_and_health_reports_it(definition, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(supervision, "FIRST_WAIT", 0.3)

    async def story():
        plan = ServicePlan(definition, tmp_path / "data", Address("127.0.0.1", 0), feeds=[Failing])
        async with serving(plan) as (site, address), httpx.AsyncClient(
            base_url=f"http://{address}", timeout=PATIENCE, trust_env=False
        ) as client, asyncio.timeout(PATIENCE):  # fmt: skip
            while (answer := await client.get("/health")).status_code == 200:
                await asyncio.sleep(0.01)
            assert "feed broken ended and is started again" in answer.json()["troubles"]["feed broken"]
            while (await client.get("/health")).status_code != 200:
                await asyncio.sleep(0.05)
            assert site.feeds[0].runs == 3
            (feed,) = (await client.get("/api/status")).json()["feeds"]
            assert (feed["restarts"], feed["ended"]) == (2, None)
            assert 'holdfast_restarts_total{part="broken"} 2' in (await client.get("/metrics")).text

    asyncio.run(story())
    assert "ZeroDivisionError: of its own" in caplog.text
