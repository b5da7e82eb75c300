"""``holdfast advise`` as it is typed."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from typer.testing import CliRunner

from holdfast import parse, replay
from holdfast.cli import app
from holdfast.errors import HoldfastError
from holdfast.files.interval import Interval
from holdfast.model.instant import instant, show_instant

WARM = "topic T (value float)\n# warm rooms\nstate Warm on T [value > 25; value < 24] per source\n"
DAYS = 21


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Three rooms over three weeks that are warm every day, with some noise."""
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(1)
    minutes = np.arange(0, DAYS * 24 * 60, 10)
    rows = ["time,source,value"]
    for room in "abc":
        values = 23 + 3 * np.sin(minutes / 1440 * 2 * np.pi) + draw.normal(0, 0.4, len(minutes))
        start = instant("2026-03-02")
        rows += [
            f"{show_instant(start + int(m) * 60_000_000)},{room},{v:.2f}"
            for m, v in zip(minutes, values, strict=True)
        ]
    (tmp_path / "rooms.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "app.hf").write_text(WARM)
    return tmp_path


def advise(*options):
    command = ["advise", "app.hf", "--subscription", "Warm", "--input", "rooms.csv", *options]
    return CliRunner().invoke(app, command, catch_exceptions=False)


def lines(*options):
    return [json.loads(line) for line in advise("--json", *options).stdout.splitlines()]


def test_every_variant_equals_a_replay_of_the_changed_definition(home):
    found = lines("--enter", "24.5,25", "--exit", "23:24:0.5", "--guard", "0 s,20 min", "--refine", "0")
    assert len(found) == 2 * 3 * 2
    for one in found:
        guard = f"for {one['guard']:.0f} s" if one["guard"] else ""
        band = f"[value > {one['enter']} {guard}; value < {one['exit']}]"
        text = f"topic T (value float)\nstate Warm on T {band} per source"
        emitted = replay(parse(text), home / "rooms.csv").intervals()
        end = instant("2026-03-02") + (DAYS * 24 * 60 - 10) * 60_000_000
        assert one["starts"] == len(emitted)
        assert one["holding"] == sum((end if i.end is None else i.end) - i.start for i in emitted) / 1e6
        assert one["flaps"] == flaps(emitted)
        assert one["messages"] == sum(2 - i.open for i in emitted)
    assert any(one["front"] for one in found)


def flaps(emitted: list[Interval]) -> int:
    by_room = {room: sorted((i for i in emitted if i.scope == room), key=lambda i: i.start) for room in "abc"}
    return sum(b.start - a.end < 5 * 60e6 for some in by_room.values() for a, b in pairwise(some))


def test_a_flap_is_a_start_within_the_given_time_after_an_end(home):
    few, many = (sum(one["flaps"] for one in lines("--flap", length)) for length in ("5 min", "1 h"))
    assert few < many


def test_the_default_grid_lies_around_the_written_numbers_and_can_be_refined(home):
    coarse, fine = lines("--refine", "0"), lines()
    assert {(25, 24, 0), (25.2, 24.2, 300)} <= {(o["enter"], o["exit"], o["guard"]) for o in coarse}
    assert all(one["exit"] <= one["enter"] for one in fine)
    assert len(fine) > len(coarse)
    assert {25.1} <= {one["enter"] for one in fine}


def test_a_variant_is_picked_by_its_number_and_written_with_all_comments(home):
    shown = advise().stdout
    assert "as it stands" in shown
    assert "chosen" in shown
    assert advise("--pick", "1").stdout.startswith(
        "topic T (value float)\n# warm rooms\nstate Warm on T [value > "
    )
    advise("--flap", "1 h", "--pick", "best", "--output", "new.hf")
    changed = (home / "new.hf").read_text()
    assert changed != WARM
    assert replay(parse(changed), home / "rooms.csv").intervals()


def test_labels_give_precision_and_recall(home):
    (home / "labels.csv").write_text(
        "scope,start,end\na,2026-03-02T01:00,2026-03-02T11:00\nnobody,2026-03-03T01:00,2026-03-03T02:00\n"
    )
    found = lines(
        "--labels", "labels.csv", "--enter", "25", "--exit", "22", "--guard", "0 s", "--refine", "0"
    )
    (one,) = (o for o in found if o["exit"] == 22)
    assert one["recall"] == 0.5
    assert one["precision"] == 1 / one["starts"]


def test_held_out_weeks_judge_a_choice_made_without_them(home):
    *used, again = lines("--held-out", "1")
    assert again["held_out"] == 1
    (chosen,) = (o for o in used if all(o[k] == again[k] for k in ("enter", "exit", "guard")))
    assert 0 < again["starts"] < chosen["starts"]
    assert "chosen, held-out weeks" in advise("--held-out", "1").stdout


NETWORK = """
nodes: {kind: grid, rows: 2, columns: 2, spacing: 10 m}
links: {kind: disk, range: 16 m}
routing: {kind: static}
protocol: {kind: direct, filters: source}
energy: {platform: telosb, rest: {radio: sleep, mcu: sleep}}
subscribers: [{node: 3, to: Warm}]
duration: 1 h
"""


def test_variants_with_more_notifications_take_more_joules_in_a_network(home):
    (home / "net.yaml").write_text(NETWORK)
    some = lines("--network", "net.yaml", "--enter", "25", "--exit", "22:24:1", "--guard", "0 s")
    emitted = sorted((one["messages"], one["joules"]) for one in some)
    assert [joules for _, joules in emitted] == sorted(joules for _, joules in emitted)
    assert emitted[0][1] < emitted[-1][1]
    assert "J/day" in advise("--network", "net.yaml", "--enter", "25", "--exit", "24").stdout


def test_the_figure_option_draws_the_front(home):
    pytest.importorskip("matplotlib")
    advise("--figure", "front.png")
    assert (home / "front.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--enter", "hot"], r"--enter hot: write numbers"),
        (["--enter", "9:8:1"], "from low to high"),
        (["--guard", "5"], r"--guard 5: .* write it as 5 min"),
        (["--pick", "900"], "--pick 900: say best, or the number"),
        (["--output", "x.hf"], "--output is of --pick"),
        (["--held-out", "3"], "too short: 21.0 days, of which 3 weeks"),
        (["--guard", "30 d"], "too short: .* a guard of 30 d"),
        (["--subscription", "Worm"], "no such state over readings. Did you mean 'Warm'"),
        (["--master", "local"], "add --engine spark"),
        (["--engine", "flink"], "no such choice"),
        (["--labels", "none.csv"], "cannot read none.csv"),
        (["--labels", "app.hf"], "no column end and start"),
        (["--let", "x=1"], "x"),
    ],
)
def test_impossible_options_are_refused(home, options, message):
    with pytest.raises(HoldfastError, match=message):
        advise(*options)


def test_a_history_without_readings_is_too_short(home):
    (home / "rooms.csv").write_text("time,source,value\n")
    with pytest.raises(HoldfastError, match="too short"):
        advise()


def test_a_label_that_ends_before_it_starts_is_reported(home):
    (home / "labels.csv").write_text("start,end\n2026-03-03,2026-03-02\n")
    with pytest.raises(HoldfastError, match=r"labels.csv, line 2: it ends before it starts"):
        advise("--labels", "labels.csv")


def test_a_state_that_is_never_active_has_no_delay(home):
    (home / "app.hf").write_text(WARM.replace("> 25", "> 95"))
    output = advise("--enter", "95")
    assert "nothing in this history tells what is late: 'Warm' never holds in it" in output.stderr


def test_unusable_rows_are_counted(home):
    with open(home / "rooms.csv", "a") as file:
        file.write("2026-04-01T00:00:00Z,a,warm\nnever,b,21\n")
    output = advise("--json", "--enter", "25", "--exit", "24")
    assert output.exit_code == 0
    assert output.stderr.count("1 row rejected: ") == 2
