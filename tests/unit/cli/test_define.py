"""The output of ``check`` for a definition."""

from __future__ import annotations

from holdfast.cli.define import check

APP = """
topic U (floor int, v float)
state Cold on U each floor enter v < 0 exit v > 5
state Loud on U each source enter v > 90 exit v < 80
state Alarm on Loud any location enter v > 95 exit v < 90
"""


def test_components_are_shown_in_brackets_where_possible_unless_others_build_on_them(tmp_path, capsys):
    definition = tmp_path / "app.hf"
    definition.write_text(APP)
    check(definition)
    assert capsys.readouterr().out.splitlines() == [
        "topic U (floor int, v float)",
        "state Cold from U",
        "state Loud from U",
        "state Alarm from Loud",
        "Cold in brackets, told at once: state Cold on U [v < 0.0; v > 5.0] per floor",
    ]
