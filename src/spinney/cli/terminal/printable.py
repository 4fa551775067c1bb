"""Text that does nothing to a terminal but be read.

Names and messages come from files and clusters of others. Control characters in them (which move the cursor, rename the
window, fill the clipboard or turn the direction of writing) are shown, not sent.
"""

import re
from typing import Final

_UNPRINTABLE: Final = re.compile(
    r"(\x1b\[(?:0|3[0-7])m)"  # how a word is coloured here, which hides nothing
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]"
)


def printable(text: str) -> str:
    """Return a text with its control characters written out, as JSON writes them."""
    return _UNPRINTABLE.sub(lambda found: found[1] or f"\\u{ord(found[0]):04x}", text)
