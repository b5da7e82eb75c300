"""Conditions that restart where their definition changes without a history: active scopes are unknown
until the new definition decides, every start has its end, and a snapshot continues."""

from __future__ import annotations

from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from holdfast import Engine, Event, check, parse
from holdfast.model.batch import from_events

MINUTE = 60_000_000
TODAY = 1_700_000_000_000_000


def _push_all(engine, events):
    return [n for event in events for n in engine.push(event)]


def _rows(emitted):
    return sorted((n.subscription, n.scope or "", n.event.time, n.status, n.since or -1) for n in emitted)


# --- components, beside a twin that asks for starts and ends by definitions of their own --------------

_TOPIC = "topic T (v float)\n"
_DUMMY = "state Dummy\n  A = T each source\n  enter A.v > 1e9\n  exit A.v < 1e9\n"


def _component(name, view, enter, leave):
    return f"state {name}\n  A = {view} each source\n  enter A.v > {enter}\n  exit {leave}\n"


_views = st.sampled_from(("T", "avg T over 2 min", "max T over 3 min", "min T over 1 min"))
_bands = st.sampled_from(((2, 1), (3, 1), (3, 2), (4, 2), (4, 4)))
_readings = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from("abc"), st.sampled_from((0.0, 1.5, 2.5, 3.5, 5.0, None))),
    min_size=3,
    max_size=14,
)


def _events(rows, start=TODAY):
    out, at = [], start
    for i, (step, source, v) in enumerate(rows):
        at += step * MINUTE
        out.append(Event("T", at, source, {"v": v}, i))
    return out


_WINDOWS = {"T": 0, "avg T over 2 min": 2, "max T over 3 min": 3, "min T over 1 min": 1}


@given(
    old=st.tuples(_views, _bands),
    new=st.tuples(_views, _bands),
    first=_readings,
    second=_readings,
    cut=st.integers(0, 14),
)
def test_a_revised_component_equals_a_new_one_with_unknown_scopes_until_it_decides(
    old, new, first, second, cut
):
    (view, (high, low)), (_, (was_high, was_low)) = new, old
    before = _TOPIC + _component("Hot", old[0], was_high, f"A.v < {was_low}")
    after = _TOPIC + _component("Hot", view, high, f"A.v < {low}")
    engine, twin = Engine(before), Engine(_TOPIC + _DUMMY)
    for one in (engine, twin):
        _push_all(one, _events(first))
    held = {one.scope: one.since for one in engine.holding()}
    output = engine.revise(after)
    if before == after:
        assert (output, engine.unknown()) == ([], [])
        return
    assert sorted((n.status, n.scope, n.since) for n in output) == sorted(
        ("unknown", *o) for o in held.items()
    )
    assert {(one.scope, one.since) for one in engine.holding()} == set(held.items())
    assert engine.unknown() == [("Hot", scope) for scope in sorted(held)]
    edited, size = _events(first)[-1].time, _WINDOWS[view]
    starts, ends = [], []
    twin.subscribe(_component("Hot", view, high, f"A.v < {low}"), starts.append)
    twin.subscribe(_component("Ends", view, 0, "true").replace("A.v > 0", f"A.v < {low}"), ends.append)
    events = _events(second, edited)
    emitted = _push_all(engine, events[:cut])
    engine = Engine.restore(after, engine.snapshot())
    emitted += _push_all(engine, events[cut:]) + engine.finish()
    _push_all(twin, events)
    twin.finish()
    full = edited + size * MINUTE if size else 0
    ends = _ends_by(view, low, events, full + 1) + ends if size else ends
    assert _rows(emitted) == _rows(_expectation(held, starts, ends, full))
    assert _standing(held, emitted) == {(one.scope, one.since, one.known) for one in engine.holding()}


def _ends_by(view, low, events, at):
    """The result of the exit at an instant, whether or not an event happens then."""
    if not events or events[-1].time < at:
        return []
    rule = f"  K = Knock each source\n  enter A.v < {low} && K.v > 0\n  exit true\n"
    engine = Engine(f"{_TOPIC}topic Knock (v float)\nstate Ends\n  A = {view} each source\n{rule}")
    emitted = _push_all(engine, [event for event in events if event.time <= at])
    emitted += (
        _push_all(engine, [Event("Knock", at, source, {"v": 1.0}) for source in "abc"]) + engine.finish()
    )
    return [n for n in emitted if n.event.time == at]


def _expectation(held, starts, ends, full):
    """The expected notifications: nothing about an active scope until it starts again or ends with a full
    window; after that those of a new condition, once the two agree."""
    found = []
    for scope in {n.scope for n in starts} | held.keys():
        mine = [n for n in starts if n.scope == scope]
        over = [n for n in ends if n.scope == scope and n.event.time > full]
        if scope not in held:
            found += mine
            continue
        start = next((n.event.time for n in mine if n.status == "ingress"), None)
        end = next((n.event.time for n in over), None)
        if start is not None and (end is None or start <= end):
            found.append(mine[0]._replace(status="known", since=held[scope]))
            rest = mine[1:]
            if rest:
                found += [rest[0]._replace(since=held[scope]), *rest[1:]]
        elif end is not None:
            first = next(n for n in over)
            found.append(first._replace(subscription="Hot", status="egress", since=held[scope]))
            found += mine
    return found


def _standing(held, emitted):
    """The active scopes after all notifications: (scope, since, known)."""
    now = {scope: (since, False) for scope, since in held.items()}
    for n in emitted:
        match n.status:
            case "ingress":
                assert n.scope not in now, "it started twice"
                now[n.scope] = (n.event.time, True)
            case "known":
                assert now[n.scope] == (n.since, False)
                now[n.scope] = (n.since, True)
            case "egress":
                assert now.pop(n.scope)[0] == n.since
    return {(scope, *one) for scope, one in now.items()}


# --- relationships, compared with the latest readings instant by instant ------------------------------

_USERS = 'topic User ()\ngroup Team of User ("a", "b", "c")\n'


def _meet(pairs, near, far):
    band = f"when distance(a, b) <= {near} m until distance(a, b) >= {far} m"
    return f"{_USERS}relate Meet (a User, b User) {pairs} {band}\n"


_members = st.sampled_from(("", 'pairs ("a", "b"), ("b", "c")', 'pairs ("a", "b")'))
_distances = st.sampled_from(((1, 2), (1, 4), (2, 3), (2, 6), (3, 3)))
_walks = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from("abc"), st.sampled_from((0.0, 1.0, 2.5, 4.0, 9.0))),
    min_size=4,
    max_size=16,
)


def _steps(rows, start=TODAY):
    out, at = [], start
    for i, (step, source, x) in enumerate(rows):
        at += step * MINUTE
        out.append(Event("User", at, source, {}, i, (x, 0.0)))
    return out


@given(
    old=_distances,
    new=_distances,
    members=st.tuples(_members, _members),
    first=_walks,
    second=_walks,
    cut=st.integers(0, 16),
)
def test_a_revised_relationship_is_decided_when_all_members_have_reported_again(
    old, new, members, first, second, cut
):
    before, after = _meet(members[0], *old), _meet(members[1], *new)
    engine = Engine(before)
    past = _steps(first)
    _push_all(engine, past)
    edited = past[-1].time
    engine.advance(edited + 1)
    held = {one.scope: one.since for one in engine.holding()}
    output = {n.scope: n.status for n in engine.revise(after)}
    if before == after:
        assert output == {}
        return
    alike = {
        scope for scope in held if bool(members[0]) == bool(members[1]) and _is_watched(scope, members[1])
    }
    assert output == {scope: "unknown" if scope in alike else "revised" for scope in held}
    held = {scope: since for scope, since in held.items() if scope in alike}
    events = _steps(second, edited + 1)
    emitted = _push_all(engine, events[:cut])
    engine = Engine.restore(after, engine.snapshot())
    emitted += _push_all(engine, events[cut:]) + engine.finish()
    expected = _met(events, members[1], new, held)
    assert sorted((n.scope, n.event.time, n.status, n.since) for n in emitted) == sorted(expected)
    assert _standing(held, emitted) == {(one.scope, one.since, one.known) for one in engine.holding()}


def _is_watched(scope, pairs):
    return not pairs or "({})".format(", ".join(f'"{one}"' for one in scope.split(","))) in pairs


def _met(events, pairs, distances, held):
    """Starts and ends of pairs by their latest readings, instant by instant; ``held`` are open at first."""
    near, far = distances
    at, since, open, found = {}, dict(held), set(held), []
    for time, some in groupby(events, key=lambda event: event.time):
        some = list(some)
        at |= {event.source: event.location[0] for event in some}
        for scope in ("a,b", "a,c", "b,c"):
            one, other = scope.split(",")
            if not _is_watched(scope, pairs) or not {one, other} <= at.keys():
                continue
            if not {one, other} & {event.source for event in some}:
                continue
            apart = abs(at[one] - at[other])
            if scope in since and apart >= far:
                if scope in open and apart <= near:
                    found.append((scope, time, "known", since[scope]))
                open.discard(scope)
                found.append((scope, time, "egress", since.pop(scope)))
            elif scope in open and apart <= near:
                open.discard(scope)
                found.append((scope, time, "known", since[scope]))
            elif scope not in since and apart <= near:
                found.append((scope, time, "ingress", None))
                since[scope] = time
    return found


# --- restarts: every start has its end, however the readings arrive -----------------------------------

_kinds = st.sampled_from(
    (
        "state Hot\n  A = avg T over {w} min each source\n"
        "  enter A.v > {h} for {g} min\n  exit A.v < {l} for {f} min\n",
        "state Hot\n  A = max T over {w} min each source, place\n"
        "  enter A.v > {h}\n  exit A.v < {l} || A.v > 4\n",
        "state Hot\n  A = T each source\n  B = avg T over {w} min\n  enter A.v > {h}\n  exit B.v < {l}\n",
        "state Hot\n  A = T each source\n  enter A.v > {h} && A.v >= last.v\n  exit A.v < last.v - {l}\n",
        "state Warm\n  A = T each source\n  enter A.v > 1\n  exit A.v < 1\n"
        "state Hot\n  A = Warm each source\n  B = avg T over {w} min each source\n"
        '  enter A.status == "ingress" && B.v > {h}\n  exit B.v < {l}\n',
        "state Hot\n  A = avg T over {w} min each source\n  enter A.v > {h}\n  exit true\n",
        "correlate Hot within {w} min  v > {h}  u < {l}\n",
        "relate Hot (a T, b T) when distance(a, b) <= {l} m for {g} min until distance(a, b) >= {h} m\n",
        "state Warm on T [v > 2; v < 1] per source\nfold Hot = Warm cells 1 m within 8 m beyond {l}\n",
        "state Warm on T [v > 2 for 1 min; v < 1] per source\n"
        "fold Hot = Warm cells 1 m within 8 m beyond {l}\n",
    )
)
_sizes = st.fixed_dictionaries(
    {
        "w": st.integers(1, 3),
        "h": st.integers(2, 4),
        "l": st.integers(1, 2),
        "g": st.integers(0, 2),
        "f": st.integers(0, 2),
    }
)
_places = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from("abc"),
        st.sampled_from((0.0, 1.5, 2.5, 3.5, 5.0, None)),
        st.sampled_from((0.0, 1.0, 3.0, 7.0)),
    ),
    min_size=4,
    max_size=16,
)
_both = "topic T (v float, u float)\n"


def _made(kind, sizes):
    return _both + kind.format(**sizes).replace(" for 0 min", "")


def _spread(rows, start):
    out, at = [], start
    for i, (step, source, v, x) in enumerate(rows):
        at += step * MINUTE
        out.append(Event("T", at, source, {"v": v, "u": x}, i, (x, 0.0), f"p{x:g}"))
    return out


def _account(emitted, held):
    """The open scopes after the notifications, checked on the way: {(subscription, scope): known}."""
    for n in emitted:
        key = n.subscription, n.scope
        match n.status:
            case "ingress":
                assert key not in held, f"{n} had started"
                held[key] = True
            case "egress":
                assert held.pop(key, None) is not None, f"{n} had not started"
            case "known":
                assert held.get(key) is False, f"{n} was known"
                held[key] = True
            case "unknown":
                assert held.get(key) is True, f"{n} was unknown"
                held[key] = False
            case "revised" if n.since is None:
                assert held.pop(key, None) is not None, f"{n} had not started"
            case "revised":
                held[key] = True
    return held


def _now(engine):
    return {(one.subscription, one.scope): one.known for one in engine.holding()}


@given(
    kind=_kinds,
    sizes=st.tuples(_sizes, _sizes, _sizes),
    parts=st.tuples(_places, _places, _places),
    cuts=st.lists(st.integers(0, 16), max_size=2),
    batch=st.integers(1, 6),
)
def test_every_start_has_its_end_after_any_revisions(kind, sizes, parts, cuts, batch):
    texts = [_made(kind, size) for size in sizes]
    engines = [Engine(texts[0]) for _ in range(3)]  # one by one, restored on the way, in batches
    held, at = {}, TODAY
    topic = check(parse(_both)).topics[0]
    for text, rows in zip(texts, parts, strict=True):
        output = [engine.revise(text) for engine in engines]
        assert _rows(output[0]) == _rows(output[1]) == _rows(output[2])
        assert len({(n.subscription, n.scope) for n in output[0]}) == len(output[0]), (
            "each scope is told once"
        )
        held = _account(output[0], held)
        assert held == _now(engines[0])
        events = _spread(rows, at)
        at = events[-1].time
        emitted = _push_all(engines[0], events)
        again = []
        for i, event in enumerate(events):
            if i in cuts:
                engines[1] = Engine.restore(text, engines[1].snapshot())
            again += engines[1].push(event)
        in_batches = []
        for i in range(0, len(events), batch):
            in_batches += engines[2].push_batch("T", from_events(topic, events[i : i + batch]))
        assert _rows(again) == _rows(emitted) == _rows(in_batches)
        held = _account(emitted, held)
        assert held == _now(engines[0]) == _now(engines[1]) == _now(engines[2])
