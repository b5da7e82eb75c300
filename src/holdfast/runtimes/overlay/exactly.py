"""Subscriptions as requests of a client.

What means the same elsewhere is sent as it is, and brokers run it.  What looks something up in a file, a
table or a roster, is run here, where the file is: brokers and publishers let pass what may matter to some
row.  [E12]
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...compilers.envelope import in_writing, passing
from ...compilers.families import conditions
from ...lang.app import App
from ...lang.check import check
from ...lang.ops import DeclareTopic, Subscribe, Truth
from ...lang.show import show
from ...model.instant import Instant
from ...model.topic import Topic
from ...protocols.cbps.client import Submit, watch, watch_exactly
from ...protocols.cbps.condition import Hosted, Watchable
from ...protocols.cbps.scopes import Scopes
from .conditions import apart, folder_of, meant, reads_file


def watches(app: App) -> dict[str, Submit]:
    """A request for each subscription of an app."""
    return {name: _watch(name, one, folder_of(app)) for name, one in apart(app).items()}


def _watch(name: str, app: App, folder: Path) -> Submit:
    if not any(map(reads_file, app.statements)):
        return watch(name, show(app))
    checked = check(app, folder)
    only, found = conditions(checked)[name], meant(checked)
    if isinstance(found, Hosted):
        return watch_exactly(name, [_open(name, topic) for topic in found.topics], _watchable(found))
    if only.delivery.wait is not None:
        return watch_exactly(name, [_open(name, only.topic)], found)
    return watch_exactly(name, [in_writing(app.statements, only)], found)


def _watchable(hosted: Hosted) -> Watchable:
    """Any condition, as its subscriber runs it; what is lost makes it begin anew."""

    def doubt(state: Any, _scopes: Scopes) -> tuple[Any, list[tuple[str | None, Instant]]]:
        return hosted.machine.initial(), hosted.holding(state)

    said = hosted.name, hosted.inputs, hosted.event, hosted.machine, hosted.told
    return Watchable(*said, bits=lambda _: (), doubted=lambda _: (), doubt=doubt, outlook=lambda _: None)


def _open(name: str, topic: Topic) -> str:
    """A gate that lets everything pass, and tells when something was lost."""
    state = Subscribe(name, topic.name, Truth(True), Truth(False))
    return show(App([DeclareTopic(topic), state, passing(name, topic, Truth(True))]))
