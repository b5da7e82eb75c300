"""Slow, obvious twins: what the fast parts must agree with.

Written from the papers and the rulings, sharing no code with what they check.
"""

from __future__ import annotations

import math

from holdfast.lang import ops
from holdfast.model.event import Event


def truth(op, event):
    """True, False or None (unknown), in Kleene's logic."""
    match op:
        case ops.Truth(known):
            return known
        case ops.Not(arg):
            inner = truth(arg, event)
            return None if inner is None else not inner
        case ops.And(left, right):
            both = (truth(left, event), truth(right, event))
            return False if False in both else None if None in both else True
        case ops.Or(left, right):
            both = (truth(left, event), truth(right, event))
            return True if True in both else None if None in both else False
        case ops.Name(name):
            return attribute(event, name)
        case ops.Between(arg, low, high):
            return truth(ops.And(ops.Compare(">=", arg, low), ops.Compare("<=", arg, high)), event)
        case ops.Compare(sign, left, right):
            x, y = value(left, event), value(right, event)
            if x is None or y is None:
                return None
            if isinstance(x, float) != isinstance(y, float):  # numbers meet as floats
                x, y = float(x), float(y)
            return (
                {
                    "<": x < y,
                    "<=": x <= y,
                    "==": x == y,
                    "!=": x != y,
                    ">=": x >= y,
                    ">": x > y,
                }[sign]
                if not isinstance(x, (str, bool))
                else (x == y if sign == "==" else x != y)
            )
    raise AssertionError(op)


def value(op, event):
    """A number, text or truth value; None if it is missing."""
    match op:
        case ops.Number(literal) | ops.Text(literal) | ops.Truth(literal):
            return literal
        case ops.Name(name):
            return attribute(event, name)
        case ops.Negative(arg):
            inner = value(arg, event)
            return None if inner is None else in_64_bits(-inner)
        case ops.Absolute(arg):
            inner = value(arg, event)
            return None if inner is None else in_64_bits(abs(inner))
        case ops.Arithmetic(sign, left, right):
            x, y = value(left, event), value(right, event)
            if x is None or y is None:
                return None
            if sign == "/" or isinstance(x, float) or isinstance(y, float):
                x, y = float(x), float(y)
            if sign == "/" and y == 0:
                return None
            result = {"+": lambda: x + y, "-": lambda: x - y, "*": lambda: x * y, "/": lambda: x / y}[sign]()
            return in_64_bits(result)
        case ops.Compare() | ops.Between() | ops.And() | ops.Or() | ops.Not():
            return truth(op, event)
    raise AssertionError(op)


def in_64_bits(number):
    """Ints beyond 64 bits and NaN are missing."""
    if isinstance(number, float):
        return None if math.isnan(number) else number
    return number if -(2**63) <= number < 2**63 else None


def attribute(event, name):
    """An attribute of an event; NaN is missing."""
    if name in ("source", "place"):
        found = getattr(event, name)
    elif name in ("x", "y", "z"):
        at = event.location or ()
        found = at["xyz".index(name)] if len(at) > "xyz".index(name) else None
    else:
        found = event.attributes.get(name)
    return None if isinstance(found, float) and math.isnan(found) else found


NOTHING = Event("", 0, None, {})


def run(subscription, chain, events):
    """The output of a state filter: (status, scope, since, event), one event after the other.

    ``chain(event)`` lists the scopes of the event, innermost first, as hashable values; the bits are in a
    dict.
    """
    bits: dict[object, bool] = {}
    since: dict[object, int] = {}
    out = []
    momentary = truth(subscription.exit, NOTHING) is True  # true even if everything is missing
    for event in events:
        scopes = chain(event)
        if not scopes:
            continue
        outermost = scopes[-1]
        if momentary:
            if truth(subscription.enter, event) is True:
                out.append(("atomic", outermost, None, event))
            continue
        for scope in scopes:
            holds = bits.get(scope, False)
            predicate = subscription.exit if holds else subscription.enter
            if truth(predicate, event) is not True:
                break
            bits[scope] = not holds
        else:
            if bits[outermost]:
                since[outermost] = event.time
                out.append(("ingress", outermost, None, event))
            else:
                out.append(("egress", outermost, since.pop(outermost), event))
    return out


def in_order(events):
    """Events by (time, source, sequence)."""
    return sorted(events, key=lambda e: (e.time, e.source, e.sequence))
