"""What plugins get wrong when they are asked: they raise, or answer with something that is no answer."""

from collections.abc import Callable
from typing import Any, Final

from spinney.runtime.faults import printable, raised, told

_SHOWN: Final = 60
_ADDRESS: Final = " at 0x"


class InvalidAnswer(TypeError):
    """A plugin answered with something that is no answer."""

    def __init__(self, found: str, expected: str) -> None:
        super().__init__(f"returned {found}, expected {expected}")


def shown(answer: object) -> str:
    """Return an answer as a message shows it: its value if that is short, and its type.

    One that shows only where it is in memory is told by its type: else each cycle would have another message.
    """
    if answer is None:
        return "None"
    kind = type(answer).__name__
    try:
        text = printable(repr(answer))
    except raised():
        return kind
    return f"{text} ({kind})" if len(text) <= _SHOWN and _ADDRESS not in text else kind


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
