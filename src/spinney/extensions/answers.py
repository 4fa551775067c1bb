"""What plugins get wrong when they are asked: they raise, or answer with something that is no answer."""

from collections.abc import Callable
from typing import Any, Final

from spinney.runtime.faults import RAISED as RAISED  # noqa: PLC0414 - what plugins raise is asked for here

_SHOWN: Final = 60
_TOLD: Final = 1000
"""How much is told of what an error says: all of it may be a whole page, and more than a status can hold."""


class InvalidAnswer(TypeError):
    """A plugin answered with something that is no answer."""

    def __init__(self, found: str, expected: str) -> None:
        super().__init__(f"returned {found}, expected {expected}")


def shown(answer: object) -> str:
    """Return an answer as a message shows it: its value if that is short, and its type."""
    if answer is None:
        return "None"
    kind = type(answer).__name__
    try:
        text = repr(answer)
    except RAISED:
        return kind
    return f"{text} ({kind})" if len(text) <= _SHOWN else kind


def instance_of(kind: type | tuple[type, ...], expected: str) -> Callable[[Any], Any]:
    """Return what reads an answer that must be of a kind."""

    def read(answer: Any) -> Any:
        if not isinstance(answer, kind):
            raise InvalidAnswer(shown(answer), expected)
        return answer

    return read


def fault_of(error: BaseException) -> str:
    """Return what a plugin did wrong, as messages go on after its name."""
    return str(error) if isinstance(error, InvalidAnswer) else f"raised {told(error)}"


def told(error: BaseException) -> str:
    """Return an error of others as a message tells it: its type and what it says, if that can be had."""
    kind = type(error).__name__
    try:
        text = str(error)
    except RAISED as another:
        return f"{kind} (its text cannot be had: {type(another).__name__})"
    return f"{kind}: {text if len(text) <= _TOLD else text[:_TOLD] + ' ...'}"
