"""Where a predicate reads something only to tell why it refuses.

``return f"node {node.name} is full"`` refuses whatever the name of the node is. What is read between the beginning of
such a text and the return that follows it at once decides nothing, so an answer does not depend on it. The same holds
for ``raise DoesNotFit(f"...")``: whatever is raised, the node is refused.
"""

import dis
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FunctionType, MethodType
from typing import Any, Final, NamedTuple

_CALLS: Final = frozenset({"PRECALL", "CALL"})


class Reasons(NamedTuple):
    """The code of a function, and the offsets of the instructions that make the reasons it gives."""

    code: CodeType
    offsets: frozenset[int]


def reasons_of(fn: Callable[..., Any]) -> Reasons | None:
    """Return where a function makes the reasons it gives; ``None`` if it gives none, or is no plain function."""
    inner = fn.__func__ if isinstance(fn, MethodType) else fn
    if not isinstance(inner, FunctionType) or inner.__code__.co_exceptiontable:
        return None  # a function that catches what making a text raises may go on and accept
    code = inner.__code__
    found = list(dis.get_instructions(code))
    offsets = frozenset(offset for place in range(len(found)) for offset in _text(found, place))
    return Reasons(code, offsets) if offsets else None


def _text(found: Sequence[dis.Instruction], place: int) -> Iterator[int]:
    """Yield the offsets of the instructions of a text that ends at ``place`` and is returned or raised at once."""
    whole = found[place].positions
    if found[place].opname != "BUILD_STRING" or not _ends(found, place + 1) or whole is None:
        return
    begin, end = (whole.lineno, whole.col_offset), (whole.end_lineno, whole.end_col_offset)
    if None in begin or None in end:
        return
    for each in reversed(found[:place]):
        at = each.positions
        if at is None or at.lineno is None or at.col_offset is None or at.end_lineno is None:
            return
        if not begin <= (at.lineno, at.col_offset) or not (at.end_lineno, at.end_col_offset) <= end:
            return
        yield each.offset


def _ends(found: Sequence[dis.Instruction], place: int) -> bool:
    """Tell whether a function ends with what stands on top of its stack before ``place``."""
    called = False
    while place < len(found):
        following = found[place]
        if following.opname == "JUMP_FORWARD":
            place = next(number for number, each in enumerate(found) if each.offset == following.argval)
        elif following.opname in _CALLS:
            called = True
            place += 1
        else:
            return following.opname == ("RAISE_VARARGS" if called else "RETURN_VALUE")
    return False
