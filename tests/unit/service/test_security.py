"""Attacks against a service, each by its name."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from contextlib import suppress
from functools import partial

import httpx
import pytest

from holdfast.errors import UsageError
from holdfast.model.event import Event
from holdfast.service.api import guard
from holdfast.service.api.access import digest, may, new_token, user_with_token
from holdfast.service.api.guard import Rate, RequestLimits, action
from holdfast.service.config import Config, UserPart, WebhookPart
from holdfast.service.feeds.submission import IncomingEvent
from holdfast.service.intake import Submission
from holdfast.service.serve import Address, ServicePlan, require_safe
from holdfast.service.sinks.http import require_allowed, require_outside
from holdfast.service.sinks.sink import Unavailable
from support.web import TOKENS, Receiver

PATHS = [
    ("GET", "/api/conditions"),
    ("GET", "/api/notifications"),
    ("GET", "/api/events"),
    ("GET", "/api/status"),
    ("GET", "/api/definition"),
    ("GET", "/api/readings?topic=Temperature"),
    ("GET", "/api/rejects"),
    ("GET", "/metrics"),
    ("GET", "/api/openapi.json"),
    ("POST", "/api/readings"),
    ("POST", "/api/check"),
    ("POST", "/api/dry-run"),
    ("POST", "/api/acknowledge"),
    ("POST", "/api/mute"),
    ("PUT", "/api/definition"),
    ("POST", "/api/subscriptions"),
    ("DELETE", "/api/subscriptions/Warm"),
]


def bearer(token):
    return {"authorization": f"Bearer {token}"}


def test_requests_without_a_token_are_refused(asked):
    async def story(client, site):
        for method, path in PATHS:
            answer = await client.request(method, path)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer"), path
        assert (await client.get("/health")).status_code == 200
        assert (await client.get("/")).status_code == 200, "the page itself says nothing"

    asked(story, users=True)


def test_requests_with_a_wrong_token_are_refused(asked):
    async def story(client, site):
        wrong = ["nonsense", TOKENS["edit"] + "x", digest(TOKENS["edit"]), "\xff"]
        for token in wrong:
            header = {b"authorization": b"Bearer " + token.encode("latin-1")}
            assert (await client.get("/api/conditions", headers=header)).status_code == 401
        basic = {"authorization": f"Basic {TOKENS['edit']}"}
        assert (await client.get("/api/conditions", headers=basic)).status_code == 401
        assert (await client.get("/api/conditions", headers=bearer(TOKENS["see"]))).status_code == 200

    asked(story, users=True, limits={"failures": 1000})


@pytest.mark.parametrize(
    ("role", "wanted"),
    [
        ("send", "POST /api/readings"),
        ("see", "GET /api/status"),
        ("acknowledge", "POST /api/mute"),
        ("edit", ""),
    ],
)
def test_requests_above_the_role_of_a_user_are_refused(asked, role, wanted):
    async def story(client, site):
        refused = set()
        for method, path in PATHS:
            if path != "/api/events":
                answer = await client.request(method, path, headers=bearer(TOKENS[role]))
                refused |= {f"{method} {path}"} if answer.status_code == 403 else set()
        assert wanted not in refused
        allowed = {f"{method} {path}" for method, path in PATHS} - refused
        for one in allowed:
            method, _, path = one.partition(" ")
            assert role == "edit" or action(method, path.partition("?")[0]) != "edit"
        assert ("PUT /api/definition" in refused) == (role != "edit")
        assert ("POST /api/readings" in refused) == (role in ("see", "acknowledge"))
        assert ("GET /api/status" in refused) == (role == "send")

    asked(story, users=True)


def test_requests_from_another_origin_are_refused(asked):
    async def story(client, site):
        here = str(client.base_url).removeprefix("http://").rstrip("/")
        for origin in ("https://evil.example.org", "null", f"http://{here}.evil.example.org"):
            answer = await client.post("/api/readings", headers={"origin": origin}, content="{}")
            assert answer.status_code == 403
            assert "access-control-allow-origin" not in answer.headers
        same = await client.get("/api/conditions", headers={"origin": f"http://{here}"})
        assert same.status_code == 200
        assert "access-control-allow-origin" not in same.headers

    asked(story)


def test_requests_under_a_foreign_host_name_are_refused(asked):
    """DNS rebinding: a page of another site whose name was made to mean 127.0.0.1."""

    async def story(client, site):
        answer = await client.get("/api/conditions", headers={"host": "evil.example.org"})
        assert answer.status_code == 421
        named = await client.get("/api/conditions", headers={"host": "sensors.example.org:80"})
        assert named.status_code == 200

    asked(story, hosts=["sensors.example.org"])


@pytest.mark.parametrize(
    "path",
    [
        "/static/../../config.py",
        "/static/%2e%2e/%2e%2e/config.py",
        "/static/..%2f..%2fconfig.py",
        "/static//etc/passwd",
        "/static/....//config.py",
        "/../../../../etc/passwd",
    ],
)
def test_path_traversal_is_refused(asked, path):
    async def story(client, site):
        reader, writer = await asyncio.open_connection(client.base_url.host, client.base_url.port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()
        status = int(answer.split(b" ")[1])
        assert status in (400, 404, 405)
        assert b"serve.toml" not in answer
        assert b"root:" not in answer

    asked(story)


@pytest.mark.parametrize(
    "naming",
    [
        'gazetteer "{}"\ntopic T (value float)',
        'topic T (value float)\ntable L "{}" (source text, high float)',
        'topic T (value float)\nstate S on T [value > 1; value < 0] per source roster "{}"',
        "topic T (value float)\nstate S on T [value > 1; value < 0] per source\n"
        'state Some = at least 2 of S roster "{}"',
        'topic T ()\nrelate Near (a T, b T) pairs "{}" when distance(a, b) <= 10 m',
        'topic T ()\ngroup G of T "{}"',
    ],
    ids=["gazetteer", "table", "roster", "roster of a count", "pairs", "group"],
)
def test_a_definition_can_read_only_files_of_the_declared_folder(asked, tmp_path, naming):
    """Neither elsewhere nor beside the definition, where passwords may be; errors show nothing of them."""
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "link").symlink_to(tmp_path / "broker.password")
    (tmp_path / "broker.password").write_text("secret,words\nroot,words\n")
    paths = ["/etc/passwd", "../../../etc/passwd", "x/../../etc/passwd", "tables/../../../etc/passwd"]

    async def story(client, site):
        for path in (*paths, "broker.password", "./broker.password", "tables/link", "data/service.db"):
            text = naming.format(path)
            for url in ("/api/check", "/api/dry-run", "/api/explain"):
                for role in ("see", "edit"):
                    answer = await client.post(url, json={"text": text}, headers=bearer(TOKENS[role]))
                    assert "in no declared folder" in answer.text
                    assert "root" not in answer.text
                    assert "words" not in answer.text
            saved = await client.put("/api/definition", json={"text": text}, headers=bearer(TOKENS["edit"]))
            assert saved.status_code == 422

    asked(story, users=True, files="tables")
    asked(story, users=True)


@pytest.mark.parametrize("role", ["see", "acknowledge", "edit"])
def test_errors_show_file_contents_only_to_users_that_may_change_definitions(asked, tmp_path, role):
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "rooms.csv").write_text("secret,words\na,b\n")
    text = 'topic T (value float)\nstate S on T [value > 1; value < 0] per source roster "tables/rooms.csv"'

    async def story(client, site):
        answer = await client.post("/api/check", json={"text": text}, headers=bearer(TOKENS[role]))
        (error,) = answer.json()["errors"]
        assert error["line"] == 2
        assert ("secret" in error["message"]) == (role == "edit")
        assert ("users with the role 'edit' see why" in error["message"]) == (role != "edit")
        (tmp_path / "tables" / "rooms.csv").write_text("source\na\n")
        answer = await client.post("/api/check", json={"text": text}, headers=bearer(TOKENS[role]))
        assert answer.json()["ok"]
        wrong = await client.post("/api/check", json={"text": text[:30]}, headers=bearer(TOKENS[role]))
        assert "see why" not in wrong.text, "no file has anything to do with it"

    asked(story, users=True, files="tables")


def test_a_definition_over_http_may_name_the_files_of_the_running_one(asked, definition, tmp_path):
    (tmp_path / "sensors.csv").write_text("source\ns1\n")
    definition.write_text(definition.read_text().replace("per source", 'per source roster "sensors.csv"'))

    async def story(client, site):
        text = site.service.core.definition.replace("value > 25", "value > 24")
        assert (await client.post("/api/check", json={"text": text})).json()["ok"]
        assert (await client.put("/api/definition", json={"text": text})).status_code == 200

    asked(story)


def test_other_users_of_the_machine_cannot_read_the_data_folder(asked, definition, tmp_path):
    (tmp_path / "sensors.csv").write_text("source\ns1\n")
    definition.write_text(definition.read_text().replace("per source", 'per source roster "sensors.csv"'))

    async def story(client, site):
        await client.post("/api/readings", content='{"topic": "Temperature", "source": "s1", "value": 26}')
        await site.service.wait_until_evaluated()
        site.service.log.rotate(0)
        await site.service.on_engine(site.service.take_snapshot)
        site.service.snapshot_written.result()

    before = os.umask(0o022)
    try:
        asked(story)
        (tmp_path / "data" / "service.db").chmod(0o644)  # as an earlier version has left it
        asked(story)
    finally:
        os.umask(before)
    stored = [tmp_path / "data", *(tmp_path / "data").rglob("*")]
    assert {"service.db", "timeline.db", "lock", "sensors.csv"} <= {path.name for path in stored}
    assert {".wal", ".parquet", ".json"} <= {path.suffix for path in stored}
    assert [path for path in stored if path.stat().st_mode & 0o007] == []


def test_a_huge_body_is_refused(asked):
    async def story(client, site):
        output = await client.post("/api/readings", content=b"x" * 20_000)
        assert (output.status_code, "20,000" not in output.text) == (413, True)

        async def parts():
            for _ in range(100):
                yield b"x" * 1_000

        before = site.service.log.next
        with suppress(httpx.TransportError):  # or the connection is closed before all of it is sent
            assert (await client.post("/api/readings", content=parts())).status_code == 413
        assert site.service.log.next == before
        wrong = await client.post("/api/readings", headers={"content-length": "3"}, content=b"abc")
        assert wrong.status_code == 422

    asked(story, limits={"body": "10 kB"})


def test_a_slow_body_is_refused(asked):
    async def story(client, site):
        reader, writer = await asyncio.open_connection(client.base_url.host, client.base_url.port)
        writer.write(b"POST /api/readings HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")
        answer = await reader.readuntil(b"\r\n")
        assert answer.split(b" ")[1] == b"408"
        writer.close()
        assert (await client.get("/health")).status_code == 200, "others are not delayed"

    asked(story, limits={"seconds": 0.3})


def test_endless_headers_are_refused(asked):
    async def story(client, site):
        reader, writer = await asyncio.open_connection(client.base_url.host, client.base_url.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100_000)
        answer = await reader.read(100)
        assert answer == b"" or answer.split(b" ")[1] == b"400"
        writer.close()

    asked(story)


@pytest.fixture
def _at_once(monkeypatch):
    """Send all requests at one time, however long they take."""
    monkeypatch.setattr(guard, "Rate", partial(Rate, clock=lambda: 0.0))


@pytest.mark.usefixtures("_at_once")
def test_brute_force_of_tokens_is_slowed_down(asked):
    async def story(client, site):
        answers = [
            (await client.get("/api/status", headers=bearer(new_token()))).status_code for _ in range(8)
        ]
        assert answers == [401] * 5 + [429] * 3
        right = await client.get("/api/status", headers=bearer(TOKENS["edit"]))
        assert right.status_code == 429, "also the right one is not tried then"

    asked(story, users=True, limits={"failures": 5})


@pytest.mark.usefixtures("_at_once")
def test_too_many_requests_are_refused(asked):
    async def story(client, site):
        answers = [(await client.get("/health")).status_code for _ in range(5)]
        assert answers == [200] * 3 + [429] * 2

    asked(story, limits={"requests": 3})


def test_a_rate_recovers_with_time():
    now = 0.0
    rate = Rate(10, 60.0, lambda: now)
    for _ in range(10):
        assert not rate.is_full("a")
        rate.count("a")
    assert rate.is_full("a")
    assert not rate.is_full("b")
    now = 7.0
    assert not rate.is_full("a")


def test_header_injection_in_webhooks_is_refused(asked, tmp_path):
    """Names with line ends stay inside the body, which is JSON."""

    async def story(client, site):
        evil = 'x\r\nX-Evil: 1\r\n\r\n"}<'
        await site.service.submit(
            Submission([IncomingEvent(Event("Temperature", 1, evil, {"value": 26.0}, 1))])
        )
        while not receiver.requests:
            await asyncio.sleep(0.01)
        (request,) = receiver.requests
        assert "x-evil" not in request.headers
        assert json.loads(request.body)["notifications"][0]["scope"] == evil

    with Receiver() as receiver:
        hook = WebhookPart(name="hook", url=receiver.url, headers={"X-Mine": "yes"})
        asked(story, webhook=[hook], allowed_hosts=["127.0.0.1"])
        assert receiver.requests[0].headers["x-mine"] == "yes"


def test_a_webhook_does_not_follow_redirects(asked):
    """Server-side request forgery: a redirect to an address that is not on the list is not followed."""

    async def story(client, site):
        await site.service.submit(
            Submission([IncomingEvent(Event("Temperature", 1, "s", {"value": 26.0}, 1))])
        )
        while not site.sinks[0].dead_letter_count:
            await asyncio.sleep(0.01)
        (letter,) = (await client.get("/api/dead-letters")).json()
        assert letter["reason"].endswith("answers 302")

    with Receiver() as inner, Receiver(302, {"location": inner.url}) as outer:
        hook = WebhookPart(name="hook", url=outer.url)
        asked(story, webhook=[hook], allowed_hosts=["127.0.0.1"])
        assert inner.requests == []


def test_a_name_that_resolves_to_this_host_is_not_called(asked, monkeypatch):
    """Server-side request forgery by DNS: the list has the name, but not the address that it was made to
    resolve to."""
    found = socket.getaddrinfo
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda host, *rest, **more: found("127.0.0.1" if "hooks" in str(host) else host, *rest, **more),
    )

    async def story(client, site):
        await site.service.submit(
            Submission([IncomingEvent(Event("Temperature", 1, "s", {"value": 26.0}, 1))])
        )
        while not site.sinks[0].trouble:
            await asyncio.sleep(0.01)
        assert "hooks.example.org leads to 127.0.0.1" in site.sinks[0].trouble

    with Receiver() as receiver:
        hook = WebhookPart(name="hook", url=receiver.url.replace("127.0.0.1", "hooks.example.org"))
        asked(story, webhook=[hook], allowed_hosts=["hooks.example.org"])
        assert receiver.requests == []


@pytest.mark.parametrize(
    "address",
    ["169.254.169.254", "fe80::1%eth0", "::1", "127.8.8.8", "::ffff:169.254.169.254", "fd00:ec2::254"],
)
def test_names_do_not_expose_secrets(address):
    with pytest.raises(Unavailable, match="not called by a name"):
        require_outside("hooks.example.org", address)
    require_outside(address, address)
    require_outside("hooks.example.org", "10.0.0.1")
    require_outside("0:0:0:0:0:0:0:1", "::1")  # an address however it is written


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.org@evil.org/",
        "http://hooks.example.org:80@evil.org/",
        "http://hooks.example.org.evil.org/",
        "http://hooks.example.org%2eevil.org/",
        "http://hooks.example.org\\.evil.org/",
        "http://evil.org/@hooks.example.org",
        "http://hooks.example.org:80:80/",
        "http://hooks.example.org\n.evil.org/",
        "http://2130706433/",
        "http://[::ffff:127.0.0.1]/",
        "ftp://hooks.example.org/",
        "http:///hooks.example.org",
        "https://xn--/",
    ],
)
def test_an_address_that_only_resembles_an_allowed_one_is_refused(url):
    with pytest.raises(UsageError):
        require_allowed(url, ["hooks.example.org"])


def test_scripts_in_names_are_shown_as_text(asked):
    async def story(client, site):
        evil = "<script>alert(1)</script>"
        body = json.dumps({"topic": "Temperature", "source": evil, "value": 26})
        await client.post("/api/readings", content=body)
        await site.service.wait_until_evaluated()
        answer = await client.get("/api/conditions")
        assert answer.headers["content-type"] == "application/json"
        assert answer.json()[0]["scope"] == evil
        page = await client.get("/")
        policy = page.headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        assert page.headers["x-content-type-options"] == "nosniff"
        assert page.headers["x-frame-options"] == "DENY"

    asked(story)


def test_another_listen_address_requires_a_token(definition, tmp_path):
    for host in ("0.0.0.0", "192.0.2.1", "::", "example.org"):
        plan = ServicePlan(definition, tmp_path / "data", Address(host, 0), Config())
        with pytest.raises(UsageError, match="whoever can reach it"):
            require_safe(plan)
    user = UserPart(name="a", role="see", token=digest("x"))
    require_safe(ServicePlan(definition, tmp_path / "data", Address("0.0.0.0", 0), Config(user=[user])))


def test_tokens_are_long_and_stored_as_digests():
    token = new_token()
    assert len(token) > 40
    assert token not in digest(token)
    assert user_with_token((), token) is None
    from holdfast.service.api.access import User

    ann = User("ann", "see", digest(token))
    assert user_with_token([ann], token) == ann
    assert user_with_token([ann], digest(token)) is None
    assert (may(ann, "see"), may(ann, "edit"), may(ann, "send")) == (True, False, False)


def test_the_default_limits_of_body_and_time_are_small():
    limits = RequestLimits()
    assert limits.body <= 1 << 24
    assert limits.seconds <= 60


def test_an_incomplete_request_does_not_delay_others(asked):
    async def story(client, site):
        idle = [socket.create_connection((client.base_url.host, client.base_url.port)) for _ in range(50)]
        for one in idle:
            one.send(b"GET / HT")
        answers = await asyncio.gather(*(client.get("/health") for _ in range(20)))
        assert {answer.status_code for answer in answers} == {200}
        for one in idle:
            one.close()

    asked(story)
