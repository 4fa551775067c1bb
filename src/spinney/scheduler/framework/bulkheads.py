"""What keeps a failure while one gang is looked at from all others."""

from types import TracebackType
from typing import TYPE_CHECKING

from spinney.gangs.tree import GangKey
from spinney.runtime.faults import raised
from spinney.scheduler.framework.statement import Statement, UnsoundSession

if TYPE_CHECKING:
    from spinney.scheduler.framework.session import Session


class Bulkhead:
    """What :meth:`.Session.bulkhead` gives. No generator: every job passes several, and this costs a third."""

    __slots__ = ("_before", "_begun", "_doing", "_gang", "_session", "_statements")

    def __init__(self, session: "Session", statements: list[Statement], gang: GangKey, doing: str) -> None:
        self._session = session
        self._statements = statements
        self._gang = gang
        self._doing = doing

    def __enter__(self) -> None:
        session = self._session
        session.go_on()
        self._begun = len(self._statements)
        self._before, session.failures.about = session.failures.about, self._gang

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        try:
            if error is None or not isinstance(error, raised()):
                return False
            if isinstance(error, UnsoundSession):
                self._session.set_back(self._gang, self._doing, error.cause)
                return False
            self._session.set_back(self._gang, self._doing, error)
            self._discard(error)
            return True
        finally:
            self._session.failures.about = self._before
            del self._statements[self._begun :]

    def _discard(self, error: BaseException) -> None:
        """Undo what was begun for the gang."""
        try:
            for statement in reversed(self._statements[self._begun :]):
                statement.discard()
        except raised() as second:  # nor may what is left be trusted
            raise UnsoundSession(f"{self._doing} {self._gang}", second) from error
