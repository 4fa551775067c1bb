"""Names that a package exports and imports only when they are first asked for: what is not used need not be loaded."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def exported(package: str, names: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package; ``names`` are by the module of it that each is imported from."""
    homes = {name: module for module, exports in names.items() for name in exports}

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return get
