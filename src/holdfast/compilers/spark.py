"""Conditions as Spark Columns, equal to ``scalar`` on every event; the laws test it."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql.functions import coalesce, expr, lit

from ..lang.condition import Condition
from ..lang.ops import Expression
from ..model.topic import Topic
from . import sql
from .sql import Naming, quoted


def predicate(op: Expression, topic: Topic, named: Naming = quoted) -> Column:
    """Whether a row satisfies a core predicate: true or false, never null.

    The row's columns are of the declared kinds; ``named`` says what they are called.
    """
    return coalesce(expr(sql.predicate(op, topic, named)), lit(False))


def keys(condition: Condition, named: Naming = quoted) -> tuple[Column, ...] | None:
    """The keys of a row's scopes, innermost first, null where it is in none; nothing where only
    Python can tell them (regions, floats)."""
    texts = sql.keys(condition, named)
    return None if texts is None else tuple(map(expr, texts))
