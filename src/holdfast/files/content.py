"""The uncompressed bytes of a text file. The content is checked against the suffix of the file name."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import pyarrow as pa

from ..errors import InputError
from .find import InputFile

_HEAD = 4096
_MAGIC = {
    b"PAR1": ("a Parquet file", ".parquet"),
    b"\x1f\x8b": ("compressed with gzip", ".gz at the end"),
    b"PK\x03\x04": ("a zip archive (or a spreadsheet)", None),
    b"\x28\xb5\x2f\xfd": ("compressed with zstd", None),
    b"BZh": ("compressed with bzip2", None),
    b"\xff\xfe": ("UTF-16 text", None),
    b"\xfe\xff": ("UTF-16 text", None),
    b"ARROW1": ("an Arrow file", None),
}


class ByteStream:
    """Reads a file's uncompressed bytes from first to last.

    It counts how much of the file on disk was read, and whether a quoted field was not closed.
    """

    def __init__(self, file: InputFile) -> None:
        self.path, self.compressed = file.path, file.compressed
        self.fault: InputError | None = None
        self.closed = False
        self._count = 0
        self._quotes = 0
        self._before_quote = b"\n"  # the byte before the last quote
        self._last = b"\n"
        try:
            self._raw = pa.OSFile(file.path)
        except OSError as error:
            raise InputError(f"{file.path}: cannot be opened: {error}") from None
        self._stream = pa.CompressedInputStream(self._raw, "gzip") if file.compressed else self._raw
        self._first = self._read(_HEAD)
        self._check(self._first)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._raw.close()

    def readable(self) -> bool:
        return True

    def read(self, size: int) -> bytes:
        """Return the next ``size`` bytes; fewer only at the end of the file."""
        parts, missing = [self._first[:size]], size - len(self._first)
        self._first = self._first[size:]
        while missing > 0 and (part := self._read(missing)):
            parts.append(part)
            missing -= len(part)
        block = b"".join(parts)
        self._watch(block)
        return block

    @property
    def position(self) -> int:
        """The number of bytes of the file on disk that have been read."""
        return 0 if self.closed else int(self._raw.tell())

    @property
    def left_open(self) -> bool:
        """Whether the last quote opened a field that was not closed."""
        return self._quotes % 2 == 1 and self._before_quote in (b",", b"\n")

    def _watch(self, block: bytes) -> None:
        at = block.rfind(b'"')
        if at >= 0:
            self._quotes += block.count(b'"')
            self._before_quote = block[at - 1 : at] if at else self._last
        self._last = block[-1:] or self._last

    def _read(self, size: int) -> bytes:
        try:
            block = bytes(self._stream.read(size))
        except OSError as error:
            self.fault = InputError(self._torn(error))
            raise self.fault from None
        self._count += len(block)
        return block

    def _torn(self, error: OSError) -> str:
        if not self.compressed:
            return f"{self.path}: cannot be read after byte {self._count:,}: {error}"
        if not self._count and "header" in str(error):
            return f"{self.path}: is not compressed with gzip, as its name says; remove .gz from the name"
        return (
            f"{self.path}: the gzip data is torn or damaged after {self._count:,} uncompressed bytes "
            f"({error}). Copy or compress the file again."
        )

    def _check(self, head: bytes) -> None:
        if self.compressed and not head and self._raw.size() == 0:
            return
        for magic, (what, suffix) in _MAGIC.items():
            if head.startswith(magic):
                do = f"rename it to end in {suffix}" if suffix and not self.compressed else "convert it first"
                raise InputError(f"{self.path}: is {what}, not text as its name says; {do}")
        if b"\x00" in head:
            raise InputError(
                f"{self.path}: holds binary data (a zero byte at {head.index(0):,}), not text as its name "
                "says; name it by its format, or convert it to UTF-8 text"
            )
