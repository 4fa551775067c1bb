"""Go's regular expressions for a validator that knows ECMAScript's: flags in the middle are put into groups."""

import re
from typing import Final

_TOKEN: Final = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?(?P<flags>[a-zA-Z]*-?[a-zA-Z]+)\)|[()|]|[^\\\[()|]+|.", re.S
)


def grouped_flags(pattern: str) -> str:
    """Return a pattern in which flags such as ``(?i)`` hold in a group: up to the end of the one around them."""
    if "(?" not in pattern:
        return pattern
    written: list[str] = []
    open_flags: list[list[str]] = [[]]  # of each group around, the flags set in it so far
    for token in _TOKEN.finditer(pattern):
        text, flags = token[0], token["flags"]
        if flags is not None:
            open_flags[-1].append(flags)
            written.append(f"(?{flags}:")
            continue
        if text == "(":
            open_flags.append([])
        elif text == ")" and len(open_flags) > 1:
            written.append(")" * len(open_flags.pop()))
        elif text == "|":  # each alternative has the flags
            written.append(")" * len(open_flags[-1]))
            text += "".join(f"(?{each}:" for each in open_flags[-1])
        written.append(text)
    return "".join(written) + ")" * len(open_flags[0])
