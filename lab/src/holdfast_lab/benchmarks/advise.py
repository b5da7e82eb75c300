"""A thousand variants of a state over a history, beside one replay of it as it stands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.definition.tune import tunable
from holdfast.files.find import find
from holdfast.files.reading import Reading
from holdfast.files.tally import Tally
from holdfast.model.instant import SECOND
from holdfast.plan.advise.question import AdviceAnswer, AdviceQuestion
from holdfast.runtimes.local.advise import history
from holdfast.runtimes.local.replay import replay

from . import Row, measure_time, times
from .spark import SCALE, definition, write_readings

EVENTS, SENSORS = 10_000_000, 1_000
TEXT = definition(1)
ENTERS = [23.5 + i / 2 for i in range(10)]
EXITS = [18.5 + i / 2 for i in range(10)]
GUARDS = [seconds * SECOND for seconds in (0, 1, 2, 3, 5, 8, 10, 15, 20, 30)]


def run(progress: Callable[[str], None]) -> list[Row]:
    events = int(EVENTS * SCALE)
    with TemporaryDirectory() as folder:
        place = Path(folder) / "readings"
        write_readings(place, events, SENSORS)
        progress(f"one replay of {events:,} events")
        once = measure_time(lambda: sum(1 for _ in replay(TEXT, place)), repeat=3)
        progress("a thousand variants of it")
        advise(place)  # compiled once
        every = measure_time(lambda: advise(place), repeat=2)
    answer: AdviceAnswer = every.result
    own = next(one for one in answer.variants if (one.enter, one.exit, one.guard) == (25, 22, 0))
    assert own.starts + own.ends == once.result
    ratio = every.best / once.best
    detail = {"replay": once.best, "advise": every.best, "variants": len(answer.variants)}
    row = times(f"{len(answer.variants):,} variants, beside one replay", ratio, most=20)
    return [Row(row.what, row.value, row.unit, row.goal, row.met, detail)]


def advise(place: Path) -> AdviceAnswer:
    """Every variant, from the files on."""
    checked = check(parse(TEXT))
    found = tunable(checked, "Warm")
    question = AdviceQuestion(found, ENTERS, EXITS, GUARDS)
    return question.ask(history(found, find([str(place)]), Reading(checked.topics), Tally()))
