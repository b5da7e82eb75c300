"""The names of messages in XML, in accounts and in traces."""

from __future__ import annotations

import msgspec


def wire_name(message: msgspec.Struct | type[msgspec.Struct]) -> str:
    """Return the capitalized wire tag of a message or of its class.

    The names that users see derive from the tag, so that a developer can rename a class.
    """
    return str(message.__struct_config__.tag).capitalize()
