"""Forecast of a revision: how many scopes of a running definition stay, start, end or become unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..errors import UsageError
from .options import load, parameters


def forecast(old: Path, new: Path, state: Path, lets: list[str] | None) -> dict[str, str]:
    """Return a description of the effects on each condition.

    ``state`` is the snapshot of an engine, or the checkpoint of a streaming query.
    """
    return {
        name: _in_words(numbers)
        for name, numbers in (_in_checkpoint if state.is_dir() else _in_snapshot)(old, new, state, lets)
    }


Forecast = Iterator[tuple[str, Mapping[str, int]]]
"""For each condition how many active scopes stay as they are, and how many change to each status."""


def _in_snapshot(old: Path, new: Path, state: Path, lets: list[str] | None) -> Forecast:
    from ..definition.parse import load as parsed
    from ..runtimes.local.engine import Engine

    try:
        raw = state.read_bytes()
    except OSError as error:
        raise UsageError(f"--state {state}: {error.strerror}") from None
    engine = Engine.restore(parsed(old), raw, lets=parameters(lets or []))
    held, lost = {one[:2] for one in engine.holding()}, set(engine.unknown())
    engine.revise(parsed(new))
    now, open = {one[:2] for one in engine.holding()}, set(engine.unknown()) - lost
    becomes = dict.fromkeys(held - now, "end") | dict.fromkeys(now - held, "start")
    becomes |= dict.fromkeys(held & now, "stay so") | dict.fromkeys(open, "become unknown")
    for name in (name for name in engine.subscriptions if any(one == name for one, _ in becomes)):
        yield name, Counter(word for (one, _), word in becomes.items() if one == name)


def _in_checkpoint(old: Path, new: Path, state: Path, lets: list[str] | None) -> Forecast:
    """Return the forecast for a checkpoint of a streaming query.

    Conditions that cannot be carried over are rebuilt from the files that were read, if they still exist.
    """
    from ..plan.compile import in_words
    from ..plan.revise import is_preserved
    from ..runtimes.spark.streaming.checkpoint import Checkpoint
    from ..runtimes.spark.streaming.ledger import read_ledger

    was, now = load(old, lets), load(new, lets)
    held = Counter(name for name, _, _ in read_ledger(Checkpoint(state).ledger).holding)
    before, after = in_words(was), in_words(now)
    for name in held.keys() & after.keys():
        stays = before.get(name) == after[name] or is_preserved(name, was, now)
        yield name, {"stay so" if stays else "are as the files say": held[name]}


def _in_words(numbers: Mapping[str, int]) -> str:
    words = ("stay so", "start", "end", "become unknown", "are as the files say")
    return ", ".join(f"{numbers[word]:,} {word}" for word in words if numbers.get(word))
