"""The configuration file ``serve.toml``: brokers, mappings, sinks, users and limits.

Each table of the file is a class of fields with defaults. To add a setting, add a field, and a check to
``_checks`` if its type does not express what is allowed. Errors name the line.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from ..errors import DefinitionError, HoldfastError, Place, UsageError
from ..files.reading import TimeUnit, parse_zone
from ..lang.grammar import parse_duration
from ..model.instant import SECOND
from ..network.overlay.connection.address import parse_address
from ..network.overlay.connection.handshake import read_token
from .api.access import ROLES, User, is_digest
from .api.guard import RequestLimits
from .feeds.mapping import Pattern, Payload, Route
from .mqtt.broker import HEARTBEAT, MqttBroker, Will, broker_of
from .service import Settings
from .sinks.http import require_allowed, require_headers


class _ConfigPart(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    pass


class MapPart(_ConfigPart):
    """``[[mqtt.map]]``: a rule that converts messages of matching channels to readings."""

    pattern: str = msgspec.field(name="from")
    topic: str | None = None
    payload: Payload = "json"
    fields: dict[str, str] = {}
    columns: list[str] = []
    items: str | None = None
    time_unit: TimeUnit | None = None
    qos: Literal[0, 1, 2] = 1
    time_zone: str | None = None

    def route(self) -> Route:
        """Return the rule as a ``Route``, which converts messages."""
        return Route(
            Pattern(self.pattern), self.topic, self.payload, self.fields, tuple(self.columns), self.items,
            "ms" if self.payload == "sparkplug" else self.time_unit, self.qos,
            None if self.time_zone is None else parse_zone(self.time_zone),
        )  # fmt: skip


class WillPart(_ConfigPart):
    """``will``: the channel on which the broker publishes whether the service is connected."""

    topic: str
    gone: str = "gone"
    here: str = "here"


class MqttPart(_ConfigPart):
    """``[[mqtt]]``: an MQTT broker to read from and to publish notifications to."""

    url: str
    client: str = "holdfast"
    user: str | None = None
    password_file: str | None = None
    version: Literal[3, 5] = 5
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    share: str | None = None
    will: WillPart | None = None
    heartbeat: str = HEARTBEAT
    map: list[MapPart] = []
    events: str | None = None
    state: str | None = None

    def broker(self, folder: Path) -> MqttBroker:
        """Return the address and credentials of the broker. Files are searched in ``folder``."""
        known = broker_of(self.url)
        return MqttBroker(
            known.host, known.port, known.tls, self.client, self.user or known.user,
            known.password if self.password_file is None else _secret(folder / self.password_file),
            self.version, _beside(folder, self.ca), _beside(folder, self.certificate),
            _beside(folder, self.key), self.share,
            None if self.will is None else Will(self.will.topic, self.will.gone, self.will.here),
            self.heartbeat,
        )  # fmt: skip


class OverlayPart(_ConfigPart):
    """``[[overlay]]``: a ``holdfast broker`` to read events from."""

    connect: str
    token_file: str | None = None

    def token(self, folder: Path) -> bytes | None:
        return None if self.token_file is None else read_token(folder / self.token_file)


class DdsPart(_ConfigPart):
    """``[[dds]]``: a DDS domain to join, and the network interface to use."""

    domain: int = 0
    interface: str = "lo"


class WebhookPart(_ConfigPart):
    """``[[webhook]]``: a URL to which notifications are posted."""

    name: str
    url: str
    secret_file: str | None = None
    headers: dict[str, str] = {}


class AlertmanagerPart(_ConfigPart):
    """``[[alertmanager]]``: a Prometheus Alertmanager that receives active conditions as alerts."""

    name: str
    url: str
    labels: dict[str, str] = {}


class ParquetPart(_ConfigPart):
    """``[[parquet]]``: a folder to which notifications are written as Parquet files."""

    name: str
    folder: str


class UserPart(_ConfigPart):
    """``[[user]]``: a user with the digest of a token."""

    name: str
    role: str
    token: str


class KeepPart(_ConfigPart):
    """``[keep]``: how long and how much data to retain, and how often to take snapshots and seal segments."""

    age: str | None = None
    size: str | None = None
    idle: str = "5 s"
    snapshot: str = "30 s"
    seal: str = "10 min"


class LimitsPart(_ConfigPart):
    """``[limits]``: limits for one request and one address."""

    body: str = "8 MB"
    decoded: str = "64 MB"
    seconds: float = 30.0
    requests: int = 200
    failures: int = 10


class Config(_ConfigPart):
    """All settings of ``serve.toml``."""

    listen: str | None = None
    hosts: list[str] = []
    certificate: str | None = None
    key: str | None = None
    edit: bool = True
    files: str | None = None
    allowed_hosts: list[str] = []
    keep: KeepPart = msgspec.field(default_factory=KeepPart)
    limits: LimitsPart = msgspec.field(default_factory=LimitsPart)
    user: list[UserPart] = []
    mqtt: list[MqttPart] = []
    overlay: list[OverlayPart] = []
    dds: list[DdsPart] = []
    webhook: list[WebhookPart] = []
    alertmanager: list[AlertmanagerPart] = []
    parquet: list[ParquetPart] = []


def load(path: Path) -> Config:
    """Load and check a configuration file. Raises ``UsageError`` with the line of the first error."""
    try:
        text = path.read_text(encoding="utf-8")
        return parse(text, str(path))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text") from error


def parse(text: str, file: str | None = None) -> Config:
    """Parse and check the text of a configuration. ``file`` is its name in error messages."""
    try:
        config = msgspec.convert(tomllib.loads(text), Config)
    except tomllib.TOMLDecodeError as error:
        raise _error_at(str(error), _syntax_place(str(error)), text, file) from None
    except msgspec.ValidationError as error:
        message, path = _reason(str(error))
        raise _error_at(message, place(text, path), text, file) from None
    for path, fault in _faults(config):
        raise _error_at(fault, place(text, path), text, file)
    return config


def _error_at(message: str, at: Place | None, text: str, file: str | None) -> DefinitionError:
    return DefinitionError(message, at, text=text, file=file or "serve.toml")


def _syntax_place(message: str) -> Place | None:
    found = re.search(r"at line (\d+), column (\d+)", message)
    return Place(int(found[1]), int(found[2])) if found else None


def _reason(message: str) -> tuple[str, str]:
    """Split an error of msgspec into a message and the path of the setting."""
    text, _, path = message.partition(" - at `$")
    path = path.rstrip("`").lstrip(".")
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", text):
        return f"there is no setting '{unknown[1]}' here", ".".join(filter(None, (path, unknown[1])))
    if missing := re.fullmatch(r"Object missing required field `(.*)`", text):
        return f"'{missing[1]}' is missing", path
    return text[:1].lower() + text[1:], path


def place(text: str, path: str) -> Place | None:
    """Return the place of a setting such as ``mqtt[0].map[1].qos`` in a TOML text.

    A setting that the text does not contain has the place of its table. Returns ``None`` if that is missing
    too.
    """
    wanted = path
    lines = dict(_paths(text))
    while wanted:
        if wanted in lines:
            return lines[wanted]
        wanted = re.sub(r"(\[\d+\]|\.?[^.\[\]]+)$", "", wanted)
    return None


def _paths(text: str) -> Iterator[tuple[str, Place]]:
    """Yield the path and the place of every table, and of every key at the start of a line."""
    table, counts = "", dict[str, int]()
    for number, line in enumerate(text.splitlines(), 1):
        if head := re.match(r"\s*(\[\[?)\s*([\w.\-]+)\s*\]", line):
            table = _table(head[2], head[1] == "[[", counts)
            yield table, Place(number, line.index("[") + 1, len(line.strip()))
        elif key := re.match(r"\s*([\w\-]+)\s*=", line):
            yield ".".join(filter(None, (table, key[1]))), Place(number, key.start(1) + 1, len(key[1]))


def _table(name: str, is_list: bool, counts: dict[str, int]) -> str:
    """Return the full path of a table. All parts but the last refer to the latest element of each list."""
    path = ""
    parts = name.split(".")
    for i, part in enumerate(parts):
        path = f"{path}.{part}" if path else part
        if is_list and i == len(parts) - 1:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = f"{path}[{counts[path]}]"
    return path


# --- what types do not say ----------------------------------------------------------------------------------

T = TypeVar("T")


def _faults(config: Config) -> Iterator[tuple[str, str]]:
    """Yield the errors that types do not express, each as the path of the setting and the message."""
    for path, check in _checks(config):
        try:
            check()
        except (HoldfastError, ValueError) as error:
            message = error.message if isinstance(error, DefinitionError) else str(error)
            yield path, message


def _checks(config: Config) -> Iterator[tuple[str, Any]]:
    keep = config.keep
    for name in ("age", "idle", "snapshot", "seal"):
        if (value := getattr(keep, name)) is not None:
            yield f"keep.{name}", lambda value=value: parse_duration(value)
    for path, size in (
        *((f"limits.{name}", getattr(config.limits, name)) for name in ("body", "decoded")),
        ("keep.size", keep.size),
    ):
        if size is not None:
            yield path, lambda size=size: bytes_of(size)
    for i, user in enumerate(config.user):
        yield f"user[{i}].role", lambda user=user: _require_role(user.role)
        yield f"user[{i}].token", lambda user=user: _require_digest(user.token)
    yield from _brokers(config)
    for i, hook in enumerate(config.webhook):
        yield f"webhook[{i}].url", lambda hook=hook: require_allowed(hook.url, config.allowed_hosts)
        yield f"webhook[{i}].headers", lambda hook=hook: require_headers(hook.headers)
    for i, manager in enumerate(config.alertmanager):
        yield f"alertmanager[{i}].url", lambda one=manager: require_allowed(one.url, config.allowed_hosts)
    yield from _unique_names(config)


def _brokers(config: Config) -> Iterator[tuple[str, Any]]:
    for i, broker in enumerate(config.mqtt):
        yield f"mqtt[{i}].url", lambda broker=broker: broker_of(broker.url)
        yield f"mqtt[{i}].heartbeat", lambda broker=broker: _require_channel(broker.heartbeat)
        for j, part in enumerate(broker.map):
            yield f"mqtt[{i}].map[{j}].from", lambda part=part: Pattern(part.pattern)
            yield f"mqtt[{i}].map[{j}].time_zone", lambda part=part: parse_zone(part.time_zone or "UTC")
    for i, member in enumerate(config.dds):
        yield f"dds[{i}].domain", lambda member=member: _require_domain(member.domain)
        yield f"dds[{i}].interface", lambda member=member: _require_interface(member.interface)
    for i, overlay in enumerate(config.overlay):
        yield f"overlay[{i}].connect", lambda one=overlay: parse_address(one.connect, "connect")


def _unique_names(config: Config) -> Iterator[tuple[str, Any]]:
    seen: set[str] = set()
    for kind in ("webhook", "alertmanager", "parquet"):
        for i, one in enumerate(getattr(config, kind)):
            if one.name in seen:
                yield f"{kind}[{i}].name", lambda one=one: _refuse(f"two sinks are named '{one.name}'")
            seen.add(one.name)


def _refuse(message: str) -> None:
    raise UsageError(message)


def _require_domain(domain: int) -> None:
    if not 0 <= domain <= 232:
        raise UsageError("domains of DDS have numbers from 0 to 232")


def _require_channel(channel: str) -> None:
    if "+" in channel or "#" in channel:
        raise UsageError("heartbeats are published to one topic of MQTT: + and # mean several")


def _require_interface(interface: str) -> None:
    if not re.fullmatch(r"[\w.:@-]+", interface):
        raise UsageError(f"'{interface}' is no name of a network interface, such as lo or eth0")


def _require_role(role: str) -> None:
    if role not in ROLES:
        raise UsageError(f"there is no role '{role}'; there is {', '.join(ROLES)}")


def _require_digest(token: str) -> None:
    if not is_digest(token):
        raise UsageError("a token stands here as its digest; make both with: holdfast serve --new-token NAME")


_SIZES: Mapping[str, int] = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def bytes_of(text: str) -> int:
    """Parse a size such as ``20 GB`` and return it in bytes.

    >>> bytes_of("20 GB"), bytes_of("512 kB")
    (20000000000, 512000)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kMGT]?B)\s*", text)
    if found is None:
        raise UsageError(f"'{text}' is no size; write it like 20 GB")
    return int(float(found[1]) * _SIZES[found[2]])


def _beside(folder: Path, name: str | None) -> Path | None:
    return None if name is None else folder / name


def _secret(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error


def secret_of(part: WebhookPart, folder: Path) -> bytes | None:
    """Return the secret that signs a webhook's messages, or ``None`` if it has none."""
    return None if part.secret_file is None else _secret(folder / part.secret_file).encode()


def settings_of(config: Config) -> Settings:
    """Return the settings of a service from its configuration."""
    keep = config.keep
    return Settings(
        idle=parse_duration(keep.idle),
        snapshot_every=parse_duration(keep.snapshot) / SECOND,
        seal_every=parse_duration(keep.seal) / SECOND,
        keep_seconds=None if keep.age is None else parse_duration(keep.age) / SECOND,
        keep_bytes=None if keep.size is None else bytes_of(keep.size),
    )


def limits_of(config: Config) -> RequestLimits:
    """Return the limits of requests from a configuration."""
    limits = config.limits
    return RequestLimits(
        bytes_of(limits.body), bytes_of(limits.decoded), limits.seconds, limits.requests, limits.failures
    )


def users_of(config: Config) -> tuple[User, ...]:
    return tuple(User(user.name, user.role, user.token) for user in config.user)
