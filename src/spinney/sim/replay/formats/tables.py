"""Tables in CSV files, plain or gzip, read with errors that name file, line and column."""

import csv
import gzip
import io
from collections.abc import Iterator, Mapping
from pathlib import Path


class InvalidTrace(ValueError):
    """A file that is no trace of the expected form; the text says where and why."""


def rows_of(path: Path, *columns: str) -> Iterator[Mapping[str, str]]:
    """Yield the rows of a table by column; raises :class:`InvalidTrace` if one of ``columns`` is missing."""
    with opened(path) as file:
        table = csv.DictReader(file)
        missing = [name for name in columns if name not in (table.fieldnames or ())]
        if missing:
            found = ", ".join(table.fieldnames or ()) or "nothing"
            raise InvalidTrace(f"{path}: no column {missing[0]!r}; found {found}")
        try:
            yield from table
        except (csv.Error, UnicodeDecodeError) as error:
            raise InvalidTrace(f"{path}:{table.line_num}: {error}") from error


def header_of(path: Path) -> str:
    """Return the first line of a text file; empty if it has none, or is no text."""
    try:
        with opened(path) as file:
            return file.readline().strip()
    except (OSError, UnicodeDecodeError, EOFError):
        return ""


def opened(path: Path) -> io.TextIOBase:
    """Open a text file, unpacking gzip."""
    if path.suffix == ".gz":
        return gzip.open(path, "rt", newline="")
    return path.open(newline="")


def number(row: Mapping[str, str], column: str, path: Path) -> float:
    """Return a number of a row; raises :class:`InvalidTrace`."""
    try:
        return float(row[column])
    except (KeyError, TypeError, ValueError):
        raise InvalidTrace(f"{path}: column {column!r}: found {row.get(column)!r}, expected a number") from None
