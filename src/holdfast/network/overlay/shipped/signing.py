"""Signatures of the digest of shipped code (Ed25519), which brokers verify with public keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....errors import UsageError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

_MAKE = "openssl genpkey -algorithm ed25519 -out KEY; openssl pkey -in KEY -pubout -out PUBLIC"


def sign_digest(digest: str, file: Path) -> str:
    """Return the public key and the signature of a digest, made with the private key in a file."""
    _require()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    key = _key("--sign", file, "private", lambda pem: load_pem_private_key(pem, None), Ed25519PrivateKey)
    return f"{key.public_key().public_bytes_raw().hex()} {key.sign(_signed_text(digest)).hex()}"


def make_verifier(files: Iterable[Path]) -> Callable[[str, str], bool]:
    """Return a function that checks whether one of the given public keys has signed a digest."""
    by_name = {key.public_bytes_raw().hex(): key for key in map(_public, files)}

    def is_signed(digest: str, signed: str) -> bool:
        name, _, signature = signed.partition(" ")
        if name not in by_name:
            return False
        from cryptography.exceptions import InvalidSignature

        try:
            by_name[name].verify(bytes.fromhex(signature), _signed_text(digest))
        except (InvalidSignature, ValueError):
            return False
        return True

    return is_signed


def _public(file: Path) -> Ed25519PublicKey:
    _require()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    key: Ed25519PublicKey = _key("--allow-signer", file, "public", load_pem_public_key, Ed25519PublicKey)
    return key


def _key(option: str, file: Path, what: str, load: Callable[[bytes], Any], kind: type) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        key = load(file.read_bytes())
    except OSError as error:
        raise UsageError(f"{option} {file}: {error.strerror}") from error
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, kind):
        wanted = f"a {what} key of Ed25519 as PEM, without a password"
        raise UsageError(f"{option} {file}: it is not {wanted}. To make one: {_MAKE}")
    return key


def _signed_text(digest: str) -> bytes:
    """Return the text to sign. Its prefix prevents the reuse of signatures that were made for other
    purposes.
    """
    return f"holdfast agent code {digest}".encode()


def _require() -> None:
    if find_spec("cryptography") is None:
        raise UsageError("signatures need a package that is not here: pip install 'holdfast[agents]'")
