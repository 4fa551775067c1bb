"""Objects that are nested too deep to be decoded: API servers store ten thousand levels where a CRD has no schema.

One such object must not keep the others of its kind from being read.
"""

import re
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

_DEEPEST: Final = 200
_MARKS: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]')


def _without_depths(text: bytes) -> bytes:
    """Return JSON with ``null`` in place of what is nested too deep to be read."""
    kept: list[bytes] = []
    start = depth = 0
    for found in _MARKS.finditer(text):
        if found[0] in (b"[", b"{"):
            depth += 1
            if depth == _DEEPEST + 1:
                kept.append(text[start : found.start()])
        elif found[0] in (b"]", b"}"):
            if depth == _DEEPEST + 1:
                kept.append(b"null")
                start = found.end()
            depth -= 1
    return b"".join((*kept, text[start:]))


def decoded(text: bytes, decode: Callable[[bytes], T]) -> T:
    """Return what ``decode`` makes of JSON, without what is nested too deep for it."""
    try:
        return decode(text)
    except RecursionError:
        return decode(_without_depths(text))
