"""The strategies by name: the requests of active subscriptions, and the agents built from them. [B31, B34]

A subscriber's bundle has a strategy for each agent: a slip that describes the publisher beside which it runs,
a name, and parameters. The address of an agent consists of the bundle's name, which no client can forge, and
the agent's own name. So only agents of one bundle communicate. To add a strategy, write a function that
builds its agents and add it to `STRATEGIES`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import NamedTuple

import msgspec

from ....errors import UsageError
from ....model.relation import Participant, Relation, Setting, Tie
from ..cbps.content import Constraint, Filter
from ..cbps.message import ActiveSubscription, AgentStrategy, Bundle, BundleKey, CbpsSubscription
from . import centre, hierarchy
from .best import best_of
from .centre import GroupPosition, GroupRing, PositionRequest
from .code_store import digest_of
from .hierarchy import RangeReset, TermRequest, TermValue
from .quorum import CloseWatch, PairPosition, QuorumSides, quorum_agents
from .ring import RingMove, ring_pair
from .shipped import STARLARK, ShippedAgent, ShippedMessage
from .talk import Agent, KnowledgeLost, SuccessorNotice

Message = (
    RingMove
    | GroupPosition
    | PositionRequest
    | GroupRing
    | PairPosition
    | QuorumSides
    | CloseWatch
    | TermValue
    | TermRequest
    | RangeReset
    | ShippedMessage
    | SuccessorNotice
    | KnowledgeLost
)
ADDRESS, INSTANCE, RELATIONSHIP = "holdfast.agent", "holdfast.instance", "holdfast.relationship"
"""The fields that route messages between agents, between instances of one agent, and reports.

A message between agents goes to a single instance, by the origin of the instance's bundles.
"""


Settings = tuple[Setting, ...]


class AgentParameters(msgspec.Struct, frozen=True, omit_defaults=True):
    """The parameters of one agent: its name, the relationship of one tie, and its partners."""

    relationship: str
    name: str
    relation: Relation
    partners: tuple[tuple[str, Filter], ...]
    """The other agents by name, each with a filter for the publisher beside which it runs."""
    settings: Settings = ()

    @property
    def tie(self) -> Tie:
        """The single tie of its relation."""
        (tie,) = self.relation.ties or ()
        return tie

    @property
    def scopes(self) -> tuple[str | None, ...]:
        """The scopes that the agent's reports may name."""
        return scopes_of(self.relation)


def scopes_of(relation: Relation) -> tuple[str | None, ...]:
    """Return the scopes of a relationship's reports. For the best of several sums, these are the
    alternatives.
    """
    if relation.kind == "best":
        return relation.names
    return tuple(tie.scope for tie in relation.ties or ())


class BuiltAgent(NamedTuple):
    """An agent, the source beside which it runs, and the names of the agents with which it communicates."""

    agent: Agent
    member: Participant
    partners: tuple[str, ...]


def _volatility(relation: Relation, tie: Tie, settings: Settings) -> dict[str, float]:
    """Return the volatility by source from the settings.  [B55]"""
    source_by_name = dict(zip(relation.names, tie.pair, strict=False)) if tie.pair else {}
    volatility = {
        setting.of if setting.is_source else source_by_name[setting.of]: setting.value
        for setting in settings
        if setting.word == "volatility" and setting.of is not None
    }
    if any(not 0 < value < math.inf for value in volatility.values()):
        raise ValueError("a volatility is a number above 0")
    return volatility


def _pair_agents(
    relation: Relation, tie: Tie, settings: Settings = (), *, is_line: bool = False
) -> list[BuiltAgent]:
    """Build the two agents of a pair, with their shares of the room by volatility."""
    first, second = tie.pair
    moves = _volatility(relation, tie, settings)
    enlarged = max((one.value for one in settings if one.word == "enlarged"), default=1.0)
    both = [moves.get(name, 1.0) for name in tie.pair]
    agents = ring_pair(relation, first, second, share=both[0] / sum(both), is_line=is_line, enlarged=enlarged)
    return [BuiltAgent(a, member, (a.partner,)) for a, member in zip(agents, tie.members, strict=True)]


def _group_agents(relation: Relation, tie: Tie, _settings: Settings = ()) -> list[BuiltAgent]:
    """Build the agents of a group around its centre."""
    *members, mediator = centre.group(relation, tuple(member.source for member in tie.members))
    return _with_mediator(members, mediator, tie.members)


def _quorum_agents(relation: Relation, tie: Tie, _settings: Settings = ()) -> list[BuiltAgent]:
    """Build the agents of a quorum: one for each member, and the chair."""
    participants, chair = quorum_agents(relation, tuple(member.source for member in tie.members))
    homes = {member.source: member for member in tie.members}
    made = [BuiltAgent(one, homes[one.name], (*one.others, chair.name)) for one in participants]
    return [*made, BuiltAgent(chair, homes[chair.counters[0]], chair.members)]


def _sum_agents(relation: Relation, tie: Tie, settings: Settings = ()) -> list[BuiltAgent]:
    """Build the agents of a sum, or of the best of several sums."""
    moves = _volatility(relation, tie, settings)
    if relation.kind == "best":
        *observers, mediator = best_of(relation, tie.terms, moves)
    else:
        *observers, mediator = hierarchy.sum_agents(relation, tie.terms[0], moves)
    return _with_mediator(observers, mediator, [term.member for some in tie.terms for term in some])


def _with_mediator(below: Sequence[Agent], top: Agent, members: Sequence[Participant]) -> list[BuiltAgent]:
    """Return agents with the mediator above them, each with its member."""
    made = [BuiltAgent(agent, member, (top.name,)) for agent, member in zip(below, members, strict=True)]
    return [*made, BuiltAgent(top, members[0], tuple(agent.name for agent in below))]


def _shipped_agents(relation: Relation, tie: Tie, _settings: Settings = ()) -> list[BuiltAgent]:
    """Build the agents of shipped code, one for each member."""
    names = tuple(member.source for member in tie.members)
    others = {name: tuple(other for other in names if other != name) for name in names}
    agents = [ShippedAgent(name, others[name], relation, name == names[0]) for name in names]
    return [BuiltAgent(a, member, a.others) for a, member in zip(agents, tie.members, strict=True)]


STRATEGIES: Mapping[str, Callable[[Relation, Tie, Settings], list[BuiltAgent]]] = {
    "range_ring": _pair_agents,
    "parallel_line": partial(_pair_agents, is_line=True),
    "centre_of_mass": _group_agents,
    "counting": _quorum_agents,
    "hierarchy": _sum_agents,
    STARLARK: _shipped_agents,
}


def name_of(relationship: str, tie: Tie, agent: str) -> str:
    """Return the name of an agent, unique in its bundle."""
    return f"{relationship}/{tie.scope or ''}/{agent}"


def address(bundle: BundleKey, name: str) -> str:
    """Return the address of an agent, unique in the network."""
    return f"{bundle.origin} {bundle.sequence}/{name}"


def publisher_filter(member: Participant) -> Filter:
    """Return the filter for the publishers of a member's readings."""
    fields = ("topic", member.topic), ("source", member.source)
    return Filter(tuple(Constraint(name, "text", "=", value) for name, value in fields))


def active_bundle(
    relationship: str, relation: Relation, using: str, settings: Settings = (), *, code: str = ""
) -> Bundle:
    """Build the bundle that a subscriber submits: strategies, and the subscription to their reports. [B32]

    A client that knows the name of a relationship can receive and forge its reports. A careful subscriber
    therefore chooses a name that cannot be guessed. ``code`` is the text of a shipped strategy (`STARLARK`).
    """
    if using not in STRATEGIES or relation.ties is None:
        raise UsageError("agents watch relationships of named publishers, by a strategy that is known")
    if relation.enter.hold or relation.exit.hold:
        raise UsageError("agents do not wait: a relationship that must hold for some time runs at a broker")
    parts = (_strategies(relationship, relation, using, settings, tie) for tie in relation.ties)
    strategies = tuple(chain.from_iterable(parts))
    back = Filter((Constraint(RELATIONSHIP, "text", "=", relationship),))
    active = ActiveSubscription(strategies, digest_of(code) if code else "")
    return Bundle(BundleKey("", 0), subscriptions=(CbpsSubscription(back),), active=(active,))


def disable_agents(bundle: Bundle) -> Bundle:
    """Return the bundle with its agents disabled. Its subscription to reports remains. [B69]"""
    active = tuple(msgspec.structs.replace(subscription, disabled=True) for subscription in bundle.active)
    return msgspec.structs.replace(bundle, active=active)


def _strategies(
    relationship: str, relation: Relation, using: str, settings: Settings, tie: Tie
) -> Iterator[AgentStrategy]:
    """Yield a strategy for each agent of a tie."""
    agents = STRATEGIES[using](relation, tie, settings)
    homes = {built.agent.name: publisher_filter(built.member) for built in agents}
    for built in agents:
        partners = tuple((name_of(relationship, tie, name), homes[name]) for name in built.partners)
        own = name_of(relationship, tie, built.agent.name)
        part = AgentParameters(relationship, own, replace(relation, ties=(tie,)), partners, settings)
        yield AgentStrategy(publisher_filter(built.member), using, (("part", _encode(part)),))


def _encode(part: AgentParameters) -> str:
    return msgspec.msgpack.encode(part).hex()


def decode_parameters(strategy: AgentStrategy) -> AgentParameters:
    """Decode the parameters of a strategy; raise a `UsageError` if they are invalid."""
    try:
        part = msgspec.msgpack.decode(bytes.fromhex(dict(strategy.parameters)["part"]), type=AgentParameters)
        if len(part.relation.ties or ()) == 1:
            return part
    except (KeyError, ValueError, msgspec.MsgspecError):
        pass
    name = strategy.implementation
    raise UsageError(f"no agent can be made of '{name}': it lacks parameters, or has others")


def build_agent(strategy: AgentStrategy) -> tuple[AgentParameters, BuiltAgent]:
    """Build the agent that a strategy requests; raise a `UsageError` if that is not possible."""
    part = decode_parameters(strategy)
    if strategy.implementation not in STRATEGIES:
        raise UsageError(f"there is no strategy '{strategy.implementation}'")
    try:
        agents = STRATEGIES[strategy.implementation](part.relation, part.tie, part.settings)
    except (ValueError, TypeError, LookupError) as error:
        raise UsageError(f"no agent can be made of '{strategy.implementation}': {error}") from None
    for built in agents:
        if name_of(part.relationship, part.tie, built.agent.name) == part.name:
            return part, built
    raise UsageError(f"'{strategy.implementation}' has no agent '{part.name}'")
