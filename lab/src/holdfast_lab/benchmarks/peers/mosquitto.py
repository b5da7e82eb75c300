"""Eclipse Mosquitto, the MQTT broker, and just enough of MQTT 3.1.1 to load it."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

TOPIC = b"Temperature"
PLACES = ("mosquitto", "/usr/sbin/mosquitto", "/usr/local/sbin/mosquitto")
CONNECT, SUBSCRIBE, PUBLISH = 0x10, 0x82, 0x30


def program() -> str | None:
    """Where the broker is, if it is installed."""
    return next((found for place in PLACES if (found := shutil.which(place))), None)


@contextmanager
def running() -> Iterator[tuple[str, int]]:
    """A broker that keeps everything for slow consumers; where it listens."""
    command = program()
    assert command is not None
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = ("127.0.0.1", int(free.getsockname()[1]))
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        settings = Path(folder) / "mosquitto.conf"
        settings.write_text(
            f"listener {address[1]} 127.0.0.1\nallow_anonymous true\npersistence false\n"
            "max_queued_messages 0\nmax_queued_bytes 0\nmax_inflight_messages 0\n"
            "set_tcp_nodelay true\nlog_type none\nuser root\n"
        )
        process = subprocess.Popen([command, "-c", str(settings)], stderr=subprocess.DEVNULL)
        try:
            _wait_for(address)
            yield address
        finally:
            process.terminate()
            process.wait(10)


def _wait_for(address: tuple[str, int]) -> None:
    for _ in range(500):
        try:
            socket.create_connection(address).close()
            return
        except ConnectionRefusedError:
            time.sleep(0.02)
    raise ConnectionRefusedError(f"Mosquitto does not listen at {address}")


def packet(kind: int, body: bytes) -> bytes:
    """An MQTT packet: its kind, the length in groups of seven bits, the rest."""
    length, header = len(body), bytearray([kind])
    while True:
        length, group = divmod(length, 128)
        header.append(group | (0x80 if length else 0))
        if not length:
            return bytes(header) + body


def text(payload: bytes) -> bytes:
    return len(payload).to_bytes(2) + payload


def publish_packet(payload: bytes) -> bytes:
    """A message as it is sent, and as it arrives."""
    return packet(PUBLISH, text(TOPIC) + payload)


def message(number: int, channel: str, payload: str) -> bytes:
    """A message of quality 1 as it is sent."""
    return packet(PUBLISH | 2, text(channel.encode()) + (number % 65_535 + 1).to_bytes(2) + payload.encode())


def publish(address: tuple[str, int], messages: Iterable[tuple[str, str]]) -> None:
    """Publish texts on channels with quality 1, as fast as the broker takes them, and wait for its word."""
    sent = [message(i, *one) for i, one in enumerate(messages)]
    with connect(address, "devices") as peer:
        sender = threading.Thread(target=peer.sendall, args=(b"".join(sent),))
        sender.start()
        owed = 4 * len(sent)  # bytes of its acknowledgements
        while owed > 0 and (payload := peer.recv(1 << 16)):
            owed -= len(payload)
        sender.join()


def count(data: bytes, at: int = 0) -> tuple[int, int]:
    """How many messages there are in a stream, and where what is not complete begins."""
    found, end = 0, len(data)
    while True:
        length, shift, i = 0, 0, at + 1
        while i < end:
            length |= (data[i] & 0x7F) << shift
            shift += 7
            i += 1
            if not data[i - 1] & 0x80:
                break
        else:
            return found, at
        if i + length > end:
            return found, at
        found += data[at] & 0xF0 == PUBLISH
        at = i + length


def connect(address: tuple[str, int], name: str) -> socket.socket:
    """A client that may publish."""
    peer = socket.create_connection(address)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    peer.sendall(packet(CONNECT, text(b"MQTT") + b"\x04\x02\x00\x00" + text(name.encode())))
    _require(peer.recv(4), b"\x20\x02\x00\x00")
    return peer


def subscribe(address: tuple[str, int], name: str) -> socket.socket:
    """A client that hears every message."""
    peer = connect(address, name)
    peer.sendall(packet(SUBSCRIBE, b"\x00\x01" + text(TOPIC) + b"\x00"))
    _require(peer.recv(5), b"\x90\x03\x00\x01\x00")
    return peer


def _require(payload: bytes, expected: bytes) -> None:
    if payload != expected:
        raise ConnectionError(f"Mosquitto says {payload!r}, not {expected!r}")
