from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import httpx
import pytest

from holdfast.service.api.access import digest
from holdfast.service.config import Config, LimitsPart, UserPart
from holdfast.service.serve import Address, ServicePlan, serving
from support.patience import PATIENCE
from support.web import TOKENS

APP = """\
topic Temperature (value float)
topic Badge (name text)

# warm rooms
state  Warm on Temperature [value > 25; value < 22] per source
filter Hot  on Temperature where value > 30

state  John on Badge
  [name == "John"; name != "John"]
"""


@pytest.fixture
def definition(tmp_path):
    path = tmp_path / "app.hf"
    path.write_text(APP)
    return path


@pytest.fixture
def asked(definition, tmp_path):
    """Runs a story: a function of a client and a site."""

    def run(story, *, users=False, limits=None, **config):
        people = [UserPart(name=role, role=role, token=digest(token)) for role, token in TOKENS.items()]
        settings = Config(user=people if users else [], limits=LimitsPart(**(limits or {})), **config)
        plan = ServicePlan(definition, tmp_path / "data", Address("127.0.0.1", 0), settings, tmp_path)

        @asynccontextmanager
        async def client():
            async with serving(plan) as (site, address):
                base = f"http://{address}"
                async with httpx.AsyncClient(base_url=base, timeout=PATIENCE, trust_env=False) as caller:
                    yield caller, site

        async def whole():
            async with client() as (caller, site):
                await story(caller, site)

        asyncio.run(whole())

    return run
