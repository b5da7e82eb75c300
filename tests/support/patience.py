"""How long a test waits for what must happen, and where it lets processes listen meanwhile."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

PATIENCE = 600
"""So many seconds, and it has hung: far more than the slowest machine needs.  Nothing else is measured."""

Found = TypeVar("Found")


def until(is_true: Callable[[], Found], what: str = "it") -> Found:
    """Wait for something, as long as a loaded machine may need; what it was."""
    end = time.monotonic() + PATIENCE
    while not (found := is_true()):
        assert time.monotonic() < end, f"{what} did not happen within {PATIENCE} s"
        time.sleep(0.05)
    return found


LOWEST = 20_000
_given: set[int] = set()


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    """A port for a process that is yet to be started. It is outside the range that the system hands out
    automatically, so no other process gets it by chance."""
    while True:
        port = random.SystemRandom().randrange(LOWEST, _first_of_the_system())
        with socket.socket(socket.AF_INET, kind) as one, suppress(OSError):
            if port not in _given:
                one.bind(("127.0.0.1", port))
                _given.add(port)
                return port


def _first_of_the_system() -> int:
    try:
        first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:
        first = 32_768
    return first if first > LOWEST else 32_768
