"""Names that a package exports and imports only when they are first asked for: what is not used need not be loaded.

Such a package has its imports under ``if TYPE_CHECKING``. There type checkers read them, and so does this.
"""

import ast
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


def exported(package: str, file: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package in a file: it makes the import that is declared there for a name."""

    @cache
    def homes() -> dict[str, str]:
        declared = [each for each in ast.walk(ast.parse(Path(file).read_bytes())) if isinstance(each, ast.ImportFrom)]
        return {name.name: each.module for each in declared if each.module for name in each.names}

    def get(name: str) -> Any:
        if name not in homes():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes()[name]), name)

    return get
