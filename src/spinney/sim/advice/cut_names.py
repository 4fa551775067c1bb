"""Names that are too long for a narrow table: cut in the middle there, and understood when they are asked about."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

_CUT: Final = "..."
"""No name of Kubernetes has these characters."""
_BEGINNING: Final = 12
_END: Final = 9


def cut(names: Iterable[str]) -> Mapping[str, str]:
    """Return how names are shown: what is long without its middle, unless two would then look the same."""
    shown = {name: _cut(name) for name in names}
    alike = Counter(shown.values())
    return {name: short if alike[short] == 1 else name for name, short in shown.items()}


def _cut(name: str) -> str:
    return name if len(name) <= _BEGINNING + len(_CUT) + _END else f"{name[:_BEGINNING]}{_CUT}{name[-_END:]}"


def is_meant(name: str, text: str) -> bool:
    """Tell whether a text is a name, or the name with its middle cut out."""
    beginning, is_cut, end = text.partition(_CUT)
    if not is_cut:
        return name == text
    return len(name) > len(beginning) + len(end) and name.startswith(beginning) and name.endswith(end)
