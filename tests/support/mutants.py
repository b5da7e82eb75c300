"""Unusual definitions: mutations of the texts of examples, documents and tests, and random texts of the
grammar; and unusual rows."""

from __future__ import annotations

import ast
import json
import math
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from random import Random

from lark.lexer import PatternStr

from holdfast import Engine, Event
from holdfast.definition.app import App
from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.definition.show import show
from holdfast.errors import DefinitionError, HoldfastError
from holdfast.kinds.component.syntax import DefineComponent
from holdfast.lang.grammar import parser as parser
from holdfast.model.batch import from_events
from holdfast.model.event import Value
from holdfast.model.topic import Topic
from holdfast.model.unit import UNITS
from support import thesis

ROOT = Path(__file__).resolve().parents[2]

_TOKEN = re.compile(
    r'"(?:\\.|[^"\\\n])*"|#[^\n]*|\s+|[^\W\d]\w*|(?:\d+\.\d+|\d+|\.\d+)(?:[eE][+-]?\d+)?|\^[rnx]'
    r"|[<>=!:]=|&&|\|\||\S"
)
_DEFINITION = re.compile(r"\b(topic|filter|state|correlate|case|let|region)\b|\[.+;.+\]|:=")


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


NUMBERS = (
    *_words("0 1 2.5 .5 0.1 1e-7 1e22 1e308 1e-308 1e400 1e999999999 1e-999999999 0e999999999"),
    *_words("9223372036854775807 9223372036854775808"),
    "9" * 40, "9" * 400, "9" * 5_000, "0." + "0" * 400 + "1", f"{10**300}.5",
)  # fmt: skip
WORDS = _words(
    """last now here topic closest state null any all one each latest avg max count stddev sum time location
    status source place value valid ingress egress atomic D_L D_T D_P D_S N Q A U s min m in of over ever at
    for set exit enter tick ordered timely late apply correct per scope within true false not and or abs let
    region case given expect tell correlate collide gazetteer filter on where _ É from every starting nothing
    circle polygon rectangle pool aggregate multiple separate to among"""
)
SIGNS = (
    *_words(r"""( ) [ ] { } < <= == != >= > ≤ ≥ ≠ = := : ; , . + - * / | || & && ! ± ^r ^n ^x 0^r -30^r"""),
    *_words(r"""P^n P^x A^n A^x # " \ ' "" "a\u0000" "\ud800" A.value last.time last.location"""),
    "\0", "\n", "\t", "\u2028", "|A.location - B.location|", "now - 1e308 s",
)  # fmt: skip
CLASSES = tuple(map(_words, ("< <= == != >= >", "+ - * /", "&& ||", "( [ {", ") ] }", ", ; :")))
REPEATS = (2, 3, 10, 50, 150, 250, 400, 900)


@cache
def corpus() -> tuple[str, ...]:
    """The texts to start from: of the examples, of the documents, the thesis' tables, and of tests."""
    pages = [*ROOT.glob("docs/**/*.md"), ROOT / "README.md"]
    blocks = [b for page in pages for b in re.findall(r"```hf[^\n]*\n(.*?)```", page.read_text(), re.DOTALL)]
    examples = [path.read_text() for path in ROOT.glob("examples/**/*.hf")]
    strings = {
        node.value
        for path in ROOT.glob("tests/**/*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    texts = [text for text in strings if len(text) < 4_000 and _DEFINITION.search(text)]
    found = sorted({*blocks, *examples, *thesis.ALL.values(), *texts})
    return tuple(text for text in found if _parses(text))


def _parses(text: str) -> bool:
    try:
        return bool(parse(text).statements)
    except DefinitionError:
        return False


# --- what the grammar allows ---------------------------------------------------------------------

TOPICS = "topic T (value float °C, n int, road text, ok bool)\ntopic U (value float)\n"

_SAID = {
    "NAME": _words(
        "T U A B value n road ok source location time status high a float text x avg atomic D_L null"
    ),
    "MEMBER": _words(
        "A.value B.value last.value A.location B.location last.location A.time last.time A.n A.ok"
    ),
    "ATTRIBUTE": _words("value T.value U.value n T.n"),
    "TARGET": _words("value location time level"),
    "STRING": ('"T"', '"a"', '""', '"2026-01-01T00:00:00Z"', r'"no\n"'),
    "NUMBER": _words("0 1 2 25 2.5"),
    "SIGNED": _words("0 +1 -10 2.5"),
    "RELATIVE": _words("0^r -30^r +10^r"),
    "QUANTITY": ("1 s", "30 s", "0 s", "2 min", "500 m", "25 °C", "3 %"),
    "MEASURE": ("25 °C", "2 K"),
    "UNIT": _words("°C m s %"),
    "COMPARE": CLASSES[0],
    "FUNCTION": _words("max min sum avg count stddev"),
    "HOW": _words("one all any"),
    "STATUS": _words("atomic ingress egress"),
}
_WRITTEN = {
    "ORIGIN": "0^r", "EVERYTHING": "U", "MISSING": "_", "_OR": "||", "_AND": "&&", "_NOT": "!", "_N": "N",
    "_Q": "Q", "_PN": "P^n", "_PX": "P^x", "_AN": "A^n", "_AX": "A^x",
}  # fmt: skip


@cache
def _tokens() -> tuple[tuple[str, ...], ...]:
    """The words and signs of each text of the corpus."""
    return tuple(tuple(_TOKEN.findall(text)) for text in corpus())


@cache
def _rules() -> dict[str, list[list[tuple[str, bool]]]]:
    """The grammar: for each symbol its expansions; each part of one is a symbol, or a word."""
    found: dict[str, list[list[tuple[str, bool]]]] = {}
    for rule in parser().rules:
        parts = [(part.name, part.is_term) for part in rule.expansion]
        found.setdefault(rule.origin.name, []).append(parts)
    return found


@cache
def _height(symbol: str, most: int = 12) -> int:
    """How deep the flattest derivation of a symbol is."""
    if not most:
        return 1_000
    inner = (
        [_height(name, most - 1) for name, is_word in parts if not is_word] for parts in _rules()[symbol]
    )
    return 1 + min(max(heights, default=0) for heights in inner)


@cache
def _flattest(symbol: str) -> list[list[tuple[str, bool]]]:
    """The expansions of a symbol that end soonest."""
    expansions = _rules()[symbol]
    heights = [max((_height(n) for n, is_word in parts if not is_word), default=0) for parts in expansions]
    return [p for p, height in zip(expansions, heights, strict=True) if height == min(heights)]


def derive(random: Random, symbol: str = "statement", depth: int = 14) -> Iterator[str]:
    """A statement that the grammar allows, word by word."""
    if symbol == "expression" and random.random() < 0.7:
        yield from (_predicate(random), " ")
        return
    for name, is_word in random.choice(_rules()[symbol] if depth > 0 else _flattest(symbol)):
        yield from (_text_of(name, random), " ") if is_word else derive(random, name, depth - 1)


@cache
def _fixed_terminals() -> dict[str, str]:
    return {t.name: t.pattern.value for t in parser().terminals if isinstance(t.pattern, PatternStr)}


def _text_of(terminal: str, random: Random) -> str:
    if terminal in _SAID:
        return _word(random) if random.random() < 0.03 else random.choice(_SAID[terminal])
    return _fixed_terminals().get(terminal) or _WRITTEN.get(terminal) or terminal.strip("_").lower()


def _predicate(random: Random, depth: int = 3) -> str:
    """A condition whose types agree more often than not."""
    match random.randrange(8 if depth else 3):
        case 0 | 1:
            return f"{_number(random, depth)} {random.choice(CLASSES[0])} {_number(random, depth)}"
        case 2:
            words = ("true", "ok", "A.valid", "last.valid", 'A.road == "a"', "A.location == B.location")
            return random.choice((*words, "A.time > now - 1 min", "A.status == ingress", 'road != "b"'))
        case 3:
            numbers = ", ".join(_number(random, depth - 1) for _ in range(2))
            return f"{_number(random, depth)} in [{numbers}]"
        case 4:
            return f"!({_predicate(random, depth - 1)})"
        case 5:
            return f"({_predicate(random, depth - 1)}) == ({_predicate(random, depth - 1)})"
        case _:
            one, other = (_predicate(random, depth - 1) for _ in range(2))
            return f"({one}) {random.choice(CLASSES[2])} {other}"


def _number(random: Random, depth: int) -> str:
    match random.randrange(6 if depth else 4):
        case 0 | 1:
            return random.choice(_words("value n A.value B.value last.value A.n T.value A.count"))
        case 2:
            return random.choice(_SAID["NUMBER"] if random.random() < 0.8 else NUMBERS)
        case 3:
            number = random.choice(("1", "25", "2.5") if random.random() < 0.8 else NUMBERS)
            return f"{number} {random.choice(sorted(UNITS) if random.random() < 0.5 else ['°C', 's'])}"
        case 4:
            return random.choice((f"abs({_number(random, depth - 1)})", f"-{_number(random, depth - 1)}"))
        case _:
            return f"({_number(random, depth - 1)} {random.choice(CLASSES[1])} {_number(random, depth - 1)})"


# --- mutation ----------------------------------------------------------------------------------


def mutant(random: Random) -> str:
    """A definition after some changes."""
    if random.random() < 0.5:
        tokens, changes = list(random.choice(_tokens())), (1, 1, 1, 2, 2, 3, 5)
    else:
        tokens, changes = _TOKEN.findall(TOPICS), (0, 0, 0, 0, 1, 1, 2)
        for _ in range(random.choice((1, 1, 2, 3))):
            tokens += [*derive(random), "\n"]
    for _ in range(random.choice(changes)):
        tokens = [token for token in random.choice(_CHANGES)(tokens, random) if token] or ["topic"]
    return "".join(tokens)[:20_000]


Tokens = list[str]


def _span(tokens: Sequence[str], random: Random, longest: int = 8) -> tuple[int, int]:
    start = random.randrange(len(tokens))
    return start, min(len(tokens), start + random.randint(1, longest))


def _drop(tokens: Tokens, random: Random) -> Tokens:
    start, end = _span(tokens, random, 3)
    return tokens[:start] + tokens[end:]


def _repeat(tokens: Tokens, random: Random) -> Tokens:
    start, end = _span(tokens, random)
    times = random.choice(REPEATS) if end - start < 5 else 2
    between = [" "] if random.random() < 0.5 else []
    return tokens[:end] + (between + tokens[start:end]) * (times - 1) + tokens[end:]


def _swap(tokens: Tokens, random: Random) -> Tokens:
    a, b = (random.randrange(len(tokens)) for _ in range(2))
    changed = list(tokens)
    changed[a], changed[b] = changed[b], changed[a]
    return changed


def _other(token: str, random: Random) -> str:
    """Another word of the same class, mostly, or any."""
    if random.random() < 0.2:
        return _word(random)
    if token.isspace():
        return random.choice(("\n", "  ", "\r\n", " # "))
    if token[0].isdigit() or token[0] == ".":
        return random.choice(NUMBERS)
    if token in UNITS:
        return random.choice(sorted(UNITS))
    if token[0].isalpha():
        return random.choice(WORDS)
    return random.choice(next((alike for alike in CLASSES if token in alike), SIGNS))


def _word(random: Random) -> str:
    return random.choice(random.choice((NUMBERS, WORDS, SIGNS, random.choice(_tokens()))))


def _replace(tokens: Tokens, random: Random) -> Tokens:
    at = random.randrange(len(tokens))
    return [*tokens[:at], _other(tokens[at], random), *tokens[at + 1 :]]


def _rename(tokens: Tokens, random: Random) -> Tokens:
    """Replace a word by another everywhere."""
    words = [token for token in tokens if token[0].isalpha()] or tokens
    old, new = random.choice(words), random.choice(WORDS)
    return [new if token == old else token for token in tokens]


def _insert(tokens: Tokens, random: Random) -> Tokens:
    at = random.randrange(len(tokens) + 1)
    return [*tokens[:at], " ", _word(random), " ", *tokens[at:]]


def _nest(tokens: Tokens, random: Random) -> Tokens:
    start, end = _span(tokens, random)
    pairs = (("(", ")"), ("!", ""), ("-", ""), ("abs(", ")"), ("!(", ")"), ("|", "|"), ("(", " == true)"))
    opening, closing = random.choice(pairs)
    times = random.choice(REPEATS)
    return [*tokens[:start], *[opening] * times, *tokens[start:end], *[closing] * times, *tokens[end:]]


def _chain(tokens: Tokens, random: Random) -> Tokens:
    at = random.randrange(len(tokens) + 1)
    links = (" < 1", " == A.time", " && value > 1", " || A.value > 1", " + 1", " - now", " * 2 m")
    return [*tokens[:at], *[random.choice(links)] * random.choice(REPEATS), *tokens[at:]]


def _cut(tokens: Tokens, random: Random) -> Tokens:
    at = random.randrange(len(tokens) + 1)
    return tokens[:at] if random.random() < 0.5 else tokens[at:]


def _splice(tokens: Tokens, random: Random) -> Tokens:
    other = random.choice(_tokens())
    return [*tokens[: random.randrange(len(tokens) + 1)], *other[random.randrange(len(other)) :]]


def _append(tokens: Tokens, random: Random) -> Tokens:
    return [*tokens, "\n", random.choice(corpus())]


def _character(tokens: Tokens, random: Random) -> Tokens:
    text = "".join(tokens)
    at = random.randrange(len(text))
    strange = chr(random.choice((random.randrange(128), random.randrange(0x3000), random.randrange(0xD800))))
    return _TOKEN.findall(text[:at] + random.choice((strange, "")) + text[at + 1 :])


_CHANGES: tuple[Callable[[Tokens, Random], Tokens], ...] = (
    _drop, _repeat, _swap, _replace, _replace, _replace, _rename, _rename, _insert, _insert, _nest, _chain,
    _cut, _splice, _append, _append, _character,
)  # fmt: skip

# --- judgement ---------------------------------------------------------------------------------


def outcome(text: str, random: Random | None = None) -> str:
    """``refused`` by the parser, ``wrong`` when checked, or ``right``, and then it runs over ten readings;
    whatever else happens is our fault."""
    with at_once(10 * SECONDS):
        try:
            app = parse(text)
        except DefinitionError as error:
            return "refused" if str(error) else "without a word"
        _reads_back(app)
        try:
            found = check(app, ROOT)
        except HoldfastError as error:
            return "wrong" if str(error) else "without a word"
    if random is not None and found.topics:
        _runs(app, found.topics, random)
    return "right" if all(map(str, found.warnings)) else "without a word"


def _runs(app: App, topics: Sequence[Topic], random: Random) -> None:
    """Ten readings, one by one and as batches, need no more time than anybody would wait."""
    events = sorted((_event(random.choice(topics), random, i) for i in range(10)), key=lambda e: e.order)
    try:
        _through(app, topics, events, SECONDS)
    except TooSlow:  # some parts are compiled when they are used first
        _through(app, topics, events, 10 * SECONDS)
        _through(app, topics, events, SECONDS)


def _through(app: App, topics: Sequence[Topic], events: Sequence[Event], seconds: int) -> None:
    with suppress(HoldfastError), at_once(seconds):
        one_by_one, batches = (Engine(app, base=ROOT) for _ in range(2))
        for event in events:
            one_by_one.push(event)
        one_by_one.finish()
        Engine.restore(one_by_one.app, one_by_one.snapshot(), base=ROOT)
        for topic in topics:
            mine = [event for event in events if event.topic == topic.name]
            batches.push_batch(topic.name, from_events(topic, mine))
        batches.finish()


MOMENTS = (0, 1, 1_000, 500_000, 1_000_000, 1_500_000, 2_000_000, 30_000_000, 60_000_000)


def _event(topic: Topic, random: Random, number: int) -> Event:
    attributes = {one.name: random.choice(READ[one.kind]) for one in topic.attributes}
    place, location = random.choice((None, "lab")), random.choice((None, (0.0,), (1.0,), (1.0, 2.0)))
    return Event(
        topic.name, random.choice(MOMENTS), random.choice(("a", "s1")), attributes, number, location, place
    )


READ: dict[str, tuple[Value, ...]] = {
    "float": (-1.0, 0.0, 1.0, 20.0, 26.0, 30.0, 1e16, 1e300, math.inf, math.nan, None),
    "int": (0, 1, 2, 2**53 + 1, -(2**63), None),
    "text": ("a", "lab", "", None),
    "bool": (True, False, None),
}

SECONDS = 2
"""Of computing."""


class TooSlow(AssertionError):
    """A definition that takes longer than the limit."""


@contextmanager
def at_once(seconds: int) -> Iterator[None]:
    """Fail if the block takes longer than the limit."""

    def too_slow(*_: object) -> None:
        raise TooSlow(f"more than {seconds} s of computing")

    before = signal.signal(signal.SIGPROF, too_slow)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _reads_back(app: App) -> None:
    shown = show(app)
    assert parse(shown) == app, f"shown as {shown}"
    if all(name for one in app.statements if isinstance(one, DefineComponent) for name, _ in one.inputs):
        table = show(app, "thesis")
        assert parse(table) == app, f"shown as {table}"


# --- rows --------------------------------------------------------------------------------------

VALUES = (
    None, True, False, 0, 5, -1, 2**63, 2**70, 1.5, float("nan"), float("inf"), 1e18, -1e300, "", "T", "U",
    "5", [], [1], [[]], ["a"], [None], {}, {"a": 1}, {"a": []}, [{}], [1, "a"], "2026-01-01T00:00:00Z",
)  # fmt: skip
LINES = (
    "", "nul", "{}", "[]", '"x"', '{"topic": []}', '{"topic": [], "topic": "T"}', '\ufeff{"topic": []}',
    r'{"topic": "\ud800"}', r'{"source": "a\u0000"}', '{"time": 1e400}', '{"other": 1e400}',
    '{"topic": ' + "[" * 2_000 + "]" * 2_000 + "}",
)  # fmt: skip


def rows(random: Random) -> str:
    """JSON lines of topic ``T``, some of them invalid."""
    return "\n".join(_line(random, i) for i in range(random.randint(1, 5)))


def _line(random: Random, number: int) -> str:
    if random.random() < 0.1:
        return random.choice(LINES)
    row = {"time": f"2026-01-01T00:00:0{number}Z", "source": "a", "topic": "T", "value": 30.0, "n": 1}
    for name in [*row, *random.sample(("x", "y", "place", "sequence", "ok"), random.choice((0, 0, 1, 3)))]:
        if name not in row or random.random() < 0.1:
            row[name] = random.choice(VALUES)
    if random.random() < 0.1:
        del row[random.choice(list(row))]
    return json.dumps(row)
