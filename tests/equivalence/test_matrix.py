"""Every kind of condition on every runtime: the notifications of the naive twin, ids and order included."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import App, parse
from holdfast.errors import Unsupported
from support.runtimes import RUNTIMES, engine
from support.whole import visible

pytest.importorskip("pyspark")
from support.matrix import COLUMNS, NOT_SUPPORTED, ROWS

EXAMPLES = int(os.environ.get("HOLDFAST_EXAMPLES") or 30)


def app_of(definition):
    return definition if isinstance(definition, App) else parse(definition)


@pytest.mark.parametrize("kind", [kind for kind, row in ROWS.items() if row.expected])
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_the_engine_gives_the_notifications_of_the_naive_twin(kind, data):
    row = ROWS[kind]
    definition, events = data.draw(row.definitions), data.draw(row.histories)
    assert row.rows(definition, events, engine(app_of(definition), events)) == row.expected(
        definition, events
    )


@pytest.mark.parametrize("runtime", COLUMNS)
@pytest.mark.parametrize("kind", ROWS)
@settings(max_examples=max(1, EXAMPLES // 10))
@given(data=st.data())
def test_a_runtime_gives_the_notifications_of_the_engine(kind, runtime, data):
    row, column = ROWS[kind], COLUMNS[runtime]
    app, events = app_of(data.draw(row.definitions)), data.draw(row.histories)
    if (kind, runtime) in NOT_SUPPORTED:
        with pytest.raises(Unsupported, match=NOT_SUPPORTED[kind, runtime]):
            column.run(app, events)
    else:
        assert visible(column.run(app, events)) == visible(column.reference(app, events))


@pytest.mark.parametrize("kind", ["state", "relation"])
@settings(max_examples=2)
@given(data=st.data())
def test_the_engine_and_spark_agree_on_spark(kind, data):
    """Spark itself takes a second for a case; test_whole_on_spark has many kinds in each."""
    app, events = app_of(data.draw(ROWS[kind].definitions)), data.draw(ROWS[kind].histories)
    assert visible(RUNTIMES["spark"](app, events)) == visible(engine(app, events))
