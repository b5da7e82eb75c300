"""The handshake of a connection: the greeting, the token, and addresses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import UsageError
from holdfast.network.overlay.connection.address import Address, parse_address
from holdfast.network.overlay.connection.backoff import Backoff
from holdfast.network.overlay.connection.handshake import NONCE, Caller, Listener, read_token
from holdfast.network.overlay.wire.control import Bye, Challenge, HelloControl, Ping, Proof, Welcome
from holdfast.network.overlay.wire.fault import ConnectionRefused, WireFault

TOKEN = b"0123456789abcdef"
ONE, TWO, THREE = (bytes([n]) * NONCE for n in (1, 2, 3))


def greet(caller, called):
    """Exchange messages until neither side has any left."""
    to_called, to_caller = caller.opening(), []
    while to_called or to_caller:
        to_caller = [answer for output in to_called for answer in called.receive(output)]
        to_called = [answer for output in to_caller for answer in caller.receive(output)]


def test_only_names_are_exchanged_without_a_token():
    caller, called = Caller("a", "client", None, ONE), Listener("hub", None, TWO)
    greet(caller, called)
    assert (caller.peer, called.peer, called.role) == ("hub", "a", "client")


def test_both_sides_are_authenticated_with_a_token():
    caller, called = Caller("a", "broker", TOKEN, ONE), Listener("hub", TOKEN, TWO)
    greet(caller, called)
    assert (caller.peer, called.peer, called.role) == ("hub", "a", "broker")


@given(st.binary(max_size=40))
def test_a_different_token_is_refused(other):
    caller, called = Caller("a", "client", other, ONE), Listener("hub", TOKEN, TWO)
    if other == TOKEN:
        greet(caller, called)
        return
    with pytest.raises(ConnectionRefused, match="the token is wrong"):
        greet(caller, called)
    assert called.peer is None


def test_a_broker_that_does_not_know_the_token_is_detected():
    caller = Caller("a", "client", TOKEN, ONE)
    (hello,) = caller.opening()
    impostor = Listener("hub", b"something else entirely", TWO)
    (challenge,) = impostor.receive(hello)
    caller.receive(challenge)
    with pytest.raises(ConnectionRefused, match="the broker does not know the token"):
        caller.receive(Welcome("hub", b"\0" * 32))
    assert caller.peer is None


def test_a_proof_is_valid_for_one_challenge_and_one_name():
    caller, called = Caller("a", "client", TOKEN, ONE), Listener("hub", TOKEN, TWO)
    (challenge,) = called.receive(*caller.opening())
    (proof,) = caller.receive(challenge)
    assert isinstance(proof, Proof)
    for other, nonce in (("a", THREE), ("b", TWO)):
        victim = Listener("hub", TOKEN, nonce)
        victim.receive(HelloControl(other, "client", ONE))
        with pytest.raises(ConnectionRefused, match="the token is wrong"):
            victim.receive(proof)
    (welcome,) = called.receive(proof)
    assert welcome.proof != proof.proof


def test_a_proof_cannot_be_replayed_for_another_caller():
    """The proof of the one who was called is no proof of a caller."""
    called = Listener("hub", TOKEN, TWO)
    called.receive(HelloControl("a", "client", ONE))
    victim = Listener("hub", TOKEN, TWO)
    victim.receive(HelloControl("a", "client", ONE))
    honest = Caller("a", "client", TOKEN, ONE)
    (proof,) = honest.receive(Challenge(TWO))
    (welcome,) = called.receive(proof)
    with pytest.raises(ConnectionRefused):
        victim.receive(Proof(welcome.proof))


@pytest.mark.parametrize(
    "message", [Ping(), Proof(b""), Welcome("x"), Challenge(ONE)], ids=lambda output: type(output).__name__
)
def test_unexpected_controls_are_refused(message):
    with pytest.raises(WireFault, match="is not allowed"):
        Listener("hub", None, TWO).receive(message)


def test_a_second_hello_is_refused():
    called = Listener("hub", TOKEN, TWO)
    called.receive(HelloControl("a", "client", ONE))
    with pytest.raises(WireFault, match="Hello is not allowed"):
        called.receive(HelloControl("b", "client", ONE))


def test_a_short_nonce_is_refused():
    with pytest.raises(ConnectionRefused, match="32 bytes"):
        Listener("hub", TOKEN, TWO).receive(HelloControl("a", "client", b"x"))


def test_a_client_reports_the_reason_of_a_refusal():
    with pytest.raises(ConnectionRefused, match="the broker says: go away"):
        Caller("a", "client", None, ONE).receive(Bye("go away", final=True))


def test_a_token_file_is_read_without_its_line_end(tmp_path):
    path = tmp_path / "token"
    path.write_bytes(TOKEN + b"\n")
    assert read_token(path) == TOKEN
    path.write_bytes(b"short\n")
    with pytest.raises(UsageError, match=r"at least 16 characters; make one with: openssl rand -hex 32"):
        read_token(path)
    with pytest.raises(UsageError, match=r"--token-file .*No such file"):
        read_token(tmp_path / "absent")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost:80", Address("localhost", 80)),
        ("[::1]:0", Address("::1", 0)),
        (":4653", Address("127.0.0.1", 4653)),
    ],
)
def test_addresses_are_parsed_and_printed(text, address):
    assert parse_address(text) == address
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    "text", ["", "localhost", "localhost:", "localhost:http", "a:70000", "::1:80", "a:-1"]
)
def test_an_invalid_address_is_refused_with_an_example(text):
    with pytest.raises(UsageError, match=r"--listen .*(HOST:PORT, such as 127\.0\.0\.1:4653|in brackets)"):
        parse_address(text, "--listen")


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_backoff_grows_to_a_bound_and_is_never_less_than_half(failures, chance):
    backoff = Backoff(1_000, 60_000)
    wait = backoff.wait(failures, chance)
    assert 500 <= wait <= 60_000
    assert wait <= 2 * backoff.wait(failures + 1, chance)
    assert backoff.wait(10_000, chance) >= 30_000
