"""Rows are number_rows here as Spark numbers them."""

import math

import pyarrow as pa

from holdfast.model.topic import Attribute, Topic
from holdfast.runtimes.spark.numbering import number_rows

TOPIC = Topic("T", (Attribute("value", "float"), Attribute("k", "text")))


def numbers(values, keys, **more):
    columns = {
        "sequence": pa.array([0] * len(values)),
        "value": pa.array(values, pa.float64()),
        "k": keys,
        **more,
    }
    return number_rows(TOPIC, pa.RecordBatch.from_pydict(columns)).column("sequence").to_pylist()


def test_row_numbers_equal_those_of_spark():
    """Taken from ``frames.rows.number_rows``; the random frames of ``equivalence`` compare many more."""
    assert numbers([26.0, 27.0, 29.0], ["a", "b", None]) == [
        7036973814103925937,
        4597749332431287698,
        5037924217896032718,
    ]


def test_missing_values_do_not_change_row_numbers_and_zero_and_nan_are_single():
    (bare,) = numbers([26.0], ["a"])
    assert numbers([26.0], ["a"], place=pa.array([None], pa.string()), x=pa.array([None], pa.float64())) == [
        bare
    ]
    assert numbers([26.0], ["a"], place=pa.array(["lab"])) != [bare]
    zeros = numbers([0.0, -0.0], ["a", "a"])
    nans = numbers([math.nan, -math.nan], ["a", "a"])
    assert len({*zeros}) == len({*nans}) == 1
    assert zeros != nans
