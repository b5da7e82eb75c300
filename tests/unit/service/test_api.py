from __future__ import annotations

import asyncio
import json

import pyarrow as pa

from holdfast.model.instant import show_instant
from holdfast.service.log.log import NoRoom
from support.web import TOKENS

ARROW = {"content-type": "application/vnd.apache.arrow.stream"}


def line(second, value, source="s1", **more):
    time = f"2026-06-21T12:00:{second:02}Z"
    return json.dumps({"topic": "Temperature", "time": time, "source": source, "value": value, **more})


async def sent(client, *lines):
    answer = await client.post("/api/readings", content="\n".join(lines))
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_folded_storm_has_its_size_and_outline(asked, definition):
    definition.write_text(
        "topic Temperature (value float)\nstate Warm on Temperature [value > 25; value < 22] per source\n"
        "fold Storm = Warm cells 1 m within 2 m beyond 1\n"
    )

    async def story(client, site):
        await sent(client, line(0, 26, "a", x=0.5, y=0.5), line(1, 27, "b", x=1.5, y=0.5), line(2, 28, "c"))
        await site.service.wait_until_evaluated()
        held = {
            (one["subscription"], one["scope"]): one for one in (await client.get("/api/conditions")).json()
        }
        assert held.keys() == {("Warm", name) for name in "abc"} | {("Storm", "2 m at 0,0"), ("Storm", "c")}
        storm = held["Storm", "2 m at 0,0"]
        assert (storm["members"], storm["outline"]) == (2, [[0, 0], [2, 0], [2, 1], [0, 1]])
        assert "outline" not in held["Storm", "c"]
        assert "outline" not in held["Warm", "a"]

    asked(story)


def test_readings_are_accepted_and_conditions_and_notifications_returned(asked):
    async def story(client, site):
        healthy = {"status": "ok", "troubles": {}, "damage": [], "sinks": {}}
        assert (await client.get("/health")).json() == healthy
        assert await sent(client, line(0, 26), line(1, 31, sequence=7)) == {"taken": 2, "rejected": []}
        await site.service.wait_until_evaluated()
        assert (await client.get("/api/conditions")).json() == [
            {
                "subscription": "Warm",
                "scope": "s1",
                "since": "2026-06-21T12:00:00.000000Z",
                "level": None,
                "unknown": None,
                "acknowledged": None,
                "muted": None,
            }
        ]
        found = (await client.get("/api/notifications")).json()
        assert [(n["subscription"], n["status"], n["position"]) for n in found["notifications"]] == [
            ("Warm", "ingress", 1),
            ("Hot", "atomic", 2),
        ]
        assert found["next"] == 2
        rest = (await client.get("/api/notifications", params={"after": 1})).json()
        assert [n["subscription"] for n in rest["notifications"]] == ["Hot"]
        mine = (await client.get("/api/notifications", params={"subscription": "Warm"})).json()
        assert [n["subscription"] for n in mine["notifications"]] == ["Warm"]
        await sent(client, line(5, 21))
        await site.service.wait_until_evaluated()
        where = {"subscription": "Warm", "scope": "s1", "start": "2026-06-21", "end": "2026-06-22"}
        emitted = (await client.get("/api/history", params=where)).json()
        assert [(n["status"], n["since"]) for n in emitted] == [
            ("ingress", None),
            ("egress", "2026-06-21T12:00:00.000000Z"),
        ]

    asked(story)


def test_numbers_beyond_the_database_are_refused_and_limits_are_at_least_one(asked):
    async def story(client, site):
        for after in (1 << 63, -1):
            for path in ("/api/notifications", "/api/events"):
                assert (await client.get(path, params={"after": after})).status_code == 422
        await sent(client, line(0, 26), *["no reading"] * 3)
        for path in ("/api/rejects", "/api/dead-letters"):
            assert len((await client.get(path, params={"most": -1})).json()) <= 1

    asked(story)


def test_bad_lines_are_reported_stored_and_counted(asked):
    async def story(client, site):
        answer = await sent(client, line(0, 26), "{", '{"topic": "Temperature", "value": 1}')
        assert answer["taken"] == 1
        assert [bad["where"] for bad in answer["rejected"]] == ["line 2", "line 3"]
        stored = (await client.get("/api/rejects")).json()
        assert [one["payload"] for one in stored] == ['{"topic": "Temperature", "value": 1}', "{"]
        alone = await client.post("/api/readings", content="{")
        assert alone.status_code == 422
        status = (await client.get("/api/status")).json()
        assert sum(status["rejected"].values()) == 3
        metrics = (await client.get("/metrics")).text
        assert "holdfast_readings_total 1\n" in metrics
        assert 'holdfast_rejected_total{reason="http: it has no source' in metrics

    asked(story)


def test_half_of_a_surrogate_pair_does_not_reach_the_log(asked):
    async def story(client, site):
        text = '{"topic": "Badge", "source": "a", "name": "\\ud800"}'
        answer = await client.post("/api/readings", content=text)
        assert answer.status_code == 422
        await sent(client, line(0, 26))

    asked(story)


def test_arrow_streams_are_accepted_as_readings(asked):
    async def story(client, site):
        times = pa.array([1_780_000_000_000_000 + i for i in range(3)], pa.timestamp("us", "UTC"))
        table = pa.table({"time": times, "source": ["a", "b", "a"], "value": [26.0, 20.0, 21.0]})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        body = sink.getvalue().to_pybytes()
        url = "/api/readings?topic=Temperature"
        assert (await client.post(url, content=body, headers=ARROW)).json()["taken"] == 3
        await site.service.wait_until_evaluated()
        emitted = (await client.get("/api/notifications")).json()["notifications"]
        assert [(n["scope"], n["status"]) for n in emitted] == [("a", "ingress"), ("a", "egress")]
        nothing = await client.post("/api/readings", content=body, headers=ARROW)
        assert (nothing.status_code, "say which topic" in nothing.text) == (422, True)
        broken = await client.post(url, content=body[:40], headers=ARROW)
        assert (broken.status_code, "not an Arrow stream" in broken.text) == (422, True)
        other = await client.post("/api/readings?topic=Badge", content=body, headers=ARROW)
        assert other.json()["taken"] == 3, "columns that a topic does not declare are left out"

    asked(story)


def test_a_repeated_request_with_its_key_is_processed_once(asked):
    async def story(client, site):
        body = "\n".join([line(0, 26), line(1, 21), "nonsense"])
        for taken in (2, 0, 0):
            answer = await client.post("/api/readings", content=body, headers={"idempotency-key": "k1"})
            assert (answer.status_code, answer.json()["taken"]) == (200, taken)
        assert sum(site.service.store.counts().values()) == 1, "what is rejected is counted once, too"
        answer = await client.post("/api/readings", content=body, headers={"idempotency-key": "k2"})
        assert answer.json()["taken"] == 2
        for _ in range(2):
            answer = await client.post("/api/readings", content="nonsense", headers={"idempotency-key": "k3"})
            assert answer.status_code == 422
        assert sum(site.service.store.counts().values()) == 3

    asked(story)


def test_a_key_reused_for_another_body_is_refused(asked):
    async def story(client, site):
        key = {"idempotency-key": "k"}
        assert (await client.post("/api/readings", content=line(0, 26), headers=key)).json()["taken"] == 1
        other = await client.post("/api/readings", content=line(1, 26), headers=key)
        assert (other.status_code, "used before for another body" in other.text) == (422, True)
        assert site.service.counts.logged == 1

    asked(story)


def test_keys_of_different_users_are_separate(asked):
    async def story(client, site):
        for role in ("send", "edit"):
            headers = {"idempotency-key": "1", "authorization": f"Bearer {TOKENS[role]}"}
            answer = await client.post("/api/readings", content=line(0, 26), headers=headers)
            assert answer.json()["taken"] == 1

    asked(story, users=True)


def test_a_repeated_request_of_any_size_changes_nothing_even_after_a_restart(asked):
    """More readings than messages of brokers are remembered: in one request, and in others after it."""
    many = 150_000
    times = pa.array(range(1_780_000_000_000_000, 1_780_000_000_000_000 + many), pa.timestamp("us", "UTC"))
    table = pa.table({"time": times, "source": ["a"] * many, "value": [20.0] * many})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    body, url = sink.getvalue().to_pybytes(), "/api/readings?topic=Temperature"
    keyed = [line(0, 26), line(1, 21)]

    async def sent_once(client, key, wanted):
        answer = await client.post(url, content=body, headers={**ARROW, "idempotency-key": key})
        assert answer.json() == {"taken": wanted, "rejected": []}

    async def first(client, site):
        answer = await client.post(
            "/api/readings", content="\n".join(keyed), headers={"idempotency-key": "k"}
        )
        assert answer.json()["taken"] == 2
        await sent_once(client, "big", many)
        await sent_once(client, "big", 0)
        await sent_once(client, "other", many)
        await sent_once(client, "big", 0)

    async def again(client, site):
        await sent_once(client, "big", 0)
        answer = await client.post(
            "/api/readings", content="\n".join(keyed), headers={"idempotency-key": "k"}
        )
        assert answer.json()["taken"] == 0
        assert (site.service.counts.logged, site.service.counts.repeated) == (0, many + 2)

    asked(first, limits={"body": "20 MB"})
    asked(again, limits={"body": "20 MB"})


def test_simultaneous_requests_with_one_key_are_processed_once(asked):
    async def story(client, site):
        body, key = "\n".join([line(0, 26), "nonsense"]), {"idempotency-key": "k"}
        answers = await asyncio.gather(
            *(client.post("/api/readings", content=body, headers=key) for _ in range(20))
        )
        assert sorted(one.json()["taken"] for one in answers) == [0] * 19 + [1]
        assert sum(site.service.store.counts().values()) == 1

    asked(story)


def test_readings_are_accepted_while_snapshots_fail_and_health_reports_it(asked):
    async def story(client, site):
        site.service.troubles = {"snapshot": "no snapshot can be taken: no room"}
        health = await client.get("/health")
        assert (health.status_code, health.json()["status"]) == (200, "trouble")
        assert health.json()["troubles"] == {"snapshot": "no snapshot can be taken: no room"}
        assert (await sent(client, line(0, 26)))["taken"] == 1
        assert "holdfast_up 1" in (await client.get("/metrics")).text

    asked(story)


def test_a_full_disk_is_reported_and_readings_are_refused(asked, monkeypatch):
    async def story(client, site):
        append = site.service.log.append
        monkeypatch.setattr(site.service.log, "append", _full)
        waiting = asyncio.create_task(client.post("/api/readings", content=line(0, 26)))
        while (health := await client.get("/health")).status_code == 200:
            await asyncio.sleep(0.01)
        assert health.json()["troubles"] == {"log": "no room"}
        refused = await client.post("/api/readings", content=line(1, 26))
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
        monkeypatch.setattr(site.service.log, "append", append)
        assert (await waiting).json()["taken"] == 1
        assert (await client.get("/health")).status_code == 200

    asked(story)


def _full(_entries):
    raise NoRoom("no room")


def test_events_are_streamed_from_a_position(asked):
    async def story(client, site):
        await sent(client, line(0, 26), line(1, 21))
        await site.service.wait_until_evaluated()
        received = []

        async def listen(headers):
            async with client.stream("GET", "/api/events", headers=headers) as answer:
                assert answer.headers["content-type"].startswith("text/event-stream")
                async for text in answer.aiter_lines():
                    if text.startswith("data: "):
                        received.append(json.loads(text[6:])["status"])

        task = asyncio.create_task(listen({"last-event-id": "1"}))
        while received != ["egress"]:
            await asyncio.sleep(0.01)
        await sent(client, line(2, 26))
        while received != ["egress", "ingress"]:
            await asyncio.sleep(0.01)
        task.cancel()

    asked(story)


def test_users_can_acknowledge_and_mute(asked):
    async def story(client, site):
        await sent(client, line(0, 26))
        await site.service.wait_until_evaluated()
        one = {"subscription": "Warm", "scope": "s1"}
        await client.post("/api/acknowledge", json=one | {"note": "on my way"})
        await client.post("/api/mute", json=one | {"seconds": 60})
        (held,) = (await client.get("/api/conditions")).json()
        assert held["acknowledged"]["note"] == "on my way"
        assert held["muted"]["who"] == "local"
        await client.request("DELETE", "/api/mute", json=one)
        (held,) = (await client.get("/api/conditions")).json()
        assert held["muted"] is None
        for bad in ({"subscription": 7}, one | {"seconds": -1}, one | {"seconds": "x"}):
            assert (await client.post("/api/mute", json=bad)).status_code == 422
        assert (await client.post("/api/mute", content="[")).status_code == 422

    asked(story)


def test_an_acknowledgement_applies_to_the_current_episode_only(asked):
    async def story(client, site):
        now = site.service.clock()

        def at(offset, value):
            return line(0, value).replace("2026-06-21T12:00:00Z", show_instant(now + offset))

        await sent(client, at(-3_000_000, 26))
        await site.service.wait_until_evaluated()
        await client.post("/api/acknowledge", json={"subscription": "Warm", "scope": "s1"})
        await sent(client, at(30_000_000, 20), at(40_000_000, 26))
        await site.service.wait_until_evaluated()
        (held,) = (await client.get("/api/conditions")).json()
        assert held["acknowledged"] is None

    asked(story)


def test_a_definition_is_checked_with_positions_and_explained(asked):
    async def story(client, site):
        text = (await client.get("/api/definition")).json()["text"]
        bad = (await client.post("/api/check", json={"text": text.replace("value > 30", "valu > 30")})).json()
        assert not bad["ok"]
        assert (bad["errors"][0]["line"], "valu" in bad["errors"][0]["message"]) == (6, True)
        good = (await client.post("/api/check", json={"text": text.replace("> 25", "> 24")})).json()
        assert good["change"]["changed"] == ["Warm"]
        assert {one["name"] for one in good["subscriptions"]} == {"Warm", "Hot", "John"}
        plan = (await client.post("/api/explain", json={"text": text})).json()["plan"]
        assert "Warm" in plan

    asked(story)


def test_subscriptions_are_added_edited_and_removed_in_the_file(asked, definition):
    async def story(client, site):
        added = await client.post(
            "/api/subscriptions", json={"text": "filter Cold on Temperature where value < 0"}
        )
        assert added.json()["added"] == ["Cold"]
        assert "filter Cold" in definition.read_text()
        edit = {"text": "filter Hot on Temperature where value > 35"}
        (site.service.folder / "readings").mkdir(exist_ok=True)
        (site.service.folder / "readings" / "trimmed").touch()
        refused = await client.put("/api/subscriptions/Hot", json=edit)
        assert (refused.status_code, "another name" in refused.text) == (422, True)
        await client.put("/api/subscriptions/Hot", json=edit | {"restart": ["Hot"]})
        assert "value > 35" in definition.read_text()
        removed = await client.delete("/api/subscriptions/John")
        assert removed.json()["removed"] == ["John"]
        found = {one["name"]: one["text"] for one in (await client.get("/api/subscriptions")).json()}
        assert list(found) == ["Warm", "Hot", "Cold"]
        assert found["Hot"] == edit["text"]
        assert "# warm rooms" in definition.read_text()
        assert (await client.delete("/api/subscriptions/Nobody")).status_code == 422
        await sent(client, line(0, -1), line(1, 36))
        await site.service.wait_until_evaluated()
        emitted = (await client.get("/api/notifications")).json()["notifications"]
        assert [n["subscription"] for n in emitted] == ["Cold", "Hot", "Warm"]

    asked(story)


def test_a_backtest_lists_when_a_definition_would_have_fired(asked):
    async def story(client, site):
        await sent(client, *(line(i, 20 + i % 10) for i in range(50)))
        await site.service.wait_until_evaluated()
        text = (await client.get("/api/definition")).json()["text"].replace("value > 25", "value > 28")
        interval = {"start": "2026-06-21T11:00Z", "end": "2026-06-21T13:00Z"}
        found = (await client.post("/api/dry-run", json={"text": text} | interval)).json()
        assert (found["then"]["Warm"]["count"], found["really"]["Warm"]["count"]) == (5, 5)
        assert found["then"]["Warm"]["mean"] < found["really"]["Warm"]["mean"]
        assert found["then"]["Warm"]["flaps"] == 4
        starts = [one["start"][17:19] for one in found["only_then"]]
        assert starts == ["09", "19", "29", "39", "49"]
        assert [one["start"][17:19] for one in found["only_really"]] == ["06", "16", "26", "36", "46"]
        nothing = (
            await client.post("/api/dry-run", json={"text": text, "start": "2020-01-01", "end": "2020-01-02"})
        ).json()
        assert nothing["then"] == {}

    asked(story)


def test_the_timeline_returns_bars_and_readings_of_a_period(asked):
    async def story(client, site):
        await sent(client, *(line(i, 20 + i % 10) for i in range(58)))
        await sent(client, line(59, 1, source="other"))
        await site.service.wait_until_evaluated()
        interval = {"start": "2026-06-21T12:00Z", "end": "2026-06-21T12:01Z"}
        rows = (await client.get("/api/timeline", params=interval | {"width": 60})).json()["rows"]
        assert [(row["subscription"], row["scope"], len(row["bars"])) for row in rows] == [("Warm", "s1", 6)]
        other = (await client.get("/api/timeline", params=interval | {"find": "elsewhere"})).json()
        assert (other["rows"], other["total"]) == ([], 0)
        coarse = (await client.get("/api/timeline", params=interval | {"width": 10})).json()["rows"]
        assert [bar[2] for bar in coarse[0]["bars"]] == [6], "what falls on one pixel is one bar"
        found = (
            await client.get("/api/readings", params=interval | {"topic": "Temperature", "source": "s1"})
        ).json()
        assert (found["total"], len(found["value"]), found["value"][:3]) == (58, 58, [20, 21, 22])
        thin = (
            await client.get("/api/readings", params=interval | {"topic": "Temperature", "most": 10})
        ).json()
        assert (thin["total"], len(thin["time"])) == (59, 10)
        drawn = {
            "subscription": "Warm",
            "topic": "Temperature",
            "attribute": "value",
            "scope": "s1",
            "width": 20,
        }
        picture = (await client.get("/api/chart", params=interval | drawn | {"scope": "s1"})).json()
        assert (picture["total"], [one["source"] for one in picture["lines"]]) == (58, ["s1"])
        low, high = picture["lines"][0]["low"], picture["lines"][0]["high"]
        assert (min(low), max(high)) == (20, 29), "extremes are not thinned away"
        assert len(picture["time"]) == 20
        assert (await client.get("/api/chart", params=drawn | {"attribute": "no"})).status_code == 422
        wrong = await client.get("/api/timeline", params={"start": "2026-06-22", "end": "2026-06-21"})
        assert wrong.status_code == 422

    asked(story)


def test_regions_are_returned_with_their_outlines(asked, definition):
    regions = """
region hall = rectangle (0, 0) (40, 20)
region stage = circle (30, 10) 5 m in hall
region yard = polygon (0, 20) (40, 20) (20, 60)
region town
"""
    definition.write_text(definition.read_text() + regions)

    async def story(client, site):
        found = (await client.get("/api/regions")).json()
        assert {one["name"]: one["outline"] for one in found} == {
            "hall": {"polygon": [[0, 0], [40, 0], [40, 20], [0, 20]]},
            "stage": {"circle": [30, 10, 5]},
            "yard": {"polygon": [[0, 20], [40, 20], [20, 60]]},
            "town": None,
        }

    asked(story)
