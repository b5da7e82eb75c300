"""The plan of components in words."""

from __future__ import annotations

from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.plan.explain import explain

TIMELY = (
    "  delivery  timely: evaluated when the watermark has passed, by a later reading or by 'advance'; "
    "an earlier reading is taken into account from then on"
)


def test_the_plan_lists_inputs_instants_and_state():
    text = """
        topic T (value float)  topic User ()
        state Cold A = avg T over 30 s each location B = T at -1 min each location
          enter A.value < 3 && B.value > 3 for 1 min exit A.value > 5 tick 10 s ordered 5 s
        state Near A = Cold within 10 m of here enter A.valid exit true here User
        state Hot on T each source enter value > 25 exit false
    """
    assert explain(check(parse(text))).splitlines() == [
        "component Cold, level 1, from T",
        "  A         avg T over 30 s each location",
        "  B         T at -1 min each location",
        "  starts    A.value < 3.0 && B.value > 3.0 for 1 min",
        "  ends      A.value > 5.0",
        "  scopes    one for each location",
        "  evaluated at every time of an event that it looks at; when one leaves A; "
        "when a predicate has been true for long enough; every 10 s, at most 10,000 times after a reading",
        "  delivery  ordered: 5 s behind the latest event; a later one goes to the late output",
        "  drops     events without location",
        "  keeps     of A the last 30 s; of B what is nearest in time; the last event of each scope",
        "  plan      columns: A.value, B.value, many instants at once; "
        "events are made one by one, because a guard waits",
        "",
        "component Near, level 2, from Cold, User",
        "  A         Cold within 10 m of here",
        "  starts    A.valid",
        "  ends      at once (momentary: every detection is notified)",
        "  scopes    one with each source of User",
        "  evaluated at every time of an event that it looks at",
        TIMELY,
        "  drops     events outside the locations of its queries",
        "  keeps     of A the latest of each place and status; the last event of each scope",
        "  plan      reference machine, because A looks at starts and ends around each source of User",
        "",
        "component Hot, level 1, from T",
        "  looks at  T each source",
        "  starts    value > 25.0",
        "  ends      never",
        "  scopes    one for each source",
        "  evaluated at every time of an event that it looks at",
        TIMELY,
        "  drops     events without source",
        "  keeps     the latest of each place and status; the last event of each scope",
        "  plan      columns: value, many instants at once",
        "  same as   state Hot on T [value > 25.0; false] per source",
        "            which notifies at once and is evaluated at the publishers",
    ]
