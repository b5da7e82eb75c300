"""Time zones of frames: the zone of local times (`timestamp_ntz`), and the conversion back to them."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql.functions import expr
from pyspark.sql.types import TimestampNTZType

from ....errors import UsageError
from ....files.reading import Reading, parse_zone
from ....lang.expressions.sql import literal

_EPOCH, _EPOCH_LOCAL = "TIMESTAMP'1970-01-01 00:00:00Z'", "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
_UTC = ("UTC", "Etc/UTC", "GMT", "Z", "+00:00")


def zone_of(frame: DataFrame, reading: Reading, zone: str | None) -> Reading:
    """Return the reading with the time zone of the frame's local times, which is UTC by default."""
    if zone is None and _is_local(frame, reading):
        session = frame.sparkSession.conf.get("spark.sql.session.timeZone")
        if session not in _UTC:
            theirs = reading.theirs("time")
            raise UsageError(
                f"the column '{theirs}' has no time zone (timestamp_ntz), and the session is in {session}: "
                f"say whose clock it is of, for example zone='UTC' or zone='{session}'"
            )
    return replace(reading, zone=parse_zone(zone or "UTC"))


def instant(local: str, zone: str) -> str:
    """Return the SQL expression of the instant at which a clock in a zone shows a time.

    A time that occurs twice means its first occurrence.
    """
    there = f"convert_timezone({literal(zone)}, 'UTC', {local})"
    return f"{_EPOCH} + ({there} - {_EPOCH_LOCAL})"


def restore_zone(notifications: DataFrame, frame: DataFrame, reading: Reading) -> DataFrame:
    """Return notifications whose times have the type of the frame's times."""
    if not _is_local(frame, reading):
        return notifications
    return notifications.withColumns(
        {name: expr(_to_local(name, str(reading.zone))) for name in ("time", "since")}
    )


def _to_local(at: str, zone: str) -> str:
    return f"convert_timezone('UTC', {literal(zone)}, {_EPOCH_LOCAL} + ({at} - {_EPOCH}))"


def _is_local(frame: DataFrame, reading: Reading) -> bool:
    theirs = reading.theirs("time")
    return any(f.name == theirs and isinstance(f.dataType, TimestampNTZType) for f in frame.schema.fields)
