"""The commands over TCP give the notifications of the engine for random conditions and readings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import Phase, assume, given, settings

from holdfast import Engine, parse
from holdfast.model.instant import show_instant
from support.patience import PATIENCE
from support.whole import definitions, filters, histories

EXAMPLES = int(os.environ.get("HOLDFAST_EXAMPLES") or 60)
DELIVERIES = ("", "", "ordered 1 h", "ordered 1 h late apply")
"""Of hours the clock sees nothing, however slow the machine is."""
a_few = settings(
    max_examples=max(2, EXAMPLES // 60),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # processes are too slow to look for a smaller one
)


@contextmanager
def running(*arguments, stderr=subprocess.PIPE):
    """A command in a process of its own, which does not outlive the test."""
    command = [sys.executable, "-m", "holdfast", *map(str, arguments)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": stderr}
    with subprocess.Popen(command, text=True, encoding="utf-8", **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture(scope="module")
def broker():
    """The address on which a broker listens."""
    with running("broker", "--name", "hub", "--listen", "127.0.0.1:0", stderr=subprocess.DEVNULL) as hub:
        yield hub.stdout.readline().split()[-1]


@pytest.fixture(scope="module")
def definition(tmp_path_factory):
    return tmp_path_factory.mktemp("overlay") / "app.hf"


@pytest.mark.filterwarnings("ignore:.* in microseconds")  # its clocks start from zero
@a_few
@given(
    text=definitions(most=2, kinds={"Filter": filters}, deliveries=DELIVERIES),
    events=histories(least=30, most=60),
)
def test_a_subscriber_prints_the_results_of_the_engine(broker, definition, text, events):
    definition.write_text(text, encoding="utf-8")
    events = [_writable(event) for event in events]
    engine = Engine(parse(text))
    output = [n for event in events for n in engine.push(event)]
    expected = sorted(json.dumps(n.to_json()) for n in [*output, *engine.late])
    assume(expected)
    there = ("--connect", broker)
    with running("subscribe", definition, *there, "--count", len(expected)) as subscriber:
        assert subscriber.stderr.readline() == "subscribed at 'hub'\n"
        with running("publish", "--topics", definition, *there, "--settle", 0) as publisher:
            publisher.communicate("".join(map(_line, events)), timeout=PATIENCE)
        emitted, complaint = subscriber.communicate(timeout=PATIENCE)
    assert (subscriber.returncode, complaint) == (0, "")
    assert sorted(json.dumps(json.loads(line)) for line in emitted.splitlines()) == expected


def _writable(event):
    """The event with values that a line of JSON can have, and hours in place of seconds."""
    finite = {
        name: None if isinstance(value, float) and value - value != 0 else value
        for name, value in event.attributes.items()
    }
    return replace(event, attributes=finite, time=3600 * event.time)


def _line(event):
    known = {name: value for name, value in event.attributes.items() if value is not None}
    where = dict(zip("xyz", event.location or (), strict=False))
    fields = {"topic": event.topic, "source": event.source, "time": show_instant(event.time)}
    return json.dumps({**fields, "sequence": event.sequence, **where, **known}) + "\n"
