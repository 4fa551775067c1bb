"""The backend that docs/backends.md begins with, held to the contract as the page says."""

import re
from pathlib import Path
from types import ModuleType

from spinney.testing.backends import BackendContract

_PAGE = Path(__file__).parents[2] / "docs" / "backends.md"


def _of_the_page() -> ModuleType:
    """Return the first example of the page, as a module."""
    example = re.search(r"```python\n(.*?)```", _PAGE.read_text(), re.DOTALL)
    assert example is not None
    module = ModuleType("backend_of_the_page")
    exec(example[1], vars(module))
    return module


class TestBackendOfThePage(BackendContract):
    """All that is asked of a backend."""

    backend = _of_the_page().MyScheduler
