"""State filters as brokers evaluate them: predicates, scopes, and a machine that tolerates lost events."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from ...engine import corrected, ordered
from ...engine.machine import Machine
from ...lang.expressions import event as scalar
from ...model.instant import Duration, Instant
from ..kind import BrokerForm
from .condition import DurationCondition, StateCondition
from .lossy import LossyToggleMachine, LossyToggleState, Lost
from .plan_toggle import filter_machine, state_filter, with_delivery


def on_broker(condition: Any) -> BrokerForm | None:
    """Return the form of a condition for brokers.

    Return ``None`` for states with minimum durations, which a single broker evaluates.
    """
    if not isinstance(condition, StateCondition):
        return None
    predicates = state_filter(condition)
    run = LossyToggleMachine(filter_machine([condition]))
    machine = with_delivery(cast(Machine[Any], run), condition.topic, condition.delivery)
    return BrokerForm(
        machine=machine,
        enter=predicates.enter,
        leave=predicates.leave,
        chain=scalar.chain(condition.keys, condition.forest),
        scope_attributes=frozenset(name for level in condition.keys for name in level),
        forest=condition.forest,
        bits=lambda state: list(_innermost(state).bits()),
        uncertain_bits=lambda state: _innermost(state).uncertain,
        mark_uncertain=partial(_mark_uncertain, run),
        progress=partial(_progress, machine, run),
    )


def starts_silently(condition: Any) -> bool:
    """Whether a scope may become active without a notification."""
    if not isinstance(condition, DurationCondition):
        return False
    return condition.care.quietly or condition.care.initially == "on"


def _mark_uncertain(run: LossyToggleMachine, state: Any, may_lack: Callable[[str], bool]) -> tuple[Any, Lost]:
    """Mark scopes as uncertain after a loss. Notifications before the loss can no longer be corrected."""
    lost = run.mark_uncertain(_innermost(state), may_lack)
    return corrected.without_corrections(state, run.copy(_innermost(state))), lost


def _progress(
    machine: Machine[Any], run: LossyToggleMachine, state: Any
) -> tuple[Instant, Instant, Duration, tuple[Instant, ...]] | None:
    """Return the progress of a condition that corrects its notifications, as `BrokerForm.progress`
    specifies."""
    if not isinstance(machine, corrected.Corrected):
        return None
    starts = tuple(since for _, _, since in run.filters.active(_innermost(state).inner))
    return state.now.until, machine.final(state), machine.inner.wait + machine.within, starts


def _innermost(state: Any) -> LossyToggleState:
    """Return the state of the filter, without the states that delivery adds."""
    match state:
        case corrected.CorrectedState(now=now):
            return _innermost(now)
        case ordered.OrderedState(inner=inner):
            return _innermost(inner)
    assert isinstance(state, LossyToggleState)
    return state
