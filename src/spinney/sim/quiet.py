"""What is logged where nobody has said what should be: in a notebook or a script that uses Spinney as a library."""

import logging
import sys

import structlog


def warnings_only() -> None:
    """Log warnings only, and beside what is printed: structlog alone would print each decision into a cell.

    Who has configured structlog, before or after, gets what they configured.
    """
    if not structlog.is_configured():
        structlog.configure(
            wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
            logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),  # what it is when something is logged
        )
