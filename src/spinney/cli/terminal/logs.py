"""How much a command says on standard error, and in which form."""

import io
import logging
import os
import sys
from typing import TextIO

import structlog

from spinney.cli.terminal.abilities import takes_commands
from spinney.cli.terminal.printable import printable

_LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)


def log_to_stderr(verbosity: int = 0, *, json: bool = False) -> None:
    """Log warnings and worse to standard error; ``verbosity`` 1 adds what happens, 2 everything."""
    log_from(_LEVELS[min(verbosity, len(_LEVELS) - 1)], json=json)


def log_from(level: int, *, json: bool = False) -> None:
    """Log what is of a level or above to standard error.

    ``json`` writes one JSON object per line, for log collectors; otherwise lines are for people.
    """
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if json
        else structlog.dev.ConsoleRenderer(
            colors=takes_commands(sys.stderr) and not os.environ.get("NO_COLOR"),
            exception_formatter=_traceback,
        )
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info if json else _readable,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
    )


def _readable(
    _logger: structlog.typing.WrappedLogger, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Show control characters of names and messages instead of sending them to a terminal."""
    return {key: printable(value) if isinstance(value, str) else value for key, value in event.items()}


def _traceback(stream: TextIO, error: structlog.typing.ExcInfo) -> None:
    """Write a traceback without the values of local variables, which structlog's own default has."""
    text = io.StringIO()
    structlog.dev.plain_traceback(text, error)
    stream.write(printable(text.getvalue()))
