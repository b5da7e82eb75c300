"""Encryption of connections with certificates of the user."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ....errors import UsageError


@dataclass(frozen=True, slots=True)
class Certificates:
    """The host's own certificate (``cert``, ``key``), and the authority for the certificates of peers
    (``ca``).
    """

    cert: Path | None = None
    key: Path | None = None
    ca: Path | None = None
    of_callers: bool = False
    """Whether callers too must have a certificate signed by ``ca``."""

    def __post_init__(self) -> None:
        if (self.cert is None) != (self.key is None):
            raise UsageError("--tls-cert and --tls-key belong together: give both, or none")
        if self.of_callers and self.ca is None:
            raise UsageError("--tls-callers checks certificates against --tls-ca: give that, too")

    def for_listening(self) -> ssl.SSLContext | None:
        """Return the TLS context for incoming connections; ``None`` without a certificate."""
        if self.cert is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._show(context)
        if self.of_callers:
            self._trust(context)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def for_calling(self) -> ssl.SSLContext | None:
        """Return the TLS context for outgoing connections; ``None`` without an authority."""
        if self.ca is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._trust(context)
        self._show(context)
        return context

    def _show(self, context: ssl.SSLContext) -> None:
        if self.cert is None or self.key is None:
            return
        _require_file(self.cert, "--tls-cert")
        _require_file(self.key, "--tls-key")
        with _usable(f"--tls-cert {self.cert}, --tls-key {self.key}"):
            context.load_cert_chain(self.cert, self.key)

    def _trust(self, context: ssl.SSLContext) -> None:
        assert self.ca is not None
        _require_file(self.ca, "--tls-ca")
        with _usable(f"--tls-ca {self.ca}"):
            context.load_verify_locations(self.ca)


def _require_file(path: Path, option: str) -> None:
    if not path.is_file():
        raise UsageError(f"{option} {path}: there is no such file")


@contextmanager
def _usable(options: str) -> Iterator[None]:
    """Raise a `UsageError` that names the options if their files cannot be used."""
    try:
        yield
    except OSError as error:  # ssl.SSLError is one
        reason = getattr(error, "reason", None) or error.strerror or str(error)
        message = f"{options}: not a usable certificate or key in PEM form ({reason})"
        raise UsageError(message) from error
