"""Signatures of shipped code: whose they are, and of which text."""

from __future__ import annotations

import sys

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from holdfast.errors import UsageError
from holdfast.network.overlay.shipped.signing import make_verifier, sign_digest
from holdfast.network.protocols.agents.code_store import digest_of

DIGEST = digest_of("def start(me, others, relation):\n    return {}\n")


@pytest.fixture
def keys(tmp_path):
    """Files of a private key and of its public one, for a name."""

    def made(name, key=None):
        key = key or Ed25519PrivateKey.generate()
        private, public = tmp_path / f"{name}.key", tmp_path / f"{name}.pub"
        private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
        return private, public

    return made


def test_a_signature_is_valid_for_one_person_and_one_text(keys):
    (ann, her), (_, his) = keys("ann"), keys("bob")
    word = sign_digest(DIGEST, ann)
    assert make_verifier([his, her])(DIGEST, word)
    assert not make_verifier([his])(DIGEST, word)
    assert not make_verifier([])(DIGEST, word)
    assert not make_verifier([her])(digest_of("something else"), word)


@pytest.mark.parametrize(
    "change", [lambda w: "", lambda w: w[:64], lambda w: w[:-1] + "gh", lambda w: w + "x"]
)
def test_an_invalid_signature_is_rejected(keys, change):
    ann, her = keys("ann")
    word = sign_digest(DIGEST, ann)
    assert not make_verifier([her])(DIGEST, change(word))


def test_the_cryptography_package_is_not_needed_without_trusted_signers(monkeypatch):
    for name in ("cryptography", "cryptography.exceptions"):
        monkeypatch.setitem(sys.modules, name, None)
    assert not make_verifier([])(DIGEST, "ab" * 32 + " " + "cd" * 64)


def test_a_signature_under_another_name_is_rejected(keys):
    (ann, her), (bob, _) = keys("ann"), keys("bob")
    name, _, _ = sign_digest(DIGEST, ann).partition(" ")
    _, _, signature = sign_digest(DIGEST, bob).partition(" ")
    assert not make_verifier([her])(DIGEST, f"{name} {signature}")


def test_an_invalid_key_is_refused_with_a_remedy(keys, tmp_path):
    private, public = keys("ann", generate_private_key(SECP256R1()))
    (tmp_path / "text").write_text("no key")
    for file in (private, tmp_path / "text"):
        with pytest.raises(UsageError, match=r"not a private key of Ed25519.*openssl genpkey"):
            sign_digest(DIGEST, file)
    for file in (public, private, tmp_path / "text"):
        with pytest.raises(UsageError, match="not a public key of Ed25519"):
            make_verifier([file])
    with pytest.raises(UsageError, match=r"--allow-signer .*No such file"):
        make_verifier([tmp_path / "nothing"])
