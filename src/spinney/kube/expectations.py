"""Expectations: what a controller has done that its cache has not shown yet.

A reconcile that creates three pods and runs again before the watch reports them would create three more. So creations
are announced before the request and named by the uid the server gave them; deletions are announced by uid. Until the
cache has shown each of them, :meth:`Expectations.is_satisfied` is false and the reconcile waits for the event, which
wakes it. Uids, not counts: a pod that another client created at the same moment cannot be mistaken for ours.

The event of a creation may arrive before its response. While any creation is in flight the uids that appear are
remembered, so that one already seen is not waited for.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import structlog

from spinney.kube.cache import Change
from spinney.kube.keys import Key, uid_of
from spinney.runtime import Runtime

log = structlog.get_logger()

# Longer than any watch outage that is not an incident; afterwards a reconcile works with what the cache shows.
_TIMEOUT_SECONDS = 300.0


@dataclass(slots=True)
class _Owner:
    in_flight: int = 0
    created: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    since: float = 0.0

    @property
    def empty(self) -> bool:
        return not (self.in_flight or self.created or self.deleted)


class Creation:
    """A creation under way; tell it the uid as soon as the server has answered."""

    def __init__(self) -> None:
        self.uid: str | None = None

    def created(self, uid: str) -> None:
        """Name the object that was created."""
        self.uid = uid


class Expectations:
    """Creations and deletions per owner that the cache of the owned kind has yet to show. Mutable."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._owners: dict[Key, _Owner] = {}
        self._awaited: dict[str, Key] = {}
        self._in_flight = 0
        self._seen_in_flight: set[str] = set()

    @contextmanager
    def creating(self, owner: Key) -> Iterator[Creation]:
        """Announce one creation for ``owner``; a block that ends without a uid (the request failed) withdraws it."""
        expected = self._of(owner)
        expected.in_flight += 1
        self._in_flight += 1
        creation = Creation()
        try:
            yield creation
        finally:
            expected.in_flight -= 1
            self._in_flight -= 1
            if creation.uid is not None and creation.uid not in self._seen_in_flight:
                expected.created.add(creation.uid)
                self._awaited[creation.uid] = owner
            if not self._in_flight:
                self._seen_in_flight.clear()
            self._tidy(owner)

    @contextmanager
    def deleting(self, owner: Key, uid: str) -> Iterator[None]:
        """Announce the deletion of the object with ``uid``; a block that raises withdraws it."""
        self._of(owner).deleted.add(uid)
        self._awaited[uid] = owner
        try:
            yield
        except BaseException:
            self._settle(uid)
            raise

    def observe(self, change: Change[Any]) -> None:
        """Take note of a change; subscribe this to the cache of the owned kind.

        An object that is marked for deletion counts as deleted: nothing brings it back.
        """
        if change.new is None:
            self._settle(uid_of(change.old))
            return
        uid = uid_of(change.new)
        if self._in_flight:
            self._seen_in_flight.add(uid)
        owner = self._owners.get(self._awaited[uid]) if uid in self._awaited else None
        if owner is not None and (uid in owner.created or _is_terminating(change.new)):
            self._settle(uid)

    def is_satisfied(self, owner: Key) -> bool:
        """Tell whether the cache has shown everything that was done for ``owner``."""
        expected = self._owners.get(owner)
        if expected is None:
            return True
        if expected.in_flight or self._runtime.clock.monotonic() - expected.since < _TIMEOUT_SECONDS:
            return False
        log.error(
            "expectations given up: the cache never showed what was written",
            owner=str(owner),
            created=sorted(expected.created),
            deleted=sorted(expected.deleted),
        )
        self.forget(owner)
        return True

    def forget(self, owner: Key) -> None:
        """Drop what is expected for ``owner``, because it is gone."""
        expected = self._owners.pop(owner, None)
        if expected is not None:
            for uid in expected.created | expected.deleted:
                self._awaited.pop(uid, None)

    def _of(self, owner: Key) -> _Owner:
        expected = self._owners.setdefault(owner, _Owner())
        expected.since = self._runtime.clock.monotonic()
        return expected

    def _settle(self, uid: str) -> None:
        owner = self._awaited.pop(uid, None)
        if owner is not None and (expected := self._owners.get(owner)) is not None:
            expected.created.discard(uid)
            expected.deleted.discard(uid)
            self._tidy(owner)

    def _tidy(self, owner: Key) -> None:
        if (expected := self._owners.get(owner)) is not None and expected.empty:
            del self._owners[owner]


def _is_terminating(obj: Any) -> bool:
    if isinstance(obj, dict):
        return obj["metadata"].get("deletionTimestamp") is not None
    return obj.metadata.deletion_timestamp is not None
