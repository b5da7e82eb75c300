"""The two encodings: MessagePack in frames, and the thesis' XML."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, Protocol, get_args

from .packed import PackedCodec
from .xml.codec import XmlCodec

Language = Literal["msgpack", "xml"]
LANGUAGES: tuple[Language, ...] = get_args(Language)


class Codec(Protocol):
    """Encodes and decodes messages of one connection."""

    @property
    def language(self) -> Language:
        """The encoding."""

    def opening(self) -> bytes:
        """Return the bytes at the start of a connection."""

    def receive(self, piece: bytes | memoryview) -> Iterator[Any]:
        """Yield the controls and messages that a piece of the stream completes."""

    def encode(self, message: Any) -> bytes:
        """Return a control or a message as bytes; raise a fault if it is longer than the peer accepts."""

    def require(self, data: bytes) -> None:
        """Raise a fault if encoded bytes are longer than the peer accepts."""

    def limit(self, most: int) -> None:
        """Set the longest message that the peer accepts."""


def codec(language: Language, max_frame: int) -> Codec:
    """Return a codec of a language."""
    return XmlCodec(max_frame) if language == "xml" else PackedCodec(max_frame)


def detect_language(start: bytes) -> Language:
    """Return the language of a caller from the first byte that it sends."""
    return "xml" if start[:1] in b"< \t\r\n" else "msgpack"
