"""A list that is lent: it shows what is in the list by then, and cannot be written to."""

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar, overload

T = TypeVar("T")


class LookedAt(Sequence[T], Generic[T]):
    """A list to look at; each element is shown as ``show`` returns it."""

    __slots__ = ("_list", "_show")
    __hash__ = None  # type: ignore[assignment] # as that of a list

    def __init__(self, found: list[T], show: Callable[[T], T] | None = None) -> None:
        self._list = found
        self._show = show

    def __len__(self) -> int:
        return len(self._list)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        show = self._show
        if isinstance(index, slice):
            return self._list[index] if show is None else list(map(show, self._list[index]))
        return self._list[index] if show is None else show(self._list[index])

    def __iter__(self) -> Iterator[T]:
        return iter(self._list) if self._show is None else map(self._show, self._list)

    def __eq__(self, other: object) -> bool:
        return self._list == (other._list if isinstance(other, LookedAt) else other)

    def __repr__(self) -> str:
        return repr(list(self))
