"""Mutes as text."""

from __future__ import annotations

from ...model.instant import show_duration
from ..literal import write_text
from ..ops import Beyond, During, Mute, While
from ..show import label, show_expression


def show_mute(mute: Mute) -> str:
    """``mute Child while Parent``."""
    wait = f" ordered {show_duration(mute.wait)}" if mute.wait else ""
    return f"mute {label(mute.target)} {_cause(mute.cause)}{wait}"


def _cause(cause: During | While | Beyond) -> str:
    match cause:
        case During(spans, zone):
            return f"during {write_text(spans)}" + ("" if zone is None else f" in {write_text(zone)}")
        case While(parent):
            return f"while {label(parent)}"
        case Beyond(most, within):
            siblings = f" within {', '.join(map(label, within))}" if within else ""
            return f"beyond {show_expression(most)}{siblings}"
