"""What an action is."""

from typing import Protocol

from spinney.scheduler.framework.session import Session


class Action(Protocol):
    """Something a cycle does: look at a session and commit statements. Holds no state between cycles."""

    def execute(self, session: Session) -> None:
        """Act on ``session``."""
        ...
