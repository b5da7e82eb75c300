"""Frames: a stream of bytes as messages of known length.

A connection begins with the preamble, four bytes of which the last is the version of the wire.  A
frame is a length (four bytes, the highest first) and so many bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

from .fault import Refused, WireFault

VERSION = 1
MAGIC = b"HFW"
PREAMBLE = MAGIC + bytes([VERSION])
HEADER = 4


def framed(body: bytes) -> bytes:
    """A message as it goes over the wire."""
    return len(body).to_bytes(HEADER) + body


class Frames:
    """Takes bytes as they come, in pieces of any size, and gives whole frames.

    Never holds more than one frame of the greatest length and what came with one piece.
    """

    def __init__(self, max_frame: int) -> None:
        self._max_frame = max_frame
        self._rest = bytearray()
        self._wanted = len(PREAMBLE)
        self._greeted = False

    def receive(self, piece: bytes | memoryview) -> Iterator[bytes]:
        """The frames that a piece completes; a fault ends the iteration behind the last good one."""
        rest = self._rest
        rest += piece
        if len(rest) < self._wanted:
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
        self._wanted = HEADER + int.from_bytes(rest[:HEADER]) if len(rest) >= HEADER else HEADER

    def _begin(self) -> int:
        """Where frames begin: behind the preamble, the first time."""
        if self._greeted:
            return 0
        _require_preamble(bytes(self._rest[: len(PREAMBLE)]))
        self._greeted = True
        return len(PREAMBLE)


def too_large(length: int, most: int) -> str:
    return f"a message of {length:,} bytes; at most {most:,} are taken here (--max-frame)"


def _require_preamble(start: bytes) -> None:
    if start == PREAMBLE:
        return
    if start.startswith(MAGIC):
        raise Refused(f"the peer speaks version {start[-1]} of the wire; this is version {VERSION}")
    raise Refused(f"the peer does not speak the wire of Holdfast: it began with {start!r}")
