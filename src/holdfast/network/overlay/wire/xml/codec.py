"""The XML codec of one connection."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any, get_args
from xml.etree.ElementTree import Element, SubElement, tostring

import msgspec

from .....errors import HoldfastError
from ....protocols.cbps.message import Bundle, BundleKey, CbpsMessage, Kind, Registration
from ....protocols.wire_name import wire_name
from ..control import Control, Controls
from ..fault import WireFault
from ..frame import Codec
from .bundle import BUNDLES, bundle_element, read_bundle
from .content import add_value, attribute, put, require_attribute, values_in
from .markup import Elements

KINDS: Mapping[str, Kind] = {
    "Advertisement": "advertisement",
    "Subscription": "subscription",
    "Notification": "notification",
    "RoutingSlip": "slip",
    "ActiveSubscription": "active subscription",
    "MessageContext": "context",
    "Payload": "payload",
}
_TAGS = {kind: tag for tag, kind in KINDS.items()}
_CONTROLS: Mapping[str, type[Control]] = {wire_name(kind): kind for kind in get_args(Controls)}
_MESSAGES = [kind for kind in get_args(CbpsMessage) if kind not in (Bundle, Registration)]
_OTHERS: Mapping[str, type[Any]] = {wire_name(kind): kind for kind in _MESSAGES}


class XmlCodec(Codec):
    """The XML codec of one connection. A bundle without a key, as in the thesis, gets a new key."""

    language = "xml"

    def __init__(self, max_frame: int) -> None:
        super().__init__(max_frame)
        self._elements = Elements(max_frame)
        self._origin, self._numbers = f"xml-{secrets.token_hex(8)}", count(1)

    def opening(self) -> bytes:
        return b""

    def receive(self, piece: bytes | memoryview) -> Iterator[Any]:
        for element in self._elements.receive(piece):
            try:
                message = read(element, lambda: BundleKey(self._origin, next(self._numbers)))
            except WireFault:
                raise
            except (HoldfastError, msgspec.MsgspecError, ValueError, RecursionError) as error:
                raise WireFault(f"<{element.tag}>: {error}") from error
            if message is not None:
                yield message

    def encode(self, message: Any) -> bytes:
        data = tostring(to_element(message))
        self.require(data)
        return data


def to_element(message: Any) -> Element:
    """Return a control or a message as an element."""
    match message:
        case Bundle():
            return bundle_element(message)
        case Registration():
            return _registration_element(message)
        case Control():
            return _control_element(message)
    element = Element(wire_name(message))
    put(element, "json", json.dumps(msgspec.to_builtins(message), ensure_ascii=False, separators=(",", ":")))
    return element


def read(element: Element, key: Callable[[], BundleKey]) -> Any:
    """Return the control or message of an element; ``None`` if it is unknown.  [B50]"""
    tag = element.tag
    if tag in BUNDLES:
        return read_bundle(element, key)
    if tag == "ISCAConfig":
        found = element.find("Registration")
        return None if found is None else _registration(found)
    if tag in _CONTROLS:
        return _control(_CONTROLS[tag], element)
    if tag in _OTHERS:
        return msgspec.convert(json.loads(attribute(element, "json") or ""), _OTHERS[tag])
    return None


def _registration_element(it: Registration) -> Element:
    root = Element("ISCAConfig")
    element = SubElement(root, "Registration")
    for name, flag in (("request", it.request), ("reply", it.reply)):
        if flag:
            element.set(name, "true")
    for kind in it.accepts:
        SubElement(element, _TAGS[kind])
    return root


def _registration(element: Element) -> Registration:
    """Parse a registration. Any flag other than ``true`` is false."""
    kinds = tuple(dict.fromkeys(KINDS[child.tag] for child in element if child.tag in KINDS))
    return Registration(kinds, element.get("request") == "true", element.get("reply") == "true")


def _control_element(it: Control) -> Element:
    """Return a control as an element: fields as attributes, bytes in hex, counters as values."""
    element = Element(wire_name(it))
    for name in it.__struct_fields__:
        match getattr(it, name):
            case bytes(raw):
                element.set(name, raw.hex())
            case bool(flag):
                element.set(name, "true" if flag else "false")
            case int(number):
                element.set(name, str(number))
            case dict(counters):
                for counted, value in counters.items():
                    add_value(element, counted, value)
            case text:
                put(element, name, text)
    return element


def _control(kind: type[Control], element: Element) -> Control:
    fields = [_field(field, element) for field in msgspec.structs.fields(kind)]
    return msgspec.convert([kind.__struct_config__.tag, *fields], kind)


def _field(field: msgspec.structs.FieldInfo, element: Element) -> Any:
    """Return the value of a control's field from its attribute."""
    if field.name == "counters":
        return values_in(element)
    text = require_attribute(element, field.name) if field.required else attribute(element, field.name)
    if text is None:
        return field.default
    if field.type is bool:
        return text == "true"
    if field.type is int:
        return int(text)
    return bytes.fromhex(text) if field.type is bytes else text
