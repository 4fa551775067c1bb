"""The files of traces, plain or gzip: one way to open them, and tables in CSV; errors name file, line and column."""

import codecs
import csv
import gzip
import io
import math
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

_GZIP: Final = b"\x1f\x8b"
_LONGEST_HEADER: Final = 65_536
"""Characters of a first line that are looked at; what is no table may have no second."""
_LATIN_1: Final = "spinney.latin-1"
_FIRST_LETTER: Final = 0xA0
"""Below it are no letters in Latin-1: what is neither UTF-8 nor that is no text."""


class InvalidTrace(ValueError):
    """A file that is no trace of the expected form; the text says where and why."""


class TableRow(dict[str, str]):
    """A row of a table by column; ``where`` names its file and line."""

    def __init__(self, values: Mapping[str, str], where: str) -> None:
        super().__init__(values)
        self.where = where

    def number(self, column: str) -> float:
        """Return the number in a column; raises :class:`InvalidTrace`."""
        return finite(self.get(column), f"{self.where}: column {column!r}")

    def whole(self, column: str) -> int:
        """Return the whole number in a column, also where it is written as 2.0; raises :class:`InvalidTrace`."""
        found = self.number(column)
        if not found.is_integer():
            raise InvalidTrace(f"{self.where}: column {column!r}: found {self[column]!r}, expected a whole number")
        return int(found)


def _from_latin_1(error: UnicodeError) -> tuple[str, int]:
    """Read a byte that is not UTF-8 as Latin-1: in logs of the archives people and places have such names."""
    if not isinstance(error, UnicodeDecodeError) or error.object[error.start] < _FIRST_LETTER:
        raise error
    return chr(error.object[error.start]), error.start + 1


codecs.register_error(_LATIN_1, _from_latin_1)


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """Open a text file, unpacking gzip; whatever cannot be read of it in the block is an :class:`InvalidTrace`."""
    try:
        with _unpacked(path) as raw:
            encoding = "utf-16" if raw.peek(2)[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"
            with io.TextIOWrapper(raw, encoding, errors=_LATIN_1, newline="") as file:
                yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InvalidTrace(f"{path}: is damaged: {error}; fetch or copy it again") from error
    except UnicodeDecodeError as error:
        raise InvalidTrace(
            f"{path}:{_line_that_is_no_text(path)}: is no text: {error.reason}; expected UTF-8 or Latin-1, plain or "
            "packed with gzip; 'iconv -f' with the encoding it has and '-t UTF-8' makes it so"
        ) from error
    except OSError as error:
        raise InvalidTrace(f"{path}: cannot be read: {error.strerror}") from error


@contextmanager
def _unpacked(path: Path) -> Iterator[io.BufferedReader | gzip.GzipFile]:
    with path.open("rb") as raw:
        packed = raw.peek(len(_GZIP)).startswith(_GZIP) or path.suffix == ".gz"
        yield gzip.GzipFile(fileobj=raw) if packed else raw


def _line_that_is_no_text(path: Path) -> int:
    """Return the number of the first line that is no text."""
    number = 0
    with _unpacked(path) as raw:
        for number, line in enumerate(raw, start=1):  # noqa: B007 - it is what is returned
            try:
                line.decode("utf-8-sig", _LATIN_1)
            except UnicodeDecodeError:
                break
    return number


def rows_of(path: Path, *columns: str) -> Iterator[TableRow]:
    """Yield the rows of a table by column; raises :class:`InvalidTrace` if one of ``columns`` is missing."""
    with opened(path) as file:
        table = csv.DictReader(file)
        try:
            missing = [name for name in columns if name not in (table.fieldnames or ())]
            if missing:
                found = ", ".join(table.fieldnames or ()) or "nothing"
                raise InvalidTrace(f"{path}: no column {missing[0]!r}; found {found}")
            for values in table:
                row = TableRow(values, f"{path}:{table.line_num}")
                absent = next((name for name in columns if row[name] is None), None)
                if absent is not None:
                    raise InvalidTrace(f"{row.where}: ends before column {absent!r}; is the file complete?")
                yield row
        except csv.Error as error:
            raise InvalidTrace(f"{path}:{table.line_num}: {error}") from error


def header_of(path: Path) -> str:
    """Return the first line of a text file; empty if it has none. Raises :class:`InvalidTrace`."""
    with opened(path) as file:
        return file.readline(_LONGEST_HEADER).strip()


def finite(text: str | None, where: str) -> float:
    """Return the number that a text is; raises :class:`InvalidTrace`, which begins with ``where``, also for nan."""
    try:
        found = float(text or "")
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise InvalidTrace(f"{where}: found {text!r}, expected a number")
    return found
