"""What every test of the operator has: logs that cost next to nothing."""

import pytest
import structlog


@pytest.fixture(autouse=True)
def _plain_tracebacks() -> None:
    """Print errors as Python does: with all local variables each takes seconds, and retries a test's whole time."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False),
            structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
        ]
    )
