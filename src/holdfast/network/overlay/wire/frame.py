"""Frames: a stream of bytes as messages of known length.

A connection begins with the preamble: four bytes, of which the last is the version of the wire format. A
frame is a length (four bytes, big-endian) followed by that number of bytes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Literal

from .fault import ConnectionRefused, WireFault

VERSION = 1
MAGIC = b"HFW"
PREAMBLE = MAGIC + bytes([VERSION])
HEADER = 4


def to_frame(body: bytes) -> bytes:
    """Return an encoded message as a frame: its length, then its bytes."""
    return len(body).to_bytes(HEADER) + body


class Frames:
    """Splits a stream, in pieces of any size, into frames.

    It never stores more than one frame of the greatest length and one piece.
    """

    def __init__(self, max_frame: int) -> None:
        self._max_frame = max_frame
        self._rest = bytearray()
        self._needed = len(PREAMBLE)
        self._has_preamble = False

    def receive(self, piece: bytes | memoryview) -> Iterator[bytes]:
        """Yield the frames that a piece completes. A fault is raised after the last valid frame."""
        rest = self._rest
        rest += piece
        if len(rest) < self._needed:
            return
        at, end = self._begin(), len(rest)
        view = bytes(rest)
        try:
            while at + HEADER <= end:
                length = int.from_bytes(view[at : at + HEADER])
                if length > self._max_frame:
                    raise WireFault(too_large(length, self._max_frame))
                if at + HEADER + length > end:
                    break
                at += HEADER + length
                yield view[at - length : at]
        finally:
            del rest[:at]
        self._needed = HEADER + int.from_bytes(rest[:HEADER]) if len(rest) >= HEADER else HEADER

    def _begin(self) -> int:
        """Return the position at which frames begin; the first time it is after the preamble."""
        if self._has_preamble:
            return 0
        _require_preamble(bytes(self._rest[: len(PREAMBLE)]))
        self._has_preamble = True
        return len(PREAMBLE)


def too_large(length: int, most: int) -> str:
    """Return the error message for a message that is too long."""
    return f"a message of {length:,} bytes; at most {most:,} are taken here (--max-frame)"


Language = Literal["msgpack", "xml"]
Buffer = bytes | bytearray | memoryview


class Codec(ABC):
    """Encodes and decodes the messages of one connection. Each language has a subclass."""

    language: Language

    def __init__(self, max_frame: int) -> None:
        self._most = max_frame

    @abstractmethod
    def opening(self) -> bytes:
        """Return the bytes to send at the start of a connection."""

    @abstractmethod
    def receive(self, piece: bytes | memoryview) -> Iterator[Any]:
        """Yield the controls and messages that a piece of the stream completes."""

    @abstractmethod
    def encode(self, message: Any) -> bytes:
        """Return a control or a message as bytes. Raise a `WireFault` if it is longer than the peer
        accepts.
        """

    def require(self, data: Buffer) -> None:
        """Raise a `WireFault` if encoded bytes are longer than the peer accepts."""
        if len(data) > self._most:
            raise WireFault(too_large(len(data), self._most))

    def limit(self, most: int) -> None:
        """Set the longest message that the peer accepts."""
        self._most = min(self._most, most)


def _require_preamble(start: bytes) -> None:
    if start == PREAMBLE:
        return
    if start.startswith(MAGIC):
        raise ConnectionRefused(f"the peer speaks version {start[-1]} of the wire; this is version {VERSION}")
    raise ConnectionRefused(f"the peer does not speak the wire of Holdfast: it began with {start!r}")
