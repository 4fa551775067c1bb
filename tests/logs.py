"""Logs of tests: everything, to standard output, with errors as Python prints them."""

import structlog


def log_plainly() -> None:
    """Log as structlog does by default, but without local variables in tracebacks.

    To render those takes longer than many a test: a storm is mostly errors, and took fifteen times as long.
    """
    *processors, _ = structlog.get_config()["processors"]
    renderer = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*processors, renderer])
