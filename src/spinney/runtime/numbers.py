"""Numbers in texts that anybody may write, such as the query of a request or an annotation."""

from typing import Final

_MOST_DIGITS: Final = 18


def whole_number_in(text: str) -> int | None:
    """Return the number that a text is, ``None`` for what is none; of thousands of digits Python reads none."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS else None
