"""Names of messages in XML, in accounts and in traces."""

from __future__ import annotations

import msgspec


def wire_name(message: msgspec.Struct | type[msgspec.Struct]) -> str:
    """Return the capitalized wire tag of a message or of its class.

    Names that users see are derived from the tag, so that a class can be renamed.
    """
    return str(message.__struct_config__.tag).capitalize()
