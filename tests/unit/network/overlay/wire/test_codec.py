"""Messages arrive as they were sent, in either language, however the bytes are cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.network.overlay.wire.codec import LANGUAGES, codec, detect_language
from holdfast.network.overlay.wire.control import (
    AccountControl,
    Bye,
    Challenge,
    HelloControl,
    Inquiry,
    Ping,
    Pong,
    Proof,
    Welcome,
)
from holdfast.network.overlay.wire.fault import WireFault
from support.bundles import longs, messages, names, texts

LARGEST = 1 << 20

controls = (
    st.builds(
        HelloControl, texts, st.sampled_from(["broker", "client"]), *[st.binary(max_size=40)] * 2, longs
    )
    | st.builds(Challenge, st.binary(max_size=40))
    | st.builds(Proof, st.binary(max_size=40))
    | st.builds(Welcome, texts, st.binary(max_size=40), longs)
    | st.builds(Bye, texts, st.booleans())
    | st.builds(AccountControl, st.dictionaries(names, longs | texts, max_size=3))
    | st.builds(Inquiry, texts)
    | st.sampled_from([Ping(), Pong()])
)


def decode_all(language, data, cuts):
    """The messages that a receiver decodes when the bytes come in pieces that end at these places."""
    receiver = codec(language, LARGEST)
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    pieces = [data[a:b] for a, b in pairwise(places)]
    return [message for piece in pieces for message in receiver.receive(piece)]


@pytest.mark.parametrize("language", LANGUAGES)
@given(message=st.lists(messages | controls, max_size=4), cuts=st.lists(st.integers(0, 1 << 16), max_size=5))
def test_every_message_survives_encoding(language, message, cuts):
    sender = codec(language, LARGEST)
    data = sender.opening() + b"".join(map(sender.encode, message))
    assert decode_all(language, data, cuts) == message
    assert not message or detect_language(data) == language


@pytest.mark.parametrize("language", LANGUAGES)
@given(message=messages)
def test_a_message_decodes_from_single_bytes(language, message):
    sender = codec(language, LARGEST)
    data = sender.opening() + sender.encode(message)
    assert decode_all(language, data, range(len(data))) == [message]


@pytest.mark.parametrize("language", LANGUAGES)
@given(message=st.lists(messages, min_size=1, max_size=3), lost=st.integers(1, 1 << 16))
def test_an_incomplete_message_is_not_delivered(language, message, lost):
    sender = codec(language, LARGEST)
    encoded = [sender.encode(one) for one in message]
    data = sender.opening() + b"".join(encoded)
    rest = data[: len(data) - 1 - lost % len(encoded[-1])]
    assert decode_all(language, rest, []) == message[:-1]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_message_that_the_peer_would_not_accept_is_not_sent(language):
    with pytest.raises(WireFault, match=r"at most 1,024 are taken here \(--max-frame\)"):
        codec(language, 1024).encode(Bye("x" * 2000))
