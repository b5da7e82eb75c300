"""Files that appear when they are complete, or not at all."""

from __future__ import annotations

import os
import stat
from types import TracebackType
from typing import IO, Self

from ..errors import UsageError

SUFFIX = ".part"


class WholeFile:
    """Writes ``PATH.part`` and renames it to ``PATH`` at the end. An exception removes it.

    Until then an existing file is not changed. Devices and pipes are written directly.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._direct = _is_special(path)
        self.part = path if self._direct else path + SUFFIX
        folder = os.path.dirname(path) or "."
        if os.path.isdir(path):
            raise UsageError(f"output '{path}' is a folder; name a file in it")
        if not os.path.isdir(folder):
            raise UsageError(f"output '{path}': there is no folder '{folder}'; create it first")
        try:
            self.file: IO[bytes] = open(self.part, "wb")  # noqa: SIM115 (closed by __exit__)
        except OSError as error:
            raise UsageError(f"cannot write '{self.part}': {error.strerror}; choose another place") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.keep()
        else:
            self.discard()

    def keep(self) -> None:
        """Complete the file: rename the partial file to its final name."""
        try:
            self.file.close()
        except OSError:
            self.discard()
            raise
        if not self._direct:
            os.replace(self.part, self.path)

    def discard(self) -> None:
        """Remove the partial file. An existing file with the final name is not changed."""
        try:
            self.file.close()
        finally:
            if not self._direct and os.path.exists(self.part):
                os.remove(self.part)


def _is_special(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
