"""How a session is set up: the settings for slow machines, unless the user has set them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from holdfast.runtimes.spark import start
from holdfast.runtimes.spark.session import PATIENCE, _user_settings, redirect_stderr
from support.runtimes import session


def test_spark_gets_long_time_outs_for_its_own_processes() -> None:
    settings = session().sparkContext.getConf()
    assert {name: settings.get(name) for name in PATIENCE} == PATIENCE


def test_the_log_of_a_spark_started_here_goes_to_a_file(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log, java = tmp_path / "spark.log", [sys.executable, "-c", "import sys; sys.stderr.write('warned ')"]
    for output in ("warned ", "warned warned ", "warned "):
        with redirect_stderr(log):
            subprocess.run(java, check=True)
        assert log.read_text() == output
        if output.count("warned") == 2:
            log.write_text("")
    subprocess.run(java, check=True)
    assert capfd.readouterr().err == "warned "


def test_settings_of_the_user_are_not_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spark-defaults.conf").write_text("# ours\nspark.network.timeout   90s\nspark.ui.port=1\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert {"spark.network.timeout", "spark.ui.port"} <= _user_settings()


def test_nothing_is_set_where_the_file_does_not_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert _user_settings() == set()


LOADED = "import sys, pyspark, sitecustomize as s; print(pyspark.__file__, s.__file__, sys.path, sep='\\n')"


@pytest.mark.parametrize("theirs", [False, True])
def test_python_workers_of_spark_do_not_compile_their_archives_at_each_start(
    tmp_path: Path, theirs: bool
) -> None:
    """Other start-up code of Python on this machine still runs."""
    home = Path(pyspark.__file__).parent
    (folder,) = start.__path__
    if theirs:
        (tmp_path / "sitecustomize.py").write_text("")
    path = [folder, *map(str, sorted((home / "python" / "lib").glob("*.zip"))), str(tmp_path)]
    ran = subprocess.run(
        [sys.executable, "-c", LOADED],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
        check=True,
    )
    module, first, rest = ran.stdout.splitlines()
    assert (module, ran.stderr) == (pyspark.__file__, "")
    assert first == (
        f"{tmp_path}/sitecustomize.py" if theirs else _of_machine() or f"{folder}/sitecustomize.py"
    )
    assert folder not in rest


def _of_machine() -> str | None:
    """The start-up code of Python on this machine, if there is any: Debian has such a file."""
    code = "import importlib.util as u; one = u.find_spec('sitecustomize'); print(one.origin if one else '')"
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ran = subprocess.run([sys.executable, "-c", code], env=clean, capture_output=True, text=True, check=True)
    return ran.stdout.strip() or None


def test_processes_started_beside_spark_have_the_original_path() -> None:
    before = os.environ.get("PYTHONPATH")
    session()
    assert os.environ.get("PYTHONPATH") == before
