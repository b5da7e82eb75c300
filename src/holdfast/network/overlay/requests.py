"""Conversion of subscriptions to requests of a client.

A subscription without local files is sent unchanged, and brokers evaluate it. A subscription that reads a
table or a list of expected sources from a file is evaluated by the client. Brokers and publishers then pass
the events that can be relevant to a row of the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...definition.app import App
from ...definition.check import check
from ...definition.cover_text import in_writing, passing
from ...definition.show import show
from ...kinds.state.syntax import DefineState
from ...lang.ops import DeclareTopic, Truth
from ...model.instant import Instant
from ...model.topic import Topic
from ...plan.compile import conditions
from ..conditions import compile_checked
from ..protocols.cbps.client import Submit, watch, watch_exactly
from ..protocols.cbps.condition import HostedCondition, SubscriberCondition
from ..protocols.cbps.scopes import Scopes
from .conditions import folder_of, reads_file, split_app


def requests_of(app: App) -> dict[str, Submit]:
    """Return a request for each subscription of an app, by name."""
    return {name: _request(name, one, folder_of(app)) for name, one in split_app(app).items()}


def _request(name: str, app: App, folder: Path) -> Submit:
    """Return the request for one subscription, which the client evaluates if it reads a file."""
    if not any(map(reads_file, app.statements)):
        return watch(name, show(app))
    checked = check(app, folder)
    only, found = conditions(checked)[name], compile_checked(checked)
    if isinstance(found, HostedCondition):
        gates = [_open_gate(name, topic) for topic in found.topics]
        return watch_exactly(name, gates, _subscriber_condition(found))
    if only.delivery.wait is not None:
        return watch_exactly(name, [_open_gate(name, only.topic)], found)
    return watch_exactly(name, [in_writing(app.statements, only)], found)


def _subscriber_condition(hosted: HostedCondition) -> SubscriberCondition:
    """Return a condition in the form that its subscriber evaluates. After a loss of events it starts
    again.
    """

    def doubt(state: Any, _scopes: Scopes) -> tuple[Any, list[tuple[str | None, Instant]]]:
        return hosted.machine.initial(), hosted.active_scopes(state)

    common = hosted.name, hosted.inputs, hosted.event, hosted.machine, hosted.to_notifications
    return SubscriberCondition(
        *common, bits=lambda _: (), uncertain_bits=lambda _: (), mark_uncertain=doubt, progress=lambda _: None
    )


def _open_gate(name: str, topic: Topic) -> str:
    """Return the definition of a gate that passes every event and reports losses."""
    state = DefineState(name, topic.name, Truth(True), Truth(False))
    return show(App([DeclareTopic(topic), state, passing(name, topic, Truth(True))]))
