"""Times without a zone (``timestamp_ntz``): whose clock they are of, and how they come back."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql.functions import expr
from pyspark.sql.types import TimestampNTZType

from ....compilers.sql import literal
from ....errors import UsageError
from ....files.reading import Reading, parse_zone

_EPOCH, _EPOCH_LOCAL = "TIMESTAMP'1970-01-01 00:00:00Z'", "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
_UTC = ("UTC", "Etc/UTC", "GMT", "Z", "+00:00")


def zone_of(frame: DataFrame, reading: Reading, zone: str | None) -> Reading:
    """The reading with the zone of the frame's times: UTC, unless another is given."""
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
    """The instant at which a clock of the zone shows a time; of two the first."""
    there = f"convert_timezone({literal(zone)}, 'UTC', {local})"
    return f"{_EPOCH} + ({there} - {_EPOCH_LOCAL})"


def returned(told: DataFrame, frame: DataFrame, reading: Reading) -> DataFrame:
    """Notifications whose times are of the type that the frame's are."""
    if not _is_local(frame, reading):
        return told
    return told.withColumns({name: expr(_local(name, str(reading.zone))) for name in ("time", "since")})


def _local(at: str, zone: str) -> str:
    return f"convert_timezone('UTC', {literal(zone)}, {_EPOCH_LOCAL} + ({at} - {_EPOCH}))"


def _is_local(frame: DataFrame, reading: Reading) -> bool:
    theirs = reading.theirs("time")
    return any(f.name == theirs and isinstance(f.dataType, TimestampNTZType) for f in frame.schema.fields)
