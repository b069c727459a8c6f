"""The text of a dump. Only the part that is being scanned is in memory."""

from __future__ import annotations

import codecs
import gzip
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from app.plugins.woocommerce.importer.tables import SourceError

CHUNK = 1 << 20
"""Number of bytes of a read. For a longer row, the size doubles with each read."""

MAX_ROW = 1 << 28
"""Maximum length of a row in bytes. A longer row means that a quote in the dump is not closed."""

HEAD = 1 << 16
"""Number of characters required to recognize the beginning of a statement."""

_ENDS = 200
"""Number of characters to keep from the beginning and the end of a file."""

_GZIP = b"\x1f\x8b"
_OTHERS = {
    b"\x28\xb5\x2f\xfd": "is compressed with zstd. Decompress it, or compress it with gzip.",
    b"BZh": "is compressed with bzip2. Decompress it, or compress it with gzip.",
    b"\xfd7zXZ\x00": "is compressed with xz. Decompress it, or compress it with gzip.",
    b"PK\x03\x04": "is a ZIP archive. Unpack it first.",
    b"\xff\xfe": "is UTF-16, which PowerShell writes. Create the dump with --result-file=FILE.",
    b"\xfe\xff": "is UTF-16. Create the dump again, in UTF-8.",
}
"""Error messages for files in other formats, by their first bytes."""

_PROGRAM = re.compile(r"-- (?:MySQL|MariaDB) dump ")
_COMPLETED = "-- Dump completed"


@contextmanager
def opened(path: Path, progress: Callable[[int], None]) -> Iterator[DumpText]:
    """Open a dump, compressed with gzip or not.

    Args:
        progress: called with the number of bytes of the file that have been read.

    Raises:
        SourceError: the file has another form, or its compressed data is cut off.
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        start = file.read(8)
        file.seek(0)
        for magic, what in _OTHERS.items():
            if start.startswith(magic):
                raise SourceError(f"{path} {what}")
        is_compressed = start.startswith(_GZIP)
        stream = cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if is_compressed else file
        try:
            yield DumpText(stream, lambda: progress(file.tell()))
        except (EOFError, gzip.BadGzipFile) as error:
            raise SourceError(f"{path} is not a complete gzip file.") from error


class DumpText:
    """A sliding window on the text of a dump.

    Bytes that are not valid UTF-8 are lone surrogates ("surrogateescape").

    Args:
        progress: called after each read.

    Attributes:
        data: the text in the window.
        position: the position in the window. The text before it has been processed.
        is_complete: whether the end of the file is in the window.
    """

    def __init__(self, stream: IO[bytes], progress: Callable[[], None]) -> None:
        self._stream = stream
        self._progress = progress
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")
        self._first = self._last = ""
        self.data = ""
        self.position = 0
        self.is_complete = False

    def have(self, number: int) -> None:
        """Read until a number of characters follow the position, or until the end of the file."""
        while len(self.data) - self.position < number and self.read():
            pass

    def read(self) -> bool:
        """Read more and drop the processed text. Returns False at the end of the file.

        Raises:
            SourceError: the unprocessed text is longer than any row.
        """
        rest = self.data[self.position :]
        if len(rest) > MAX_ROW:
            raise self.cut_off()
        # Double the size for a long row, so that it is not scanned again after each read.
        chunk = self._stream.read(max(CHUNK, len(rest)))
        text = self._decoder.decode(chunk, final=not chunk)
        self.data, self.position = rest + text, 0
        if not chunk:
            self.is_complete = True
            return False
        if len(self._first) < _ENDS:
            self._first += text[:_ENDS]
        self._last = (self._last + text[-_ENDS:])[-_ENDS:]
        self._progress()
        return True

    @property
    def lacks_its_end(self) -> bool:
        """Whether the program that wrote the dump ends its dumps with a line that is missing."""
        return bool(_PROGRAM.search(self._first)) and _COMPLETED not in self._last

    def cut_off(self) -> SourceError:
        """Return the error for a file that ends too early or contains an unreadable row."""
        near = self.data[self.position : self.position + 60]
        return SourceError(
            "The dump ends within a statement, or contains a row that cannot be read, near: "
            f"{near!r}. Create the dump again."
        )
