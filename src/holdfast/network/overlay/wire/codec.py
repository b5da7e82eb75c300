"""Selection between the two encodings: MessagePack in frames, and the thesis' XML."""

from __future__ import annotations

from typing import get_args

from .frame import Codec, Language
from .packed import PackedCodec
from .xml.codec import XmlCodec

LANGUAGES: tuple[Language, ...] = get_args(Language)


def codec(language: Language, max_frame: int) -> Codec:
    """Return a codec for a language. ``max_frame`` is the longest message in bytes that it accepts."""
    return XmlCodec(max_frame) if language == "xml" else PackedCodec(max_frame)


def detect_language(start: bytes) -> Language:
    """Return the language of a caller, detected from the first byte that it sends."""
    return "xml" if start[:1] in b"< \t\r\n" else "msgpack"
