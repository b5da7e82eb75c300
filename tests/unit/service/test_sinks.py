"""Deliveries to receivers: muted, refused and slow ones, and the levels of conditions."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.event import Event
from holdfast.model.instant import HOUR, MINUTE, SECOND, instant
from holdfast.service.config import AlertmanagerPart, WebhookPart
from holdfast.service.feeds.submission import IncomingEvent
from holdfast.service.intake import Submission
from holdfast.service.sinks import http
from holdfast.service.sinks.delivery import choose, isolate
from holdfast.service.sinks.message import alerts, publications
from holdfast.service.sinks.sink import Refusal
from holdfast.service.store import NotificationRow, StoreFull
from support.web import Receiver

NOON = instant("2026-06-21T12:00Z")
ALLOWED = {"allowed_hosts": ["127.0.0.1"]}
LEVELS = """topic Temperature (value float)
levels Heat on Temperature: warn [value > 25; value < 22], alarm [value > 30; value < 27] per source
"""
_numbers = count(1)


async def read(site, *values, source="s1", topic="Temperature", attribute="value", at=0):
    """Readings one second after the other, evaluated when it returns."""
    await site.service.submit(
        Submission(
            [
                IncomingEvent(
                    Event(topic, NOON + (at + i) * SECOND, source, {attribute: value}, next(_numbers))
                )
                for i, value in enumerate(values)
            ]
        )
    )
    await site.service.wait_until_evaluated()


async def quiet(site):
    """Wait until the first sink has had all, and has had time for what is due without a notification."""
    (delivery, *_) = site.sinks
    while delivery.position < site.service.hub.last:
        await asyncio.sleep(0.005)
    await asyncio.sleep(0.2)


def bodies(receiver):
    return [json.loads(request.body) for request in receiver.requests]


def statuses_at(receiver):
    """The notifications of a webhook, each with status and scope."""
    return [(n["status"], n["scope"]) for body in bodies(receiver) for n in body["notifications"]]


def labels(receiver):
    """Alerts that Alertmanager was sent: (name, scope, level, whether it is over)."""
    return [
        (one["labels"]["alertname"], one["labels"]["scope"], one["labels"].get("level"), one["endsAt"])
        for body in bodies(receiver)
        for one in body
    ]


@pytest.fixture
def webhook(asked):
    """Runs a story beside a webhook: a function of a client, a site and the receiver."""
    with Receiver() as receiver:

        def run(story, **more):
            hook = WebhookPart(name="hook", url=receiver.url)
            asked(lambda client, site: story(client, site, receiver), webhook=[hook], **ALLOWED, **more)

        yield run


@pytest.fixture
def alertmanager(asked):
    with Receiver() as receiver:

        def run(story, **more):
            manager = AlertmanagerPart(name="alerts", url=receiver.url)
            asked(
                lambda client, site: story(client, site, receiver), alertmanager=[manager], **ALLOWED, **more
            )

        yield run


def at_noon(site):
    """Let the service's clock stand still at noon; the function that moves it on."""
    now = [NOON]
    site.service.clock = lambda: now[0]

    def go_on(microseconds):
        now[0] += microseconds
        site.service.hub.wake()

    return go_on


async def mute(client, scope="s1", seconds=60, name="Warm"):
    answer = await client.post("/api/mute", json={"subscription": name, "scope": scope, "seconds": seconds})
    assert answer.status_code == 200, answer.text


# --- mutes --------------------------------------------------------------------------------------------------


def test_a_condition_that_started_while_muted_is_announced_when_the_mute_expires(webhook):
    async def story(client, site, receiver):
        go_on = at_noon(site)
        await mute(client)
        await read(site, 26)
        await quiet(site)
        assert statuses_at(receiver) == []
        go_on(61 * SECOND)
        while not statuses_at(receiver):
            await asyncio.sleep(0.01)
        await read(site, 20, at=70)
        await quiet(site)
        assert statuses_at(receiver) == [("ingress", "s1"), ("egress", "s1")]

    webhook(story)


def test_a_condition_that_started_and_ended_while_muted_is_not_sent(webhook):
    async def story(client, site, receiver):
        go_on = at_noon(site)
        await mute(client)
        await read(site, 26, 20)
        await quiet(site)
        go_on(61 * SECOND)
        await quiet(site)
        assert statuses_at(receiver) == []

    webhook(story)


def test_the_end_of_an_episode_started_before_a_mute_is_sent_at_once(webhook):
    async def story(client, site, receiver):
        at_noon(site)
        await read(site, 26)
        await mute(client)
        await read(site, 20, at=10)
        await quiet(site)
        assert statuses_at(receiver) == [("ingress", "s1"), ("egress", "s1")]

    webhook(story)


def test_a_withheld_condition_is_announced_when_the_mute_expires_while_the_service_is_down(webhook):
    async def before(client, site, receiver):
        at_noon(site)
        await mute(client)
        await read(site, 26)
        await quiet(site)
        assert statuses_at(receiver) == []

    async def after(client, site, receiver):
        at_noon(site)(HOUR)
        while not statuses_at(receiver):
            await asyncio.sleep(0.01)
        assert statuses_at(receiver) == [("ingress", "s1")]

    webhook(before)
    webhook(after)


def test_removing_a_mute_announces_active_conditions(webhook):
    async def story(client, site, receiver):
        at_noon(site)
        await mute(client, seconds=10**6)
        await read(site, 26)
        await quiet(site)
        await client.request("DELETE", "/api/mute", json={"subscription": "Warm", "scope": "s1"})
        while not statuses_at(receiver):
            await asyncio.sleep(0.01)
        assert statuses_at(receiver) == [("ingress", "s1")]

    webhook(story)


def test_a_mute_without_a_scope_mutes_all_scopes(webhook):
    async def story(client, site, receiver):
        at_noon(site)
        await mute(client, scope=None)
        await read(site, 26, source="s1")
        await read(site, 26, source="s2")
        await quiet(site)
        assert statuses_at(receiver) == []
        rows = (await client.get("/api/conditions")).json()
        assert [row["muted"]["who"] for row in rows] == ["local", "local"]

    webhook(story)


def test_levels_that_rise_while_muted_are_announced_at_their_current_level(webhook, definition):
    definition.write_text(LEVELS)

    async def story(client, site, receiver):
        go_on = at_noon(site)
        await read(site, 26)
        await quiet(site)
        await mute(client, name="Heat")
        await read(site, 31, 26, 31, at=10)
        await quiet(site)
        assert statuses_at(receiver) == [("ingress", "s1")]
        go_on(61 * SECOND)
        while len(statuses_at(receiver)) < 2:
            await asyncio.sleep(0.01)
        assert statuses_at(receiver)[1:] == [("raised", "s1")]
        assert bodies(receiver)[-1]["notifications"][0]["attributes"]["level"] == "alarm"

    webhook(story)


MUTED_BY_CLOCK = """topic Temperature (value float)
state Warm on Temperature [value > 25; value < 22] per source
mute Warm during "11:00 – 12:10"
"""


@pytest.mark.parametrize("restarts", [False, True])
def test_a_mute_in_the_definition_announces_active_conditions_when_it_ends(webhook, definition, restarts):
    definition.write_text(MUTED_BY_CLOCK)

    async def before(client, site, receiver):
        at_noon(site)
        await read(site, 26, source="stays")
        await read(site, 26, 20, source="passes")
        await quiet(site)
        assert statuses_at(receiver) == []
        if not restarts:
            await after(client, site, receiver)

    async def after(client, site, receiver):
        at_noon(site)
        await read(site, 26, source="stays", at=15 * 60)
        while len(statuses_at(receiver)) < 2:
            await asyncio.sleep(0.01)
        assert statuses_at(receiver) == [("summary", None), ("ingress", "stays")]

    webhook(before)
    if restarts:
        webhook(after)


steps = st.lists(
    st.tuples(st.sampled_from(["ingress", "egress", "raised", "unknown", "known", "atomic"]), st.booleans()),
    max_size=12,
)


@given(steps)
def test_after_a_mute_a_sink_knows_which_conditions_are_active(steps):
    """After the mute a receiver knows what one without a mute knows; it sees no end without a start."""
    knows = is_active = False
    withheld = {}
    history = []
    for position, (status, is_muted) in enumerate(steps, 1):
        if (status == "ingress" and is_active) or (status in ("egress", "raised") and not is_active):
            continue
        is_active = status == "ingress" if status in ("ingress", "egress") else is_active
        was = "warn" if status == "raised" else None
        one = NotificationRow(position, str(position), "Heat", "s", status, 0, None, 0, "{}", None, was)
        history.append(one)
        sent, withheld = choose([one], {("Heat", "s")} if is_muted else (), withheld)
        if not is_muted:  # the mute is over: what is withheld is sent
            sent = [*sent, *_of(history, withheld)]
            withheld = {}
        for one in sent:
            assert one.status not in ("egress", "raised") or knows
            assert one.status != "ingress" or not knows
            knows = (
                knows if one.status in ("raised", "unknown", "known", "atomic") else one.status == "ingress"
            )
    assert knows or not is_active or "ingress" in [one.status for one in _of(history, withheld)]
    assert not knows or is_active


def _of(history, withheld):
    positions = {at for one in withheld.values() for at in one.positions}
    return [one for one in history if one.position in positions]


def _rows(*rows):
    """Notifications of one scope: status, time, since, level and level before."""
    return [
        NotificationRow(i, str(i), "Heat", "s", status, time, since, 0, "{}", *levels)
        for i, (status, time, since, *levels) in enumerate(rows, 1)
    ]


def test_an_active_muted_condition_ends_although_an_earlier_episode_is_corrected_meanwhile():
    start, *corrections, end = _rows(
        ("ingress", 42, None),
        ("reopened", 41, 27),
        ("egress", 29, 27),
        ("ingress", 30, None),
        ("egress", 41, 30),
        ("known", 41, 42),
        ("egress", 77, 42),
    )
    assert choose([start], (), {}, {"Heat"}).sent == [start]
    muted, withheld = {("Heat", "s")}, {}
    for one in corrections:
        withheld = choose([one], muted, withheld, {"Heat"}).withheld
    assert choose([end], muted, withheld, {"Heat"}).sent == [end]


def test_a_level_raised_while_muted_ends_at_the_level_that_was_sent():
    start, raised, end = _rows(
        ("ingress", 1, None, "warn", None),
        ("raised", 2, 1, "alarm", "warn"),
        ("egress", 3, 1, None, "alarm"),
    )
    (sent,) = choose([raised, end], {("Heat", "s")}, {}).sent
    (started,), (ended,) = alerts([start], 9 * SECOND, {}), alerts([sent], 9 * SECOND, {})
    assert (ended["labels"], ended["endsAt"]) == (started["labels"], "1970-01-01T00:00:00.000003Z")


def test_alertmanager_does_not_receive_muted_conditions(alertmanager):
    """Neither when it starts, nor when all that is active is sent again; when the mute is over, it is."""

    async def story(client, site, receiver):
        go_on = at_noon(site)
        await mute(client, "s1")
        await read(site, 26, source="s1")
        await read(site, 26, source="s2")
        await quiet(site)
        site.sinks[0]._refreshed = None
        site.service.hub.wake()
        await quiet(site)
        assert {scope for _, scope, *_ in labels(receiver)} == {"s2"}
        go_on(61 * SECOND)
        while "s1" not in {scope for _, scope, *_ in labels(receiver)}:
            await asyncio.sleep(0.01)

    alertmanager(story)


def test_alertmanager_does_not_receive_conditions_muted_by_the_definition(alertmanager, definition):
    definition.write_text(MUTED_BY_CLOCK)

    async def story(client, site, receiver):
        at_noon(site)
        await read(site, 26)
        await quiet(site)
        site.sinks[0]._refreshed = None
        site.service.hub.wake()
        await quiet(site)
        assert labels(receiver) == []
        await read(site, 26, at=15 * 60)
        while not labels(receiver):
            await asyncio.sleep(0.01)

    alertmanager(story)


# --- refusals -----------------------------------------------------------------------------------------------


def test_one_refused_notification_affects_no_other(webhook):
    async def story(client, site, receiver):
        receiver.status = 503
        receiver.refuses = lambda body: "no attics here" if b'"attic"' in body else None
        for i in range(50):
            await read(site, 26, source=f"s{i}" if i != 17 else "attic")
        receiver.status = 200
        await quiet(site)
        accepted = [
            n["scope"]
            for request in receiver.requests
            if b'"attic"' not in request.body
            for n in json.loads(request.body)["notifications"]
        ]
        assert {*accepted} >= {f"s{i}" for i in range(50) if i != 17}
        (letter,) = (await client.get("/api/dead-letters")).json()
        assert json.loads(letter["line"])["scope"] == "attic"
        assert letter["reason"].endswith("answers 400: no attics here")
        health = (await client.get("/health")).json()
        assert health["sinks"]["hook"]["dead_letters"] == 1

    webhook(story)


def test_a_refused_notification_can_be_sent_again(webhook):
    async def refuse(client, site, receiver):
        receiver.refuses = lambda body: "not yet"
        await read(site, 26, source="s1")
        await read(site, 26, source="s2")
        await quiet(site)
        assert len((await client.get("/api/dead-letters")).json()) == 2

    async def again(client, site, receiver):
        del receiver.requests[:]
        assert site.sinks[0].dead_letter_count == 2, "also after a restart"
        answer = await client.post("/api/dead-letters/resend", json={"sink": "hook"})
        assert answer.json() == {"resending": 2}
        while site.sinks[0].dead_letter_count != 2 or len(receiver.requests) < 2:
            await asyncio.sleep(0.01)
        assert len((await client.get("/api/dead-letters")).json()) == 2, "it is refused again"
        receiver.refuses = None
        await read(site, 20, source="s1", at=10)
        await quiet(site)
        del receiver.requests[:]
        await client.post("/api/dead-letters/resend", json={"sink": "hook"})
        while site.sinks[0].dead_letter_count:
            await asyncio.sleep(0.01)
        assert statuses_at(receiver) == [("ingress", "s1"), ("egress", "s1"), ("ingress", "s2")]
        assert (await client.get("/api/dead-letters")).json() == []
        assert (await client.get("/health")).json()["sinks"] == {}

    webhook(refuse)
    webhook(again)


@pytest.mark.parametrize(
    "asked_for",
    [{"sink": "nobody"}, {"sink": "hook", "position": "1"}, {"sink": "hook", "position": 1 << 63}, {}],
)
def test_resending_reports_errors_of_a_request(webhook, asked_for):
    async def story(client, site, receiver):
        assert (await client.post("/api/dead-letters/resend", json=asked_for)).status_code == 422

    webhook(story)


@given(st.sets(st.integers(0, 40)), st.integers(1, 40))
def test_notifications_that_are_not_refused_are_posted_in_order(refuse, size):
    posted, alone = [], []

    async def post(items):
        if refuse & {*items}:
            raise Refusal("no")
        posted.extend(items)

    async def add_dead_letter(item, _refusal):
        alone.append(item)

    asyncio.run(isolate(range(size), post, add_dead_letter))
    assert posted == [i for i in range(size) if i not in refuse]
    assert alone == sorted(refuse & {*range(size)})


def test_no_alert_ends_before_it_starts():
    backwards = NotificationRow(1, "1", "Warm", "s", "egress", NOON, NOON + MINUTE, 0, "{}")
    (one,) = alerts([backwards], NOON + HOUR, {})
    assert one["startsAt"] <= one["endsAt"]


# --- levels -------------------------------------------------------------------------------------------------


def test_the_level_is_in_conditions_retained_states_and_alerts(alertmanager, definition):
    definition.write_text(LEVELS)

    async def story(client, site, receiver):
        await read(site, 26)
        (row,) = (await client.get("/api/conditions")).json()
        assert row["level"] == "warn"
        await read(site, 31, at=10)
        (row,) = (await client.get("/api/conditions")).json()
        assert row["level"] == "alarm"
        await quiet(site)
        emitted = site.service.store.notifications()
        state = json.loads(publications(emitted, None, "state/{scope}")[-1].payload)
        assert (state["holds"], state["level"]) == (True, "alarm")
        ends_condition = {(level, end) for *_, level, end in labels(receiver)}
        assert ("warn", "2026-06-21T12:00:10.000000Z") in ends_condition, (
            "it ends where the higher level starts"
        )
        assert "alarm" in {level for level, _ in ends_condition}
        await read(site, 20, at=20)
        await quiet(site)
        assert ("alarm", "2026-06-21T12:00:20.000000Z") in [one[2:] for one in labels(receiver)]
        state = json.loads(publications(site.service.store.notifications(), None, "x/{scope}")[-1].payload)
        assert state["holds"] is False
        assert "level" not in state

    alertmanager(story)


def test_a_level_reported_after_unknown_is_known(asked, definition):
    definition.write_text(LEVELS.rstrip() + " unknown after 1 min\n")

    async def story(client, site):
        await read(site, 26)
        await read(site, 26, source="other", at=100)
        await read(site, 31, at=120)
        states = publications(site.service.store.notifications(), None, "{scope}")
        found = [json.loads(one.payload) for one in states if one.channel == "s1"]
        assert [(one["holds"], one.get("level")) for one in found] == [
            (True, "warn"), (None, None), (True, "alarm"),
        ]  # fmt: skip

    asked(story)


def test_a_higher_level_and_a_new_start_end_an_acknowledgement(asked, definition):
    definition.write_text(LEVELS)

    async def story(client, site):
        async def acknowledgements():
            rows = (await client.get("/api/conditions")).json()
            return [row["acknowledged"] is not None for row in rows]

        one = {"subscription": "Heat", "scope": "s1"}
        await read(site, 26)
        await client.post("/api/acknowledge", json=one)
        assert await acknowledgements() == [True]
        await read(site, 31, at=10)
        assert await acknowledgements() == [False], "it was of the lower level"
        await client.post("/api/acknowledge", json=one)
        await read(site, 26, at=20)
        assert await acknowledgements() == [True], "a lower level is no news"
        await read(site, 20, 26, at=30)
        assert await acknowledgements() == [False], "it was of what has ended"

    asked(story)


# --- bounds -------------------------------------------------------------------------------------------------


class Endless:
    """A receiver whose answer never ends: it sends for ever, or holds its peace."""

    def __init__(self, status, part):
        self._status, self._part, self._ends = status, part, threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}/hook"
        self.sent = 0

    def __enter__(self):
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ends.set()
        self._listening.close()

    def _serve(self):
        while not self._ends.is_set():
            try:
                peer, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(peer,), daemon=True).start()

    def _answer(self, peer):
        with peer:
            peer.recv(65_536)
            try:
                peer.sendall(f"HTTP/1.1 {self._status} x\r\ncontent-type: text/plain\r\n\r\n".encode())
                while not self._ends.is_set():
                    if self._part:
                        peer.sendall(self._part)
                        self.sent += len(self._part)
                    else:
                        self._ends.wait(0.1)
            except OSError:
                return


def test_only_the_beginning_of_an_endless_answer_is_read(asked):
    async def story(client, site):
        await read(site, 26)
        while not site.sinks[0].dead_letter_count:
            await asyncio.sleep(0.01)
        (letter,) = (await client.get("/api/dead-letters")).json()
        assert len(letter["reason"]) < 1_000

    with Endless(400, b"no, " * 10_000) as receiver:
        hook = WebhookPart(name="hook", url=receiver.url)
        asked(story, webhook=[hook], **ALLOWED)
        assert receiver.sent < 50_000_000


def test_a_receiver_that_never_finishes_is_given_up(asked, monkeypatch):
    monkeypatch.setattr(http, "_DEADLINE", 0.3)

    async def story(client, site):
        await read(site, 26)
        while not site.sinks[0].trouble:
            await asyncio.sleep(0.01)
        assert "does not answer within 0.3 s" in site.sinks[0].trouble

    with Endless(400, b"") as receiver:
        asked(story, webhook=[WebhookPart(name="hook", url=receiver.url)], **ALLOWED)


def _refusing(write, full):
    def attempt(*arguments):
        if full[0]:
            raise StoreFull("the service's database cannot be written: disk full")
        return write(*arguments)

    return attempt


def test_a_sink_continues_after_the_database_was_full_for_a_while(webhook, monkeypatch):
    async def story(client, site, receiver):
        receiver.refuses = lambda body: "no" if b'"s1"' in body else None
        store, full = site.service.store, [True]
        for name in ("add_dead_letter", "set_sink_position"):
            monkeypatch.setattr(store, name, _refusing(getattr(store, name), full))
        await read(site, 26)
        while site.sinks[0].trouble is None:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        full[0] = False
        await read(site, 26, source="s2")
        while ("ingress", "s2") not in statuses_at(receiver):
            await asyncio.sleep(0.01)
        assert site.sinks[0].dead_letter_count == 1

    webhook(story)
