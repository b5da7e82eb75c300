"""When a loop becomes machine code."""

import subprocess
import sys
from runpy import run_path
from textwrap import dedent

import numpy as np
import pytest

from holdfast.kernels.jit import SMALL, kernel, only_read

INSIDE = """
import sys
import numpy as np
from holdfast.kernels import keys
from holdfast.kernels.toggle import toggle
from holdfast.engine import key_codes
from holdfast.kinds.state import toggle as machine

def run(size):
    arrays = [np.zeros(size, dtype) for dtype in (np.int32, np.uint8, np.uint8)]
    toggle(*arrays, np.zeros(1, np.uint8), np.uint8(1), np.zeros(size, np.uint8))
    print("numba" in sys.modules)

run({small} - 1)
run({small})
"""


def test_numba_is_imported_by_the_first_large_call_and_not_before():
    script = dedent(INSIDE).format(small=SMALL)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_a_short_call_is_python_until_a_long_one_has_paid_for_the_machine_code():
    @kernel
    def double(values):
        """Twice."""
        for i in range(len(values)):
            values[i] *= 2

    runs = []
    python = double.body
    double.body = lambda values: runs.append("python") or python(values)
    values = np.ones(3)
    double(values)
    assert runs == ["python"]
    double._compiled = lambda values: runs.append("compiled")
    double(values)
    assert runs == ["python", "compiled"]
    assert values.tolist() == [2, 2, 2]


def test_a_kernel_keeps_the_name_and_the_docstring_of_its_loop():
    @kernel
    def nothing(values):
        """Does nothing."""

    assert (nothing.__name__, nothing.__doc__) == ("nothing", "Does nothing.")


@pytest.mark.parametrize("size", [0, 1, SMALL - 1, SMALL, SMALL + 1])
def test_every_call_size_gives_every_row(size):
    from holdfast.kernels.toggle import toggle

    hits = np.full(size, 9, np.uint8)
    ones = np.ones(size, np.uint8)
    toggle(np.full(size, -1, np.int32), ones, ones, np.zeros(1, np.uint8), np.uint8(1), hits)
    assert hits.tolist() == [1] * size


def test_read_only_arguments_may_be_writable_and_compile_once():
    @kernel
    def add(values, more, sums):
        for i in range(len(values)):
            sums[i] = values[i] + more[i]

    def identity(values):
        values.flags.writeable = False
        return values

    for values in (np.ones(3), identity(np.ones(3))):
        for more in (np.ones(3), identity(np.ones(3))):
            sums = np.zeros(3)
            add.compiled(values, more, sums)
            assert sums.tolist() == [2, 2, 2]
    assert len(add.compiled.__wrapped__.signatures) == 1


@pytest.mark.parametrize(
    ("line", "reads"),
    [
        ("other = many[0] + few[1]", "many few"),
        ("many[0] = few[1]", "few"),
        ("many[0] += few[1]", "few"),
        ("many[0], few[1] = 1, 2", ""),
        ("many[0].level = few[1]", "few"),
        ("many[0][1] = few[1]", "few"),
        ("cell = many[0]; cell.level = few[1]", "few"),
        ("part = many[2:]; first = part[1:]; first[0] = few[1]", "few"),
        ("many.sort(); few[0]", "few"),
        ("many = few[1]", "few"),
        ("for many in range(3): few[0]", "few"),
    ],
)
def test_arguments_that_a_loop_writes_to_are_detected(line, reads, tmp_path):
    file = tmp_path / "loop.py"
    file.write_text(f"def loop(many, few):\n    {line}\n")
    found = only_read(run_path(str(file))["loop"])
    assert found == [name in reads.split() for name in ("many", "few")]


def test_a_loop_without_source_code_has_no_known_writes():
    names = {}
    exec("def loop(many, few): many[0] + few[1]", names)
    assert only_read(names["loop"]) == [False, False]
