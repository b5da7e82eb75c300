"""Strategies by name: what an active subscription asks for, and the agents that come of it.  [B31, B34]

A subscriber's bundle has a strategy for each agent: a slip that says beside whose publisher it lives, a name,
and parameters.  Names of agents are addresses: one for each relationship and member.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple, cast

import msgspec

from ...errors import UsageError
from ...model.relation import Member, Relation, Tie
from ..cbps.content import Constraint, Filter
from ..cbps.message import ActiveSubscription, Bundle, Key, Strategy, Subscription
from . import centre, hierarchy
from .centre import Here, Room, Where
from .hierarchy import Ask, Reset, Value
from .ring import Moved, pair
from .talk import Agent

Message = Moved | Here | Where | Room | Value | Ask | Reset
ADDRESS, RELATIONSHIP = "holdfast.agent", "holdfast.relationship"
"""The fields by which conversations and reports are routed."""


class Part(msgspec.Struct, frozen=True, omit_defaults=True):
    """The parameters of one agent: its name, the relationship of one tie, and whom it talks to."""

    relationship: str
    name: str
    relation: Relation
    partners: tuple[tuple[str, Filter], ...]
    """Other agents, by name, and the publishers beside which they live."""


class Made(NamedTuple):
    """An agent, the source beside which it lives, and the other agents that it talks to."""

    agent: Agent
    beside: Member
    talks_to: tuple[str, ...]


def _of_pair(relation: Relation, tie: Tie, *, is_line: bool = False) -> list[Made]:
    first, second = tie.pair
    agents = pair(relation, first, second, is_line=is_line)
    return [Made(agent, member, (agent.partner,)) for agent, member in zip(agents, tie.members, strict=True)]


def _of_group(relation: Relation, tie: Tie) -> list[Made]:
    *members, mediator = centre.group(relation, tuple(member.source for member in tie.members))
    return _below(members, mediator, tie.members)


def _of_sum(relation: Relation, tie: Tie) -> list[Made]:
    *observers, mediator = hierarchy.hierarchy(relation, tie.terms[0])
    return _below(observers, mediator, [term.member for term in tie.terms[0]])


def _below(below: Sequence[Agent], mediator: Agent, members: Sequence[Member]) -> list[Made]:
    made = [Made(agent, member, (mediator.name,)) for agent, member in zip(below, members, strict=True)]
    return [*made, Made(mediator, members[0], tuple(agent.name for agent in below))]


STRATEGIES: Mapping[str, Callable[[Relation, Tie], list[Made]]] = {
    "range_ring": _of_pair,
    "parallel_line": lambda relation, tie: _of_pair(relation, tie, is_line=True),
    "centre_of_mass": _of_group,
    "hierarchy": _of_sum,
}


def address(relationship: str, tie: Tie, agent: str) -> str:
    """The name by which an agent is found in the whole network."""
    return f"{relationship}/{tie.scope or ''}/{agent}"


def beside(member: Member) -> Filter:
    """The publishers of a member's readings."""
    return Filter(
        (
            Constraint("topic", "text", "=", member.topic),
            Constraint("source", "text", "=", member.source),
        )
    )


def active(relationship: str, relation: Relation, using: str) -> Bundle:
    """What a subscriber submits: strategies, and the subscription that is their way back.  [B32]"""
    if using not in STRATEGIES or relation.ties is None:
        raise UsageError("agents watch relationships of named publishers, by a strategy that is known")
    if relation.enter.hold or relation.exit.hold:
        raise UsageError("agents do not wait: a relationship that must hold for some time runs at a broker")
    strategies = chain.from_iterable(
        _strategies(relationship, relation, using, i) for i in range(len(relation.ties))
    )
    back = Filter((Constraint(RELATIONSHIP, "text", "=", relationship),))
    return Bundle(
        Key("", 0),
        subscriptions=(Subscription(back),),
        active=(ActiveSubscription(tuple(strategies)),),
    )


def _strategies(relationship: str, relation: Relation, using: str, number: int) -> Iterator[Strategy]:
    tie = cast("tuple[Tie, ...]", relation.ties)[number]
    made = STRATEGIES[using](relation, tie)
    homes = {one.agent.name: beside(one.beside) for one in made}
    for one in made:
        partners = tuple((address(relationship, tie, name), homes[name]) for name in one.talks_to)
        own = address(relationship, tie, one.agent.name)
        part = Part(relationship, own, replace(relation, ties=(tie,)), partners)
        yield Strategy(beside(one.beside), using, (("part", _encoded(part)),))


def _encoded(part: Part) -> str:
    return msgspec.msgpack.encode(part).hex()


def started(strategy: Strategy) -> tuple[Part, Made]:
    """The agent that a strategy asks for; refused where it is not one of ours."""
    try:
        part = msgspec.msgpack.decode(bytes.fromhex(dict(strategy.parameters)["part"]), type=Part)
        (tie,) = part.relation.ties or ()
        made = STRATEGIES[strategy.implementation](part.relation, tie)
    except (KeyError, ValueError, TypeError, msgspec.MsgspecError) as error:
        raise UsageError(f"no agent can be made of '{strategy.implementation}': {error}") from None
    for one in made:
        if address(part.relationship, tie, one.agent.name) == part.name:
            return part, one
    raise UsageError(f"'{strategy.implementation}' has no agent '{part.name}'")
