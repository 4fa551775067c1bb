"""Certificates for tests: an authority, and what it signs."""

from datetime import UTC, datetime

from spinney.runtime.certificates import Authority as MadeAuthority
from spinney.runtime.certificates import Pair

__all__ = ["Authority", "Pair"]


class Authority(MadeAuthority):
    """A certificate authority made for one test."""

    def __init__(self, name: str = "test authority") -> None:
        super().__init__(name, now=datetime.now(UTC))

    def server(self, *names: str) -> Pair:
        """Return a server certificate for host names and addresses."""
        return self.serving(names)
