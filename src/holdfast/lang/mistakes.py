"""Explanations of syntax errors.

The parser only reports the terminal that it could not use, and those that it could have used. Typical
mistakes are recognised one by one, in the order of `_MISTAKES`. For other errors, the expected words are
listed, never the names of terminals. To explain another mistake, write a function such as `_missing_on` and
add it to `_MISTAKES`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..errors import DefinitionError, Place, did_you_mean
from ..kernels.functions import AGGREGATES
from ..model.unit import nearest
from . import correlation_mistakes as correlation

if TYPE_CHECKING:
    from lark import Lark
    from lark.exceptions import UnexpectedInput
    from lark.parsers.lalr_parser_state import ParserState

STATEMENTS = (
    "let", "topic", "region", "gazetteer", "table", "filter", "state", "levels", "mute", "fold",
    "correlate", "relate", "case", "given", "expect",
)  # fmt: skip
CLAUSES = (
    "per", "scope", "within", "timely", "ordered", "late", "where", "on", "unknown after",
    "forget after", "initially", "roster",
)  # fmt: skip
FORMS = {
    "table": 'table Limits "limits.csv" (source text, high float)',
    "mute": 'mute Warm during "Sat 00:00 – Mon 06:00" in "Europe/Berlin", or while Parent',
    "fold": "fold Floors = Warm scope west, east within house beyond 1",
    "group": 'group Team of User ("ann", "bob")',
    "route": 'route North on Loop.speed ("4" 12 km, "5" 8 km)',
    "collide": "collide max",
}
"""Statements whose first word is also allowed as a name, with their notation."""
COMPONENT = ("enter", "exit", "for", "set", "tick", "here", "over", "each")

LONGEST_WORDS = 200
"""The number of characters before an error in which a mistake is searched."""

_COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*")|#[^\n]*')


@dataclass(frozen=True, slots=True)
class SyntaxFault:
    """The place of a syntax error, and the terminals that are allowed there."""

    text: str
    start: int
    expected: frozenset[str]

    @property
    def at_end(self) -> bool:
        return self.start >= len(self.text)

    @property
    def before(self) -> str:
        """The text before the error, with comments replaced by blanks."""
        return _COMMENT.sub(lambda found: found[1] or " " * len(found[0]), self.text[: self.start])

    @property
    def rest(self) -> str:
        return self.text[self.start :]

    @property
    def found(self) -> str:
        """The word or sign at the error."""
        match = re.match(r"[^\W\d]\w*|[\d.]+|==|!=|<=|>=|&&|\|\||\S", self.rest)
        return match[0] if match else ""

    def ends(self, pattern: str) -> re.Match[str] | None:
        """Return the match of a pattern at the end of the text before the error, or ``None``."""
        before = self.before
        return re.compile(pattern).search(before, max(0, len(before) - LONGEST_WORDS))

    def error(self, message: str, hint: str | None = None) -> DefinitionError:
        return self.error_at(self.start, len(self.found), message, hint)

    def error_at(self, start: int, width: int, message: str, hint: str | None = None) -> DefinitionError:
        line = self.text.count("\n", 0, start) + 1
        column = start - (self.text.rfind("\n", 0, start) + 1) + 1
        return DefinitionError(message, Place(line, column, max(1, width)), hint=hint)


def explain(error: UnexpectedInput, parser: Lark, text: str, rule: str) -> DefinitionError:
    """Return an error that users understand for a syntax error of the parser."""
    from lark.exceptions import UnexpectedToken

    start = error.pos_in_stream or 0
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        start = len(text)
    fault = SyntaxFault(text, start, _terminals_after(parser, text[:start], rule))
    for mistake in _MISTAKES:
        known = mistake(fault)
        if known is not None:
            return known
    return _list_expected(fault)


def _terminals_after(parser: Lark, before: str, rule: str) -> frozenset[str]:
    """Return the terminals that may follow a text.

    The parser's own list is incomplete, because the parser has reduced rules before it failed.
    """
    from lark.exceptions import UnexpectedInput

    reading = parser.parse_interactive(before, start=rule)
    state = reading.parser_state
    state.parse_conf.callbacks = {}  # the tree is not used
    with suppress(UnexpectedInput):
        reading.exhaust_lexer()
    words = [symbol for symbol in state.parse_conf.states[state.position] if symbol.isupper()]
    return frozenset(word for word in words if _may_follow(word, state))


def _may_follow(word: str, state: ParserState[Any]) -> bool:
    """Whether a parser in this state accepts a terminal.

    Lark's ``accepts`` does the same, but copies the whole parser for each terminal.
    """
    from lark.parsers.lalr_analysis import Shift

    table, stack = state.parse_conf.states, list(state.state_stack)
    while stack[-1] != state.parse_conf.end_state:
        action, then = table[stack[-1]].get(word, (None, None))
        if action is None or action is Shift:
            return action is Shift
        del stack[len(stack) - len(then.expansion) :]
        stack.append(table[stack[-1]][then.origin.name][1])
    return True


# --- typical mistakes --------------------------------------------------------------------------


def _find_open_text(fault: SyntaxFault) -> DefinitionError | None:
    if fault.rest.startswith('"') and not re.match(r'"(\\.|[^"\\\n])*"', fault.rest):
        line = fault.rest.split("\n", 1)[0]
        return fault.error_at(fault.start, len(line), "the text that starts here is never closed", 'Add a "')
    return None


def _other_quotes(fault: SyntaxFault) -> DefinitionError | None:
    if fault.rest[:1] in "'“”‘’«»`" and not fault.at_end:
        return fault.error("text is written in double quotes", 'As in name == "John"')
    return None


def _find_open_bracket(fault: SyntaxFault) -> DefinitionError | None:
    if not fault.at_end and not (fault.found in STATEMENTS and "NAME" not in fault.expected):
        return None
    opened: list[tuple[str, int]] = []
    for sign in re.finditer(r'"(?:\\.|[^"\\\n])*"|[\[\](){}]', fault.before):
        if sign[0] in ("[", "(", "{"):
            opened.append((sign[0], sign.start()))
        elif sign[0] in ("]", ")", "}") and opened:
            opened.pop()
    if not opened:
        return None
    bracket, start = opened[-1]
    closing = {"[": "]", "(": ")", "{": "}"}[bracket]
    return fault.error_at(start, 1, f"'{bracket}' is never closed", f"Add a '{closing}'")


def _unknown_statement(fault: SyntaxFault) -> DefinitionError | None:
    """Explain a misspelled keyword such as in ``stat Warm on …``.

    The parser took the word for the label of the papers' notation.
    """
    if fault.expected != {"COLON", "EQUAL"}:
        return None
    word = fault.ends(r"(\w+)\s*$")
    if word is None:
        return None
    fault = replace(fault, start=word.start(1))
    if re.search(r"\benter\b", fault.before) and (like := did_you_mean(word[1], COMPONENT)):
        if word[1] not in COMPONENT:
            return fault.error(f"unknown word '{word[1]}' in a component", like)
        hint = "A component is a name, queries, one 'enter', one 'exit', and traits."
        return fault.error(f"'{word[1]}' cannot stand here", hint)
    instead = _other_operator(replace(fault, expected=frozenset({"_AND"}))) or _unknown_unit(fault)
    if instead is not None:
        return instead
    if (form := FORMS.get(word[1])) is not None:
        return fault.error_at(
            word.start(1), len(word[1]), f"'{word[1]}' is not followed by what it needs", f"As in: {form}"
        )
    near = did_you_mean(word[1], [known for known in STATEMENTS + CLAUSES if known != word[1]])
    all_words = f"A statement starts with {', '.join(STATEMENTS[:7])} or {STATEMENTS[7]}."
    return fault.error_at(
        word.start(1),
        len(word[1]),
        f"unknown word '{word[1]}' at the start of a statement",
        near or all_words,
    )


def _bars(fault: SyntaxFault) -> DefinitionError | None:
    if fault.found == "||" and "_BAR" in fault.expected:
        return fault.error("'||' means 'or' here", "Put a blank between the bars, or write abs(…).")
    return None


_OPERATORS = (
    (r"=[<>]", "'{0}' is not a comparison", "Write >= or <=."),
    (r"=", "'=' does not compare", "Did you mean '=='?"),
    (r"&(?!&)", "'&' is not an operator", "Did you mean '&&'?"),
    (r"\|(?!\|)", "'|' is not an operator here", "Did you mean '||'?"),
    (r"(?i:and)(?!\w)", "'{0}' is not an operator", "Did you mean 'and'?"),
    (r"(?i:or)(?!\w)", "'{0}' is not an operator", "Did you mean 'or'?"),
    (r"(?i:in|is)(?!\w)", "'{0}' is not an operator here", "Ranges are written as value in [20, 25]."),
    (r"\^|\*\*", "there are no powers", "Multiply instead."),
)


def _other_operator(fault: SyntaxFault) -> DefinitionError | None:
    if fault.before.endswith("<") and fault.rest.startswith(">"):
        return fault.error_at(fault.start - 1, 2, "'<>' is not a comparison", "Did you mean '!='?")
    if "_AND" not in fault.expected and "COMPARE" not in fault.expected:
        return None
    for pattern, message, hint in _OPERATORS:
        found = re.match(pattern, fault.rest)
        if found:
            return fault.error_at(fault.start, len(found[0]), message.format(found[0]), hint)
    return None


def _missing_semicolon(fault: SyntaxFault) -> DefinitionError | None:
    if "SEMICOLON" not in fault.expected:
        return None
    if fault.rest.startswith(","):
        return fault.error("entrance and exit are separated by ';'", "Write [enter; exit].")
    if re.match(r"\(|[^\W\d]\w*\s*([<>=!≤≥≠+*/-]|in\b)", fault.rest):
        return fault.error(
            f"expected ';', '&&' or '||' before '{fault.found}'", "Entrance and exit are separated by ';'."
        )
    return None


def _unknown_unit(fault: SyntaxFault) -> DefinitionError | None:
    word = re.match(r"[^\s()\[\]{},;:<>=!&|+*\"#-]+", fault.rest)
    after_number = fault.ends(r"(?<!\w)[\d.]+(?:[eE][+-]?\d+)?[ \t]*$")
    if not word or not (after_number or "UNIT" in fault.expected) or re.match(r"[\d.]", word[0]):
        return None
    near = nearest(word[0])
    possible = [*CLAUSES, *(word for word in COMPONENT if f"_{word.upper()}" in fault.expected)]
    if word[0] in STATEMENTS or word[0] in possible or (near is None and did_you_mean(word[0], possible)):
        return None
    return fault.error_at(
        fault.start,
        len(word[0]),
        f"unknown unit '{word[0]}'",
        near or "Units are written as °C, %, m, km/h, s, min, hPa, ppm, lx, …; or leave it out.",
    )


def _missing_on(fault: SyntaxFault) -> DefinitionError | None:
    """Explain ``state W T [v > 5]``: the parser took the topic for the name of a component's query."""
    word = fault.ends(r"\bstate\s+\w+\s+(\w+)\s*$")
    if word and fault.expected == {"EQUAL"}:
        fault = replace(fault, start=word.start(1))
    elif fault.expected != {"_ON"} and not ("_ENTER" in fault.expected and fault.found in ("[", "{")):
        return None
    return fault.error(
        f"expected 'on' and a topic before '{fault.found}'" if fault.found else "expected 'on' and a topic",
        "As in: state Warm on Temperature [value > 25; value < 22]",
    )


_OTHER_FUNCTIONS = {
    **{synonym: name for name, function in AGGREGATES.items() for synonym in function.synonyms},
    "last": "latest",
    "newest": "latest",
}


def _component_word(fault: SyntaxFault) -> DefinitionError | None:
    """Explain a word in a component that the parser took for the name of a query.

    Examples are ``A = mean T over …`` and ``entr A.value > 2``.
    """
    if fault.expected != {"EQUAL"}:
        return None
    words = fault.ends(r"(?:=\s*(\w+)\s+)?(\w+)\s*$")
    if words is None:
        return None
    function = _OTHER_FUNCTIONS.get(words[1] or "")
    if function:
        start = words.start(1)
        return fault.error_at(
            start, len(words[1]), f"unknown function '{words[1]}'", f"Did you mean '{function}'?"
        )
    if words[2] == "exit":
        return fault.error_at(words.start(2), 4, "expected 'enter' before 'exit'")
    near = did_you_mean(words[2], COMPONENT)
    if near is None:
        return None
    return fault.error_at(words.start(2), len(words[2]), f"unknown word '{words[2]}' in a component", near)


def _component_part(fault: SyntaxFault) -> DefinitionError | None:
    if "_ENTER" in fault.expected and fault.found == "per":
        return fault.error("a component keeps things apart with 'each'", "As in: each source")
    if "_ENTER" in fault.expected and fault.found == ",":
        return fault.error(
            "there is no comma between queries", "Each query is a name, '=' and what it looks at."
        )
    if fault.expected == {"_OF"} and fault.ends(r"within\s+\S+\s*\S*\s*$"):
        return fault.error(f"expected 'of' before '{fault.found}'", "As in: within 10 m of here")
    return None


_MISTAKES: tuple[Callable[[SyntaxFault], DefinitionError | None], ...] = (
    _find_open_text,
    _other_quotes,
    correlation.mistake,
    _missing_on,
    _component_word,
    _component_part,
    _unknown_statement,
    _find_open_bracket,
    _bars,
    _other_operator,
    _missing_semicolon,
    _unknown_unit,
)

# --- everything else ---------------------------------------------------------------------------

_OPERAND = {
    "CALLED", "NAME", "MEMBER", "ORIGIN", "NUMBER", "QUANTITY", "STRING", "TRUE", "FALSE",
    "LPAR", "MINUS", "_ABS", "_BAR", "_NOT", "_SILENT",
}  # fmt: skip
_OPERATOR = {"COMPARE", "PLUS", "MINUS", "TIMES", "OVER", "_AND", "_OR", "_IN"}
_PART = {
    "LPAR", "_AMONG", "_AT", "_CLOSEST", "_EACH", "_ENTER", "_EVER", "FUNCTION", "HOW", "_OVER", "_WHATEVER",
    "_WITHIN",
}  # fmt: skip
_START = {f"_{word.upper()}" for word in STATEMENTS} | {
    "NAME", "LSQB", "_N", "$END", "_COLLIDE", "_GROUP", "_LADDER", "_LOOKUP", "_ROUTE",
}  # fmt: skip

_GROUPS: tuple[tuple[set[str], set[str], str], ...] = (
    ({"ATTRIBUTE"}, {"ATTRIBUTE", "NUMBER", "QUANTITY", "MINUS", "LBRACE"}, "a filter"),
    ({"NAME", "NUMBER"}, _OPERAND, "a number, an attribute, '('"),
    ({"COMPARE"}, _OPERATOR, "an operator"),
    ({"_LET"}, _START, "a statement"),
    ({"MISSING"}, {"MISSING", "NUMBER", "QUANTITY", "STRING", "TRUE", "FALSE", "MINUS"}, "a value, '_'"),
    ({"NUMBER"}, {"NUMBER", "QUANTITY", "MEASURE", "MINUS"}, "a number"),
    ({"_OVER", "_ENTER"}, _PART | {"NAME"}, "'over', 'each', 'within', another query, 'enter'"),
    ({"NAME", "STRING"}, {"NAME", "STRING"}, "a name"),
)
"""If all words of the first set are expected, they are described by the third field."""

_SAID = {
    "NAME": "a name", "STRING": "a text in double quotes", "UNIT": "a unit", "EVERYTHING": "'U'",
    "LPAR": "'('", "RPAR": "')'", "LSQB": "'['", "RSQB": "']'", "LBRACE": "'{'", "RBRACE": "'}'",
    "COMMA": "','", "COLON": "':'", "SEMICOLON": "';'", "EQUAL": "'='", "_AND": "'&&'", "_OR": "'||'",
    "_BAR": "'|'", "PLUS": "'+'", "MINUS": "'-'", "TIMES": "'*'", "OVER": "'/'", "COMPARE": "a comparison",
    "_NOT": "'!'", "$END": "the end", "FUNCTION": "a function", "HOW": "'any'", "STATUS": "a status",
    "_PN": "'P^n'", "_PX": "'P^x'", "_AN": "'A^n'", "_AX": "'A^x'", "_IS": "':='", "_ABOUT": "'±'",
    "SIGNED": "a number", "RELATIVE": "'0^r'", "TARGET": "an attribute",
}  # fmt: skip


def in_words(terminals: frozenset[str]) -> str:
    """Return terminals as words of the language, for an error message."""
    left = set(terminals)
    words: list[str] = []
    for needed, covered, text in _GROUPS:
        if needed <= left:
            words += text.split(", ")
            left -= covered
    words += sorted(_SAID.get(name, f"'{name.strip('_').lower()}'") for name in left)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _list_expected(fault: SyntaxFault) -> DefinitionError:
    expected = in_words(fault.expected) if fault.expected else "nothing more"
    if fault.at_end:
        end = len(fault.text.rstrip())
        return fault.error_at(max(0, end - 1), 1, f"the text ends too early: expected {expected}")
    words = [name.strip("_").lower() for name in fault.expected if name.startswith("_")]
    return fault.error(f"expected {expected}, found '{fault.found}'", did_you_mean(fault.found, words))
