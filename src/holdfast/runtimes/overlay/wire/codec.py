"""Two ways to write the same things: MessagePack in frames, and the thesis' XML."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, Protocol, get_args

from .packed import Packed
from .xml.codec import Marked

Language = Literal["msgpack", "xml"]
LANGUAGES: tuple[Language, ...] = get_args(Language)


class Codec(Protocol):
    """Bytes to what they say, and back, for one connection."""

    @property
    def language(self) -> Language:
        """Which of the two it is."""

    def opening(self) -> bytes:
        """What is sent before anything is said."""

    def receive(self, piece: bytes | memoryview) -> Iterator[Any]:
        """What a piece of the stream completes: controls and messages."""

    def encode(self, said: Any) -> bytes:
        """A control or a message, as it is sent; a fault if it is longer than the peer takes."""

    def require(self, data: bytes) -> None:
        """A fault if what is encoded already is longer than the peer takes."""

    def limit(self, most: int) -> None:
        """Send nothing longer than this."""


def codec(language: Language, max_frame: int) -> Codec:
    """A codec of that language."""
    return Marked(max_frame) if language == "xml" else Packed(max_frame)


def spoken(start: bytes) -> Language:
    """The language of a caller, by the first byte that it sends."""
    return "xml" if start[:1] in b"< \t\r\n" else "msgpack"
