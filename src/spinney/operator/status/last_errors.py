"""What an object says about its latest reconcile when that failed: ``status.lastErrors``, and an event.

Failures that pass by themselves (another writer was quicker, the API server is busy) are not told unless they go on.
What is told goes when a reconcile succeeds. The list has a field manager of its own, so a writer of the rest of a
status neither sees to it nor removes it.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any, Final, Protocol

import structlog
from msgspec.structs import replace

from spinney.api.grove_status import LastError
from spinney.api.meta import Metadata
from spinney.api.resource import Resource
from spinney.api.time import timestamp
from spinney.kube.cache import Change
from spinney.kube.client import Client
from spinney.kube.controller import Reconcile, Requeue
from spinney.kube.errors import ApiError, BadRequest, Conflict, Forbidden, Invalid, KubeError, NotFound
from spinney.kube.events import EventRecorder, reference
from spinney.kube.keys import Key
from spinney.runtime.faults import raised_later

log = structlog.get_logger()

FIELD_MANAGER: Final = "spinney-operator-errors"
FAILURES_IN_A_ROW: Final = 5
"""How often a reconcile may fail for a reason that may pass before it is told."""
TRIED_AGAIN_SECONDS: Final = 30.0
"""After which what was refused is tried again at the latest: nothing tells of a quota that was raised."""
_LASTING: Final = (BadRequest, Forbidden, Invalid)


class ReconcileFault(RuntimeError):
    """Something in the way that a person has to see to; the message says what and how."""


class _Status(Protocol):
    @property
    def last_errors(self) -> tuple[LastError, ...]: ...


class Reported(Protocol):
    """An object whose status has a list of errors."""

    @property
    def metadata(self) -> Metadata: ...

    @property
    def status(self) -> _Status: ...


class ErrorReports:
    """Tells on objects of one kind why they cannot be reconciled. Mutable: knows what failed, and what it has told."""

    def __init__(
        self, client: Client, events: EventRecorder, resource: Resource, find: Callable[[Key], Reported | None]
    ) -> None:
        self._client = client
        self._events = events
        self._resource = resource
        self._find = find
        self._failures: Counter[Key] = Counter()
        self._told: dict[Key, tuple[str, str]] = {}

    def of(self, reconcile: Reconcile) -> Reconcile:
        """Return a reconcile that also tells how it went; an :class:`ReconcileFault` is told and tried again later."""

        async def reporting(key: Key) -> Requeue | None:
            try:
                requeue = await reconcile(key)
            except ReconcileFault as obstacle:
                log.warning("reconcile is held up", kind=self._resource.kind, key=str(key), error=str(obstacle))
                await self._tell(key, obstacle)
                return Requeue()
            except raised_later() as error:
                self._failures[key] += 1
                if _lasts(error) or self._failures[key] >= FAILURES_IN_A_ROW:
                    await self._tell(key, error)
                raise
            return requeue if await self._clear(key) else Requeue()

        return reporting

    async def _tell(self, key: Key, error: BaseException) -> None:
        code, description = type(error).__name__, str(error)
        found = self._find(key)
        if found is None or self._told.get(key) == (code, description):
            return
        self._told[key] = (code, description)
        self._events.event(reference(self._resource, found), "Warning", code, description)
        now = timestamp(self._client.runtime.clock.now())
        await self._write(found, [{"code": code, "description": description, "observedAt": now}])

    async def _clear(self, key: Key) -> bool:
        """Take back what was told; says whether nothing is left to take back."""
        self._failures.pop(key, None)
        told = self._told.pop(key, None)
        found = self._find(key)
        if found is None or (told is None and not found.status.last_errors):
            return True
        return await self._write(found, [])

    async def _write(self, found: Reported, errors: list[dict[str, str]]) -> bool:
        metadata = found.metadata
        body = {
            "metadata": {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid},
            "status": {"lastErrors": errors} if errors else {},
        }
        try:
            await self._client.apply(self._resource, body, field_manager=FIELD_MANAGER, subresource="status")
        except KubeError as error:
            # It is only about telling; the object may be gone, and what failed is in the log.
            log.debug("errors not told", kind=self._resource.kind, name=metadata.name, error=str(error))
            return _is_gone(error)
        return True


def only_tells(change: Change[Any]) -> bool:
    """Tell whether nothing changed but what is told of failures: a reconcile that failed need not hear of that.

    It would try again at once, and where the API server's words differ each time, for ever.
    """
    old, new = change.old, change.new
    if old is None or new is None or old.status.last_errors == new.status.last_errors:
        return False
    before = old.metadata
    metadata = replace(new.metadata, resource_version=before.resource_version, managed_fields=before.managed_fields)
    status = replace(new.status, last_errors=old.status.last_errors)
    return bool(replace(new, metadata=metadata, status=status) == old)


def _is_gone(error: KubeError) -> bool:
    return isinstance(error, NotFound | Conflict | Invalid)


def _lasts(error: BaseException) -> bool:
    """Tell whether trying again is of no use by itself."""
    return isinstance(error, _LASTING) or not isinstance(error, KubeError | ApiError | TimeoutError)
