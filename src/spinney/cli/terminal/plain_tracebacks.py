"""structlog without rich.

Where rich is installed, structlog loads it, and a highlighter with it, for tracebacks that show the values of
variables. Ours never do (:mod:`spinney.cli.terminal.logs`), and loading takes a tenth of a process's start.
"""

import sys

_RICH = "rich"


def load_structlog() -> None:
    """Have structlog loaded as where rich is not installed; later imports of rich find it."""
    if "structlog" in sys.modules or _RICH in sys.modules:
        return
    sys.modules[_RICH] = None  # type: ignore[assignment]  # how Python is told that there is no such module
    try:
        import structlog  # noqa: F401, PLC0415
    finally:
        del sys.modules[_RICH]
