"""Splitting of a stream of bytes into whole XML elements, one after the other, as the thesis sends them.
[B49, B50]

This module matches brackets and inspects each byte once. So the parser receives only complete input. Input
that is too large, too deep, or declares a document type (and so entities) is refused before it reaches the
parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal
from xml.etree import ElementTree

from ..fault import WireFault
from ..frame import too_large

DEEPEST = 32
Element = ElementTree.Element

_Inside = Literal["text", "tag", "quote", "comment", "data", "instruction"]
_ENDS: dict[_Inside, bytes] = {"comment": b"-->", "data": b"]]>", "instruction": b"?>"}
_BEGINS: dict[bytes, _Inside] = {b"<!--": "comment", b"<![CDATA[": "data", b"<?": "instruction"}
_IN_TAG = re.compile(rb"[>\"'<]")
_OUTSIDE = re.compile(rb"[^ \t\r\n]")


class Elements:
    """Splits a stream, which arrives in pieces of any size, into elements."""

    def __init__(self, max_bytes: int, deepest: int = DEEPEST) -> None:
        self._max_bytes, self._deepest = max_bytes, deepest
        self._rest = bytearray()
        self._at = self._tag = 0
        self._depth = 0
        self._inside: _Inside = "text"
        self._quote = b""

    def receive(self, piece: bytes | memoryview) -> Iterator[Element]:
        """Yield the elements that a piece completes. A fault is raised after the last valid element."""
        self._rest += piece
        while self._advance():
            if self._depth == 0 and self._inside == "text":
                whole = bytes(self._rest[: self._at])
                del self._rest[: self._at]
                self._at = 0
                if not whole.startswith((b"<!", b"<?")):
                    self._require_size(len(whole))
                    yield parse_element(whole)
        self._require_size(len(self._rest))

    def _advance(self) -> bool:
        """Move behind the next bracket or quote; return false if it has not arrived yet."""
        match self._inside:
            case "text":
                return self._enter()
            case "tag":
                return self._in_tag()
            case "quote":
                return self._behind(self._quote, "tag")
            case inside:
                return self._behind(_ENDS[inside], "text")

    def _enter(self) -> bool:
        """Enter the next tag, comment, data section or instruction; return false if it has not
        arrived yet.
        """
        rest = self._rest
        if self._depth == 0:
            if (found := _OUTSIDE.search(rest)) is None:
                rest.clear()
                return False
            del rest[: found.start()]
            if rest[0] != 0x3C:
                raise WireFault(f"text outside of an element: {bytes(rest[:20])!r}")
            self._at = 0
        begin = rest.find(b"<", self._at)
        self._at = len(rest) if begin < 0 else begin
        head = bytes(rest[self._at : self._at + 9])
        if len(head) < 2:
            return False
        if head[1:2] not in (b"!", b"?"):
            self._at, self._tag, self._inside = begin + 1, begin, "tag"
            return True
        for mark, inside in _BEGINS.items():
            if head.startswith(mark):
                self._at, self._inside = begin + len(mark), inside
                return True
            if mark.startswith(head):
                return False
        raise WireFault("a document type declaration; messages have none, and no entities")

    def _in_tag(self) -> bool:
        """Move behind the next quote or bracket inside a tag; return false if none has arrived yet."""
        found = _IN_TAG.search(self._rest, self._at)
        if found is None:
            self._at = len(self._rest)
            return False
        self._at = found.end()
        match found.group():
            case b">":
                self._end_tag()
            case b"<":
                raise WireFault("'<' inside of a tag")
            case quote:
                self._inside, self._quote = "quote", quote
        return True

    def _end_tag(self) -> None:
        """Handle the end of a tag, and update the depth of nesting."""
        self._inside = "text"
        if self._rest[self._tag + 1] == 0x2F:
            self._depth -= 1
        elif self._rest[self._at - 2] != 0x2F:
            self._depth += 1
        if self._depth < 0:
            raise WireFault("an end tag that ends nothing")
        if self._depth > self._deepest:
            raise WireFault(f"elements lie more than {self._deepest} deep within one another")

    def _behind(self, end: bytes, inside: _Inside) -> bool:
        found = self._rest.find(end, self._at)
        if found < 0:
            self._at = max(self._at, len(self._rest) - len(end) + 1)
            return False
        self._at, self._inside = found + len(end), inside
        return True

    def _require_size(self, size: int) -> None:
        if size > self._max_bytes:
            raise WireFault(too_large(size, self._max_bytes))


def parse_element(whole: bytes) -> Element:
    """Parse one element whose brackets have been matched."""
    try:
        return ElementTree.fromstring(whole)
    except ElementTree.ParseError as error:
        raise WireFault(f"not well-formed XML: {error}") from error
