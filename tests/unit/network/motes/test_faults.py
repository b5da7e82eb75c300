"""An error in a scenario is reported with file, line and column, what was expected, and a hint."""

from __future__ import annotations

import pytest

from holdfast.errors import DefinitionError, InputError
from holdfast.network.motes.study import read, read_text
from support.protocols import scenario_text, underlined_text

GOOD = """\
nodes: {kind: grid, rows: 3, columns: 3, spacing: 10 m}
routing:
  kind: id-grid
traffic:
  - from: 0
    to: 8
    every: 2 s
duration: 10 s
"""


def error_of(text: str, folder=None) -> str:
    with pytest.raises(DefinitionError) as caught:
        read_text(text, *([folder] if folder else []))
    return str(caught.value)


def change(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


def test_a_scenario_without_mistakes_is_read():
    study = read_text(GOOD)
    assert len(study.points) == 1
    assert study.seeds == (1,)


CHANGED = """\
rows: | rwos: | 1:21 | there is no 'rwos' here | Did you mean 'rows'?
rows: 3, |  | 1:8 | 'rows' is missing |
rows: 3 | rows: 0 | 1:27 | expected a whole number >= 1 |
rows: 3 | rows: three | 1:27 | expected a whole number; got text |
rows: 3 | rows: 2.5 | 1:27 | expected a whole number; got a number |
kind: grid | kind: gird | 1:15 | there is no such choice as 'gird' | Did you mean 'grid'?
kind: grid, |  | 1:8 | 'kind' is missing | There is grid, uniform, csv, intel-lab
10 m | 10 | 1:51 | expected a length with its unit, such as '14 m'; got 10 |
10 m | 10 s | 1:51 | got '10 s'; units are mm, cm, m |
10 m | -10 m | 1:51 | each must be above 0 |
id-grid | idgrid | 3:9 | there is no such choice as 'idgrid' | Did you mean 'id-grid'?
id-grid | tree; sinks: [9] | 4:11 | there is no node '9' | Nodes are 0
from: 0 | from: 12 | 5:11 | there is no node '12' | Nodes are 0
from: 0 | from: [0, 1, 12] | 5:18 | there is no node '12' | Nodes are 0
from: 0 | from: {any: 9} | 5:17 | there are only 8 nodes beside the destination |
from: 0 | from: {some: 9} | 5:12 | there is no 'some' here | There is any.
to: 8 | too: 8 | 6:5 | there is no 'too' here | Did you mean 'to'?
to: 8 | to: {x: 1 m, y: 2 m} | 6:9 | only geographic routing leads to a point |
2 s | 0 s | 7:12 | messages are some time apart, such as '2 s' |
2 s | 2 | 7:12 | expected a duration with its unit, such as '2 s'; got 2 |
every: 2 s |  | 5:5 | 'every' is missing | Expected a duration with its unit, such
2 s | 2 s;   size: 200 | 8:11 | a frame has room for 82 bytes of a message |
2 s | 2 s;   stop: 0 s | 8:11 | it stops before it starts |
10 s | 0 s | 8:11 | a run takes some time, such as '100 s' |
duration: 10 s | duration: ten s | 8:11 | expected a duration with its unit |
duration: 10 s |  | 1:1 | 'duration' is missing | Expected a duration with its unit, such
"""

ADDED = """\
warm-up: 11 s | 9:10 | the run is over before the warm-up is |
seeds: 0 | 9:8 | expected how many runs there are |
seeds: [1, 1] | 9:8 | a seed is there twice; it would give the same run again |
links: {kind: measured} | 9:15 | nobody measured the links of these nodes | Take nodes
links: {kind: disk, range: -1 m} | 9:8 | range_m is -1.0; it must be above 0 |
mac: {kind: csma, min-exponent: 6} | 9:6 | exponents from 6 to 5 |
mac: csma | 9:6 | expected a mapping (key: value); got text |
energy: {platform: micax} | 9:20 | no platform named 'micax'. Did you mean 'micaz'? |
energy: {battery: 0 J} | 9:19 | a battery holds more than nothing |
energy: {mains: [77]} | 9:18 | there is no node '77' | Nodes are 0
failures: [{kind: kill, at: 20 s, nodes: [1]}] | 9:29 | this is not within the duration of the run |
failures: [{kind: kill, at: 2 s, nodes: [99]}] | 9:42 | there is no node '99' | Nodes are 0
failures: [{kind: cut, at: 2 s, links: [[0]]}] | 9:41 | expected a list of 2 |
failures: [{kind: partition, at: 2 s, groups: [[0], [0]]}] | 9:47 | a node is in two groups |
failures: [{kind: drift, at: 2 s, nodes: [0], by: 5}] | 9:51 | with its unit, such as '50 ppm'; got 5 |
trace: often | 9:8 | expected true or false |
routing: {kind: tree} | 9:1 | 'routing' is there already, in line 2 |
sweep: {traffic.1.every: [1 s]} | 9:9 | there is no 'traffic.1' to change | places in lists count from 0
sweep: {nodes.rows: 1000, nodes.columns: [1000]} | 9:21 | expected a list of values |
sweep: {nodes.rows: [900], nodes.columns: [900]} | 1:8 | 810,000 nodes; a network has 10,000 at most |
sweep: {nodes.rows: 5} | 9:21 | expected a list of values, such as [2 s, 4 s] |
sweep: {nodes.rows: [4, two]} | 9:25 | expected a whole number; got text |
sweep: {nodes.rows: [4, 2]} | 6:9 | there is no node '8' (with nodes.rows 2) | … 5.
sweep: {seeds: [1, 2]} | 9:9 | there is no 'seeds' to change |
sweep: [4] | 9:9 | expected a mapping, such as nodes.rows: 5 |
sweep: 4 | 9:8 | expected a mapping, such as traffic.0.every: [2 s, 4 s] |
? [1] | 9:3 | a key must be a word or a number |
name: [ | 10:1 | this is not YAML |
name: &a [*a] | 9:7 | the document repeats itself |
name: 2001-99-01 | 9:7 | cannot be read: month must be in 1..12 |
<<: {a: 1} | 9:1 | '<<' is not understood here; write the keys out |
"""


def cells(table: str, columns: int) -> list[tuple[str, ...]]:
    """The rows of a table; the first cells are YAML, in which ';' stands for a new line."""
    rows = [tuple(cell.strip() for cell in line.split(" | ")) for line in table.splitlines()]
    return [
        (*row, "")[:columns]
        for row in (tuple(cell.removesuffix("|").strip() for cell in row) for row in rows)
    ]


@pytest.mark.parametrize(("old", "new", "place", "expected", "hint"), cells(CHANGED, 5))
def test_an_error_is_reported_with_its_position(old, new, place, expected, hint):
    message = error_of(change(old, new.replace(";", "\n ")))
    assert message.startswith(f"scenario:{place}: "), message
    assert expected in message
    assert hint in message.splitlines()[-1]


@pytest.mark.parametrize(("line", "place", "expected", "hint"), cells(ADDED, 4))
def test_an_error_at_the_end_is_reported_with_its_position(line, place, expected, hint):
    message = error_of(f"{GOOD}{line}\n")
    assert message.startswith(f"scenario:{place}: "), message
    assert expected in message
    assert hint in message.splitlines()[-1]


def test_the_line_is_shown_with_a_caret():
    assert error_of(change("spacing: 10 m", "spacing: 10 metres")) == (
        "scenario:1:51: expected a length with its unit, such as '14 m'; got '10 metres'; "
        "units are mm, cm, m, km, ft, mi\n"
        "    nodes: {kind: grid, rows: 3, columns: 3, spacing: 10 metres}\n"
        "                                                      ^^^^^^^^^"
    )


def test_id_based_routing_needs_a_grid():
    nodes = "nodes: {kind: uniform, count: 9, width: 20 m, height: 20 m, reach: 30 m}"
    message = error_of(GOOD.replace(GOOD.splitlines()[0], nodes))
    assert message.startswith("scenario:3:9: ID-based routing needs nodes of kind grid")


def test_a_placement_that_cannot_be_connected_is_reported_at_the_nodes():
    nodes = "nodes: {kind: uniform, count: 9, width: 2 km, height: 2 km, reach: 30 m}"
    message = error_of(GOOD.replace(GOOD.splitlines()[0], nodes).replace("id-grid", "flooding"))
    assert message.startswith("scenario:1:8: of 1,000 placements of 9 nodes")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("# nothing\n", "the file is empty"),
        ("- a\n- b\n", "expected keys: nodes, traffic, duration"),
        ("just words", "expected keys: nodes, traffic, duration"),
        ("a: \x00", "this is not YAML"),
    ],
)
def test_a_document_that_is_no_scenario_is_refused(text, message):
    assert message in error_of(text)


def test_an_error_in_a_file_named_by_a_scenario_is_reported_there(tmp_path):
    (tmp_path / "nodes.csv").write_text("node,x,y\na,0,zero\n")
    path = tmp_path / "lab.yaml"
    path.write_text("nodes:\n  kind: csv\n  file: nodes.csv\nduration: 10 s\n")
    with pytest.raises(DefinitionError) as caught:
        read(path)
    assert f"{path}:3:9: {tmp_path / 'nodes.csv'}:2: y is 'zero'; expected a number" in str(caught.value)


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.yaml: No such file"):
        read(tmp_path / "nowhere.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"name: caf\xe9\n")
    with pytest.raises(InputError, match="not UTF-8 at byte 9"):
        read(tmp_path / "latin.yaml")
    with pytest.raises(InputError, match="Is a directory"):
        read(tmp_path)


PUBLISHING = """\
topic: T | topic: X | X | the definition has no topic 'X' | There is T.
from: [0, 2, 8] | from: [0, 99] | 99 | there is no node '99' | Nodes are 0
every: 2 s | every: 0 s | 0 s | messages are some time apart, such as '2 s' |
stop: 80 s | stop: 10 s | 10 s | it stops before it starts |
{value: {kind: uniform}} | {vlaue: {kind: uniform}} | vlaue | topic 'T' has no 'vlaue' | mean 'value'?
{kind: uniform} | {kind: wave} | wave | there is no such choice as 'wave' | constant, uniform, walk, sine
{kind: uniform} | {kind: sine, mean: 1, swing: -1} | -1 | expected a number >= 0.0 |
{kind: uniform} | {kind: sine, mean: 1, swing: 1, period: 0 s} | 0 s | a period takes some time |
{kind: uniform} | {kind: constant, value: warm} | {kind: constant | 'value' is of kind float | A constant
readings: {value: {kind: uniform}} | recorded: {file: none.csv} | {file: none.csv} | none.csv |
readings: {value: {kind: uniform}} | phase: random | t | readings, or they are recorded; one of the two |
{node: 4, to: Warm} | {node: 77, to: Warm} | 77 | there is no node '77' | Nodes are 0
{node: 4, to: Warm} | {node: 4, to: Wram} | Wram | the definition has no 'Wram' | Did you mean 'Warm'?
{node: 4, to: Warm} | {node: 4, to: [Warm, Warm]} | {node: 4, | node 4 subscribes to 'Warm' twice |
{kind: on-demand} | {kind: tree} | tree | a tree leads to its sinks only |
state Warm | state Wa+rm | + | scenario:7:11: expected '=', 'enter', 'on' or a name |
"""


@pytest.mark.parametrize(("old", "new", "where", "expected", "hint"), cells(PUBLISHING, 5))
def test_an_error_of_publishers_and_subscribers_is_reported_with_its_position(
    old, new, where, expected, hint
):
    text = scenario_text("{kind: dds}")
    assert old in text
    message = error_of(text.replace(old, new))
    assert expected in message
    assert where in underlined_text(message)
    assert hint in message.splitlines()[-1]


def test_an_error_in_an_inline_definition_is_reported_there(tmp_path):
    (tmp_path / "warm.hf").write_text("topic T (value float)\nstate Warm on T [value >> 1; false]\n")
    path = tmp_path / "lab.yaml"
    path.write_text(
        "nodes: {kind: grid, rows: 1, columns: 2, spacing: 1 m}\ndefinition: warm.hf\nduration: 9 s\n"
    )
    with pytest.raises(DefinitionError, match=r"warm\.hf:2:25: expected"):
        read(path)
    path.write_text(path.read_text().replace("warm.hf", "cold.hf"))
    with pytest.raises(DefinitionError, match=r"lab\.yaml:2:13: cannot read .*cold\.hf: No such file"):
        read(path)


def test_an_error_in_a_one_line_definition_shows_its_text():
    text = scenario_text().replace(
        "|\n  topic T (value float)\n  state Warm on", "topic T (value float) stat Warm on"
    )
    assert error_of(text).startswith("definition:1:23: ")
