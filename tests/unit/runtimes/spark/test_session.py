"""How a session is set up: what a slow machine needs, unless somebody has said otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.runtimes.spark.session import PATIENCE, _chosen
from support.runtimes import session


def test_spark_waits_long_for_its_own_processes() -> None:
    settings = session().sparkContext.getConf()
    assert {name: settings.get(name) for name in PATIENCE} == PATIENCE


def test_what_somebody_has_set_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spark-defaults.conf").write_text("# ours\nspark.network.timeout   90s\nspark.ui.port=1\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert {"spark.network.timeout", "spark.ui.port"} <= _chosen()


def test_nothing_is_set_where_there_is_no_such_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert _chosen() == set()
