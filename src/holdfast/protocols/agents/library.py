"""Strategies by name: what an active subscription asks for, and the agents that come of it.  [B31, B34]

A subscriber's bundle has a strategy for each agent: a slip that says beside whose publisher it lives, a name,
and parameters.  An agent's address is the bundle's name, which no client can forge, and its own: so agents
of one bundle talk to one another, and nobody else does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import NamedTuple

import msgspec

from ...errors import UsageError
from ...model.relation import Member, Relation, Setting, Tie
from ..cbps.content import Constraint, Filter
from ..cbps.message import ActiveSubscription, Bundle, Key, Strategy, Subscription
from . import centre, hierarchy
from .best import best_of
from .centre import Here, Room, Where
from .codes import digest_of
from .counting import Spot, Tally, Watch, counting
from .hierarchy import Ask, Reset, Value
from .ring import Moved, pair
from .shipped import STARLARK, Note, Shipped
from .talk import Agent, Doubt, Successor

Message = Moved | Here | Where | Room | Spot | Tally | Watch | Value | Ask | Reset | Note | Successor | Doubt
ADDRESS, INSTANCE, RELATIONSHIP = "holdfast.agent", "holdfast.instance", "holdfast.relationship"
"""The fields by which conversations of agents, those of the instances of one agent, and reports are routed.
Conversations are with an instance, by its name as a maker of bundles."""


Settings = tuple[Setting, ...]


class Part(msgspec.Struct, frozen=True, omit_defaults=True):
    """The parameters of one agent: its name, the relationship of one tie, and whom it talks to."""

    relationship: str
    name: str
    relation: Relation
    partners: tuple[tuple[str, Filter], ...]
    """Other agents, by name, and the publishers beside which they live."""
    settings: Settings = ()

    @property
    def tie(self) -> Tie:
        (tie,) = self.relation.ties or ()
        return tie

    @property
    def scopes(self) -> tuple[str | None, ...]:
        """Of what is reported."""
        return scopes_of(self.relation)


def scopes_of(relation: Relation) -> tuple[str | None, ...]:
    """The scopes in which agents of a relationship report: of the best, the alternatives."""
    if relation.kind == "best":
        return relation.names
    return tuple(tie.scope for tie in relation.ties or ())


class Made(NamedTuple):
    """An agent, the source beside which it lives, and the other agents that it talks to."""

    agent: Agent
    beside: Member
    talks_to: tuple[str, ...]


def _volatility(relation: Relation, tie: Tie, settings: Settings) -> dict[str, float]:
    """How much each source moves beside the others, where that is said.  [B55]"""
    named = dict(zip(relation.names, tie.pair, strict=False)) if tie.pair else {}
    found = {
        one.of if one.is_source else named[one.of]: one.value
        for one in settings
        if one.word == "volatility" and one.of is not None
    }
    if any(not 0 < value < math.inf for value in found.values()):
        raise ValueError("a volatility is a number above 0")
    return found


def _of_pair(relation: Relation, tie: Tie, settings: Settings = (), *, is_line: bool = False) -> list[Made]:
    first, second = tie.pair
    moves = _volatility(relation, tie, settings)
    enlarged = max((one.value for one in settings if one.word == "enlarged"), default=1.0)
    both = [moves.get(name, 1.0) for name in tie.pair]
    agents = pair(relation, first, second, share=both[0] / sum(both), is_line=is_line, enlarged=enlarged)
    return [Made(agent, member, (agent.partner,)) for agent, member in zip(agents, tie.members, strict=True)]


def _of_group(relation: Relation, tie: Tie, _settings: Settings = ()) -> list[Made]:
    *members, mediator = centre.group(relation, tuple(member.source for member in tie.members))
    return _below(members, mediator, tie.members)


def _of_count(relation: Relation, tie: Tie, _settings: Settings = ()) -> list[Made]:
    participants, chair = counting(relation, tuple(member.source for member in tie.members))
    homes = {member.source: member for member in tie.members}
    made = [Made(one, homes[one.name], (*one.others, chair.name)) for one in participants]
    return [*made, Made(chair, homes[chair.counters[0]], chair.members)]


def _of_sum(relation: Relation, tie: Tie, settings: Settings = ()) -> list[Made]:
    moves = _volatility(relation, tie, settings)
    if relation.kind == "best":
        *observers, mediator = best_of(relation, tie.terms, moves)
    else:
        *observers, mediator = hierarchy.hierarchy(relation, tie.terms[0], moves)
    return _below(observers, mediator, [term.member for some in tie.terms for term in some])


def _below(below: Sequence[Agent], mediator: Agent, members: Sequence[Member]) -> list[Made]:
    made = [Made(agent, member, (mediator.name,)) for agent, member in zip(below, members, strict=True)]
    return [*made, Made(mediator, members[0], tuple(agent.name for agent in below))]


def _of_code(relation: Relation, tie: Tie, _settings: Settings = ()) -> list[Made]:
    names = tuple(member.source for member in tie.members)
    return [
        Made(Shipped(name, others, relation, name == names[0]), member, others)
        for name, member in zip(names, tie.members, strict=True)
        for others in [tuple(other for other in names if other != name)]
    ]


STRATEGIES: Mapping[str, Callable[[Relation, Tie, Settings], list[Made]]] = {
    "range_ring": _of_pair,
    "parallel_line": partial(_of_pair, is_line=True),
    "centre_of_mass": _of_group,
    "counting": _of_count,
    "hierarchy": _of_sum,
    STARLARK: _of_code,
}


def name_of(relationship: str, tie: Tie, agent: str) -> str:
    """The name of an agent in its bundle."""
    return f"{relationship}/{tie.scope or ''}/{agent}"


def address(bundle: Key, name: str) -> str:
    """The name by which an agent is found in the whole network."""
    return f"{bundle.origin} {bundle.sequence}/{name}"


def beside(member: Member) -> Filter:
    """The publishers of a member's readings."""
    return Filter(
        (
            Constraint("topic", "text", "=", member.topic),
            Constraint("source", "text", "=", member.source),
        )
    )


def active(
    relationship: str, relation: Relation, using: str, settings: Settings = (), *, code: str = ""
) -> Bundle:
    """What a subscriber submits: strategies, and the subscription that is their way back.  [B32]

    Whoever knows the name of a relationship can hear and forge its reports, so a careful subscriber takes one
    that cannot be guessed.  ``code`` is the text of a strategy that is shipped (`STARLARK`).
    """
    if using not in STRATEGIES or relation.ties is None:
        raise UsageError("agents watch relationships of named publishers, by a strategy that is known")
    if relation.enter.hold or relation.exit.hold:
        raise UsageError("agents do not wait: a relationship that must hold for some time runs at a broker")
    strategies = chain.from_iterable(
        _strategies(relationship, relation, using, settings, tie) for tie in relation.ties
    )
    back = Filter((Constraint(RELATIONSHIP, "text", "=", relationship),))
    return Bundle(
        Key("", 0),
        subscriptions=(Subscription(back),),
        active=(ActiveSubscription(tuple(strategies), digest_of(code) if code else ""),),
    )


def disabled(bundle: Bundle) -> Bundle:
    """The same without agents, for the time being; its subscription stays.  [B69]"""
    active = tuple(msgspec.structs.replace(one, disabled=True) for one in bundle.active)
    return msgspec.structs.replace(bundle, active=active)


def _strategies(
    relationship: str, relation: Relation, using: str, settings: Settings, tie: Tie
) -> Iterator[Strategy]:
    made = STRATEGIES[using](relation, tie, settings)
    homes = {one.agent.name: beside(one.beside) for one in made}
    for one in made:
        partners = tuple((name_of(relationship, tie, name), homes[name]) for name in one.talks_to)
        own = name_of(relationship, tie, one.agent.name)
        part = Part(relationship, own, replace(relation, ties=(tie,)), partners, settings)
        yield Strategy(beside(one.beside), using, (("part", _encoded(part)),))


def _encoded(part: Part) -> str:
    return msgspec.msgpack.encode(part).hex()


def part_of(strategy: Strategy) -> Part:
    """The parameters of a strategy; refused where they are none of ours."""
    try:
        part = msgspec.msgpack.decode(bytes.fromhex(dict(strategy.parameters)["part"]), type=Part)
        if len(part.relation.ties or ()) == 1:
            return part
    except (KeyError, ValueError, msgspec.MsgspecError):
        pass
    raise UsageError(
        f"no agent can be made of '{strategy.implementation}': it lacks parameters, or has others"
    )


def started(strategy: Strategy) -> tuple[Part, Made]:
    """The agent that a strategy asks for; refused where it is not one of ours."""
    part = part_of(strategy)
    if strategy.implementation not in STRATEGIES:
        raise UsageError(f"there is no strategy '{strategy.implementation}'")
    try:
        made = STRATEGIES[strategy.implementation](part.relation, part.tie, part.settings)
    except (ValueError, TypeError, LookupError) as error:
        raise UsageError(f"no agent can be made of '{strategy.implementation}': {error}") from None
    for one in made:
        if name_of(part.relationship, part.tie, one.agent.name) == part.name:
            return part, one
    raise UsageError(f"'{strategy.implementation}' has no agent '{part.name}'")
