"""Frames: bytes in pieces of any size become whole messages, and what is not a frame is refused."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.network.overlay.wire.fault import ConnectionRefused, WireFault
from holdfast.network.overlay.wire.frame import PREAMBLE, Frames, to_frame
from holdfast.network.overlay.wire.packed import PackedCodec, unpack


@given(st.lists(st.binary(max_size=20)), st.integers(1, 30))
def test_frames_are_restored_whole_however_they_are_cut(bodies, size):
    data = PREAMBLE + b"".join(map(to_frame, bodies))
    frames = Frames(100)
    pieces = [data[i : i + size] for i in range(0, len(data), size)]
    assert [body for piece in pieces for body in frames.receive(piece)] == bodies


def test_frames_before_a_fault_are_still_delivered():
    received = Frames(100).receive(PREAMBLE + to_frame(b"good") + to_frame(b"x" * 101))
    assert next(received) == b"good"
    with pytest.raises(WireFault, match="a message of 101 bytes; at most 100"):
        next(received)


def test_an_oversized_frame_is_refused_by_its_length_before_its_bytes_arrive():
    with pytest.raises(WireFault, match="4,294,967,295 bytes"):
        list(Frames(100).receive(PREAMBLE + b"\xff\xff\xff\xff"))


def test_another_version_is_distinguished_from_another_protocol():
    with pytest.raises(ConnectionRefused, match="version 9 of the wire; this is version 1"):
        list(Frames(100).receive(b"HFW\x09"))
    with pytest.raises(ConnectionRefused, match="does not speak the wire of Holdfast"):
        list(Frames(100).receive(b"GET / HTTP/1.1"))


def test_a_large_slow_frame_is_not_copied_for_every_byte():
    frames = Frames(1 << 20)
    list(frames.receive(PREAMBLE + (1 << 20).to_bytes(4)))
    for _ in range((1 << 20) - 1):
        assert list(frames.receive(b"x")) == []
    (body,) = frames.receive(b"y")
    assert len(body) == 1 << 20


@given(st.binary(max_size=60))
def test_random_bytes_in_a_frame_are_a_message_or_a_fault(noise):
    with suppress(WireFault):
        unpack(noise)


@given(st.binary(max_size=300), st.integers(1, 40))
def test_random_bytes_on_the_wire_are_a_fault_or_incomplete(noise, size):
    packed = PackedCodec(1 << 10)
    assert list(packed.receive(PREAMBLE)) == []
    with suppress(WireFault):
        for i in range(0, len(noise), size):
            list(packed.receive(noise[i : i + size]))


def test_an_endlessly_nested_message_is_refused():
    deep = b"\x01\x82\xa4type\xa6bundle\xa1x" + b"\x91" * 1_000_000
    with pytest.raises(WireFault, match="malformed"):
        unpack(deep)
