"""MessagePack in frames: the encoding between brokers, and of Holdfast's clients.

The first byte of a frame distinguishes controls from messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ....errors import HoldfastError
from ...protocols.cbps.message import CbpsMessage
from .control import Control, Controls
from .fault import WireFault
from .frame import HEADER, PREAMBLE, Buffer, Codec, Frames

CONTROL, MESSAGE = 0, 1

_encoder = msgspec.msgpack.Encoder()
_control = msgspec.msgpack.Decoder(Controls)
_message = msgspec.msgpack.Decoder(CbpsMessage)


class PackedCodec(Codec):
    """The MessagePack codec of one connection."""

    language = "msgpack"

    def __init__(self, max_frame: int) -> None:
        super().__init__(max_frame)
        self._frames = Frames(max_frame)

    def opening(self) -> bytes:
        return PREAMBLE

    def receive(self, piece: bytes | memoryview) -> Iterator[Any]:
        return map(unpack, self._frames.receive(piece))

    def encode(self, message: Any) -> bytes:
        """Return a control or message as a frame. Raise a `WireFault` if the peer would not accept it."""
        frame = bytearray(HEADER + 1)
        frame[HEADER] = CONTROL if isinstance(message, Control) else MESSAGE
        _encoder.encode_into(message, frame, HEADER + 1)
        self.require(frame)
        frame[:HEADER] = (len(frame) - HEADER).to_bytes(HEADER)
        return bytes(frame)

    def require(self, data: Buffer) -> None:
        super().require(memoryview(data)[HEADER:])


def unpack(frame: bytes) -> Any:
    """Decode the control or message in a frame."""
    try:
        if frame[0] == MESSAGE:
            return _message.decode(memoryview(frame)[1:])
        if frame[0] == CONTROL:
            return _control.decode(memoryview(frame)[1:])
    except HoldfastError as error:
        raise WireFault(f"a message that means nothing: {error}") from error
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise WireFault(f"a malformed message: {error}") from error
    except IndexError:
        raise WireFault("an empty frame") from None
    raise WireFault(f"a frame of the unknown kind {frame[0]}")
