"""Members of a group that leave Permit together, some of which need volumes or devices before they can be bound.

None of them is bound before all are ready. If one fails, none is: a gang is not torn by a volume that cannot be had.
"""

import asyncio
from collections.abc import Iterable

from spinney.kube.keys import Key


class JointBind:
    """Who is still awaited. Mutable; its verdict is settled once."""

    def __init__(self, members: Iterable[Key]) -> None:
        self._awaited = set(members)
        self._verdict: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def ready(self, member: Key) -> None:
        """Note that a member has what it needs; the last one lets all go."""
        self._awaited.discard(member)
        if not self._awaited:
            self._settle("")

    def fail(self, reason: str) -> None:
        """Note that a member will not go; no other one will, unless all were let go before."""
        self._settle(reason)

    async def verdict(self) -> str:
        """Wait for all members; return why they may not go, or the empty string."""
        return await asyncio.shield(self._verdict)

    def _settle(self, verdict: str) -> None:
        if not self._verdict.done():
            self._verdict.set_result(verdict)
