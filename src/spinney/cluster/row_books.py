"""What is kept per row of a node table, in books that forks share until one of them writes."""

from collections.abc import Hashable, KeysView, Mapping
from typing import Generic, Self, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class RowBooks(Generic[K, V]):
    """A dictionary for each row. Mutable; a row's is copied by the first writer after a fork."""

    def __init__(self, shared: Mapping[int, dict[K, V]] = {}) -> None:
        self._by_row = dict(shared)
        self._own: set[int] = set()

    def rows(self) -> KeysView[int]:
        return self._by_row.keys()

    def of_row(self, row: int) -> Mapping[K, V]:
        """Return the book of one row, in the order of its entries. Not to be written to."""
        return self._by_row.get(row, {})

    def drop_row(self, row: int) -> None:
        """Forget the book of a row, as of a node that is gone."""
        self._by_row.pop(row, None)
        self._own.discard(row)

    def fork(self) -> Self:
        """Return a copy that shares each row's book until either side writes."""
        self._own.clear()
        return type(self)(self._by_row)

    def _writable(self, row: int) -> dict[K, V]:
        book = self._by_row.get(row)
        if book is None or row not in self._own:
            book = self._by_row[row] = dict(book or {})
            self._own.add(row)
        return book
