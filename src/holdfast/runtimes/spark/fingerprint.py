"""The fingerprint of a stream: its number of shards and the meaning of its definition.

The states of a stream are in shards by a hash of their scope, and are numbered by operator. With another
number of shards or another definition, Spark would give states to the wrong operators. So each shard stores a
fingerprint, which the first batch compares. If the caller names the checkpoint, a folder in it has the
fingerprint too. Then ``stream`` itself can refuse the checkpoint.
"""

from __future__ import annotations

from hashlib import blake2b

import msgspec
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from ...errors import UsageError
from .job import Job

_FORM = 1
"""The format of states; raise it with each change."""
_FOLDER = "holdfast"


class Fingerprint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The properties of a stream that must not change while a checkpoint is used."""

    form: int
    shards: int
    conditions: str
    """A digest of what the conditions mean, in the order of their operators."""

    def encode(self) -> bytes:
        return msgspec.json.encode(self)

    def require_same(self, found: bytes) -> None:
        """Refuse a checkpoint that another stream has written.

        ``found`` is the fingerprint in the checkpoint.
        """
        try:
            other = msgspec.json.decode(found, type=Fingerprint)
        except msgspec.DecodeError:
            other = Fingerprint(0, 0, "")
        if other.form != self.form:
            raise UsageError("this checkpoint is of another version of Holdfast: start with a new checkpoint")
        if other.conditions != self.conditions:
            raise UsageError(
                "this checkpoint belongs to another definition: run the definition that it was written with, "
                "or start with a new checkpoint (holdfast run goes on with a changed definition)"
            )
        if other.shards != self.shards:
            raise UsageError(
                f"this checkpoint was written with shards={other.shards}, and the stream has "
                f"shards={self.shards}: pass shards={other.shards}, or start with a new checkpoint"
            )


def fingerprint(job: Job, shards: int) -> Fingerprint:
    conditions = [(number, one.record.names, one.record.meanings) for number, one in job.operators.items()]
    digest = blake2b(msgspec.json.encode(conditions), digest_size=16).hexdigest()
    return Fingerprint(_FORM, shards, digest)


def claim(spark: SparkSession, checkpoint: str, own: Fingerprint) -> None:
    """Refuse the checkpoint of another stream, or write the fingerprint into an unused checkpoint.

    Spark reads and writes the file, so the checkpoint may be on any file system that Spark can reach.
    """
    place = f"{checkpoint.rstrip('/')}/{_FOLDER}"
    found = _rows(spark, "text", place)
    is_used = bool(_rows(spark, "binaryFile", f"{checkpoint.rstrip('/')}/offsets"))
    if found and is_used:
        own.require_same(found[0].encode())
    elif not is_used:
        row = spark.createDataFrame([(own.encode().decode(),)], "value string")
        row.coalesce(1).write.mode("overwrite").text(place)


def _rows(spark: SparkSession, format: str, place: str) -> list[str]:
    """Return the first column of a file's first row, or an empty list if there is no file."""
    try:
        return [str(row[0]) for row in spark.read.format(format).load(place).limit(1).collect()]
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return []
