"""Mutes become operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..nodes import as_token, duration, parts_of, place, signed, text_of, word_of
from ..ops import Beyond, During, Mute, While

if TYPE_CHECKING:
    from lark import Token, Tree


def mute(parts: list[Any]) -> Mute:
    """``mute Warm during …``, ``mute Child while Parent``, ``mute Warm beyond 5 within floor``."""
    target, cause, wait = parts
    return Mute(word_of(target), _cause(cause), 0 if wait is None else duration(wait), place(target))


def _cause(node: Tree[Token]) -> During | While | Beyond:
    match node.data, list(node.children):
        case "during", [spans, zone]:
            at = place(spans)
            return During(text_of(as_token(spans)), None if zone is None else text_of(as_token(zone)), at)
        case "whilst", [parent]:
            return While(word_of(as_token(parent)))
        case "beyond", [most, level]:
            names = () if level is None else tuple(word_of(as_token(name)) for name in parts_of(level))
            return Beyond(signed([None, most]), names)
        case other:
            raise AssertionError(other)
