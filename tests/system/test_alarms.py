"""Alarms through kills, edits and a lost uplink, which no case of a definition can show."""

from __future__ import annotations

import os
import signal
from datetime import UTC, datetime

import httpx

from holdfast import instant as moment
from support.patience import PATIENCE, until
from support.served import Served

APP = """topic Temperature (value float)
topic Tank (level float)
state Warm on Temperature [value > 25; value < 22] per source
state Full on Tank [level > 90; level < 80] per source unknown after 2 s
"""


LIMITS = "source,high,low\n{}"
BY_ROW = """topic Temperature (value float)
table Limits "limits.csv" (source text, high float, low float)
state Warm on Temperature [value > Limits.high; value < Limits.low] per source
"""


class Alarms(Served):
    """A service with its input and its notifications."""

    def post(self, topic, value, source="s1"):
        """A reading of now; its time."""
        name = {"Temperature": "value", "Tank": "level"}[topic]
        line = {"topic": topic, "time": datetime.now(UTC).isoformat(), "source": source, name: float(value)}
        output = self._call("post", "/api/readings", json=line).json()
        assert output == {"taken": 1, "rejected": []}
        return instant(line["time"])

    def edit(self, *changes):
        text = APP
        for before, after in changes:
            assert before in text
            text = text.replace(before, after)
        return self._call("put", "/api/definition", json={"text": text}).json()

    def emissions(self, subscription):
        """The notifications of a subscription, one by one."""
        found = self._call("get", "/api/notifications").json()["notifications"]
        return [one for one in found if one["subscription"] == subscription]

    def statuses(self, subscription):
        return [one["status"] for one in self.emissions(subscription)]

    def expect(self, subscription, *statuses):
        until(lambda: self.statuses(subscription) == list(statuses), f"{subscription}: {statuses}")

    def _call(self, how, path, **what):
        answer = httpx.request(how, self.url + path, timeout=PATIENCE, trust_env=False, **what)
        assert answer.status_code == 200, answer.text
        return answer


def test_active_conditions_survive_kills_edits_and_a_lost_uplink(tmp_path):
    definition, config = tmp_path / "app.hf", tmp_path / "serve.toml"
    definition.write_text(APP)
    config.write_text('[keep]\nidle = "0.5 s"\n')
    with Alarms(tmp_path, definition, "--config", config) as service:
        kill(service)
        edit_rule(service)
        uplink_lost(service)


def kill(service):
    """After a restart nothing is sent again, and the end of what ended meanwhile is.  [C5–C8]"""
    began = service.post("Temperature", 26)
    service.expect("Warm", "ingress")
    service.kill()
    service.start()
    assert [one["since"] for one in conditions(service)] == [began]
    service.post("Temperature", 21)
    service.expect("Warm", "ingress", "egress")
    assert [instant(one["since"]) for one in service.emissions("Warm")] == [None, began]
    assert conditions(service) == []


def edit_rule(service):
    """An edited rule remains active since its old start without a notification where it still applies.
    Where it would not have been active it ends, as the log decides.  [C9, C10]"""
    began = service.post("Temperature", 27)
    service.expect("Warm", "ingress", "egress", "ingress")
    change = service.edit(("value > 25", "value > 24"))
    assert change["changed"] == ["Warm"]
    assert [one["since"] for one in conditions(service)] == [began]
    service.edit(("value > 25", "value > 28"))
    service.expect("Warm", "ingress", "egress", "ingress", "revised")
    assert conditions(service) == []
    began = service.post("Temperature", 29)
    service.expect("Warm", "ingress", "egress", "ingress", "revised", "ingress")
    assert [one["since"] for one in conditions(service)] == [began]


def uplink_lost(service):
    """Readings that stop resolve nothing.  [C15, C16]"""
    began = service.post("Tank", 95)
    service.expect("Full", "ingress", "unknown")  # by the clock
    (tank,) = [one for one in conditions(service) if one["subscription"] == "Full"]
    assert tank["since"] == began
    assert instant(tank["unknown"]) == began + 2_000_000
    service.post("Tank", 70)
    until(lambda: service.statuses("Full")[2:] in (["known", "egress"], ["egress"]), "its end")


def test_a_table_changed_while_the_service_runs_is_carried_over_row_by_row(tmp_path):
    """State is carried over. A scope with a changed row is revised, on a SIGHUP or after a restart.  [C9,
    C20]"""
    definition, limits = tmp_path / "app.hf", tmp_path / "limits.csv"
    definition.write_text(BY_ROW)
    limits.write_text(LIMITS.format("s1,25,22\ns2,25,22\n"))
    with Alarms(tmp_path, definition) as service:
        began = [service.post("Temperature", 26, source) for source in ("s1", "s2")]
        service.expect("Warm", "ingress", "ingress")
        limits.write_text(LIMITS.format("s1,25,22\ns2,27,22\n"))
        os.kill(service.pid, signal.SIGHUP)
        service.expect("Warm", "ingress", "ingress", "revised")
        assert [(one["scope"], one["since"]) for one in conditions(service)] == [("s1", began[0])]
        limits.write_text("source,high\ns1,much\n")
        os.kill(service.pid, signal.SIGHUP)
        until(lambda: "has no column 'low'" in service.log_text(), "the error")
        service.kill()
        limits.write_text(LIMITS.format("s1,28,22\ns2,25,22\n"))
        service.start()
        service.expect("Warm", "ingress", "ingress", "revised", "revised", "revised")
        assert [(one["scope"], one["since"]) for one in conditions(service)] == [("s2", began[1])]
        service.stop()
        service.start()
        assert len(service.emissions("Warm")) == 5


def conditions(service):
    """The active conditions, with instants."""
    found = httpx.get(f"{service.url}/api/conditions", timeout=PATIENCE, trust_env=False).json()
    return [{**one, "since": instant(one["since"])} for one in found]


def instant(text):
    return None if text is None else moment(text)
