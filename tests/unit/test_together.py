"""Groups of tests that share a worker."""

from __future__ import annotations

import pytest

from support.together import is_on_spark, together

DOCS = "tests/system/test_docs.py::test_a_page_shows_the_real_output_of_its_commands"


@pytest.mark.parametrize(
    ("test", "shares"),
    [
        ("tests/laws/test_sim.py::test_a[x::y]", "tests/laws/test_sim.py"),
        ("src/holdfast/model/unit.py::holdfast.model.unit", "src/holdfast/model/unit.py"),
        ("tests/system/test_live.py::test_a_live_query_continues_after_a_stop", "Spark, the first"),
        ("tests/system/test_frames.py::test_every_number_is_a_float[int]", "Spark, the second"),
        ("lab/tests/benchmarks/test_spark.py::test_a", "Spark, the first"),
        ("tests/equivalence/test_frames.py::test_a", "Spark, the second"),
        ("tests/equivalence/test_runtimes.py::test_random_histories_on_spark", "Spark, the second"),
        ("tests/equivalence/test_runtimes.py::test_several_topics[spark]", "Spark, the second"),
        ("tests/system/test_notebooks.py::test_a_notebook[history-on-spark]", "Spark, the second"),
        ("tests/equivalence/test_runtimes.py::test_a", "tests/equivalence/test_runtimes.py"),
        (f"{DOCS}[docs/howto/live.md]", "Spark, the second"),
        (f"{DOCS}[docs/concepts/semantics.md]", f"{DOCS}[docs/concepts/semantics.md]"),
    ],
)
def test_tests_of_a_file_share_a_worker_and_so_do_those_that_need_spark(test, shares):
    assert together(test) == shares


def test_a_page_that_only_mentions_spark_starts_none():
    assert not is_on_spark("`holdfast run` needs Java.\n\n```console\n$ holdfast check a.hf\n```\n")
    assert is_on_spark("Text.\n\n```console\n$ holdfast run a.hf\n```\n")
    assert is_on_spark("```console\n$ holdfast demo\n```\n")
    assert not is_on_spark("```console\n$ holdfast demo --engine local\n```\n")
    assert is_on_spark("```python\nhf.spark.replay(app, frame)\n```\n")
