"""A list that is lent: it shows what is in the list by then, and cannot be written to."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar, overload

T = TypeVar("T")


class LookedAt(Sequence[T], Generic[T]):
    """A list to look at; each element is shown as ``show`` returns it."""

    __slots__ = ("_list", "_show")

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

    def __repr__(self) -> str:
        return repr(list(self))
