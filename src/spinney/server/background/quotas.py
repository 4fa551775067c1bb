"""Keeping the status of quotas: it says what the book says."""

from spinney.api.keys import Key
from spinney.runtime import Clock
from spinney.server.background.worker import KeyQueue
from spinney.server.quota.amounts import with_usage
from spinney.server.quota.book import QUOTAS, Book
from spinney.server.store import Store


class QuotaKeeping:
    """Writes what is used of each quota; mutable, runs as one task. Owns the book, which admission reads."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._notes: KeyQueue[Key] = KeyQueue()
        self.book = Book(store, self._notes.note)

    async def run(self) -> None:
        """Keep until cancelled."""
        await self._notes.work_off(self._settle, self._clock)

    def _settle(self, key: Key) -> None:
        account, found = self.book.account(key), self._store.get(QUOTAS, key)
        if account is None or found is None or found.deleting:
            return
        updated = with_usage(found.decode(), account.used)
        if updated is not None:
            self._store.write(QUOTAS, key, updated)
