"""The scheduling queue: pods ready to be tried, pods backing off, and pods waiting for something to change.

A pod is in exactly one place:

* *active*: ordered by the profile's QueueSort; :meth:`SchedulingQueue.pop` takes the first;
* *back-off*: tried lately; becomes active when its time is up (1 s doubling to 10 s by default);
* *unschedulable*: rejected; stays, costing nothing, until an event arrives that one of the plugins that rejected it
  registered and whose hint agrees. A pod that PreEnqueue keeps out waits here too, without back-off;
* *in flight*: popped and not yet bound or returned (:mod:`.in_flight`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from spinney.api.core import Pod
from spinney.coscheduling.cycle.in_flight import InFlight
from spinney.coscheduling.cycle.keyed_heap import KeyedHeap
from spinney.coscheduling.framework import ClusterEvent, EventHint, PreEnqueue, QueuedPod, QueueSort, Status
from spinney.coscheduling.framework.faults import Faults, a_status, a_truth
from spinney.coscheduling.framework.status import FrameworkPluginFailed
from spinney.extensions.answers import InvalidAnswer, shown
from spinney.kube.keys import Key, key_of
from spinney.runtime import Clock
from spinney.runtime.faults import raised

_MOST_DOUBLINGS: Final = 60
"""More than any rest needs: a pod that is tried for weeks must not count beyond what numbers hold."""


@dataclass(frozen=True, slots=True)
class BackoffTimes:
    """How long a rejected pod rests before it is tried again, in seconds."""

    initial: float = 1.0
    longest: float = 10.0

    def after(self, attempts: int) -> float:
        """Return the rest after that many failed attempts."""
        doublings = min(max(0, attempts - 1), _MOST_DOUBLINGS)
        return float(min(self.longest, self.initial * 2**doublings))


class SchedulingQueue:
    """Pods that want a node, in the order in which they should be tried. Mutable; used from one thread."""

    def __init__(
        self,
        clock: Clock,
        sort: QueueSort,
        *,
        pre_enqueue: Callable[[Pod], Sequence[PreEnqueue]] = lambda _pod: (),
        hints: Mapping[str, tuple[EventHint, ...]] | None = None,
        backoff: BackoffTimes = BackoffTimes(),  # noqa: B008 - a frozen value
        wake: Callable[[], None] = lambda: None,
        faults: Faults | None = None,
        failed: Callable[[QueuedPod, FrameworkPluginFailed], None] = lambda _queued, _error: None,
        kept_out: Callable[[QueuedPod, Status], None] = lambda _queued, _status: None,
    ) -> None:
        self._clock = clock
        self._sort = sort
        self._pre_enqueue = pre_enqueue
        self._hints = dict(hints or {})
        self._backoff_times = backoff
        self._wake = wake
        self.faults = faults if faults is not None else Faults()
        self._failed = failed
        self._kept_out = kept_out
        self._active = KeyedHeap()
        self._backing_off = KeyedHeap()
        self._unschedulable: dict[Key, QueuedPod] = {}
        self._rejected_by: dict[str, dict[Key, QueuedPod]] = {}
        self._in_flight = InFlight()
        self.moment = 0
        """Grows with every pod that is returned from flight."""
        self._begun = False
        """Whether a pod was asked for: until then all that wait were kept out, and are looked at again together."""

    # -- pods coming, changing and going -----------------------------------------------------------------------------

    def add(self, pod: Pod) -> None:
        """Take in a pod that wants a node."""
        now = self._clock.monotonic()
        self._enqueue(QueuedPod(pod=pod, first_queued=now, queued=now))

    def update(self, pod: Pod) -> None:
        """Take in a newer version of a pod; one that had been rejected is tried again if what it asks for changed."""
        key = key_of(pod)
        flying = self._in_flight.find(key)
        if flying is not None:
            flying.pod = pod
            return
        queued = self._active.get(key) or self._backing_off.get(key) or self._unschedulable.get(key)
        if queued is None:
            self.add(pod)
            return
        changed = _concerns_scheduling(queued.pod, pod)
        queued.pod = pod
        if key in self._active:
            self._active.push(key, self._place(queued), queued)
        elif changed and key in self._unschedulable:
            self._leave_unschedulable(queued)
            self._enqueue_after_rest(queued)

    def delete(self, key: Key) -> None:
        self._active.remove(key)
        self._backing_off.remove(key)
        self._in_flight.end(key)
        self._in_flight.trim()
        queued = self._unschedulable.get(key)
        if queued is not None:
            self._leave_unschedulable(queued)

    # -- scheduling --------------------------------------------------------------------------------------------------

    def pop(self) -> QueuedPod | None:
        """Take the first active pod into flight, or return None if none is ready."""
        if not self._begun:
            self._begun = True
            self.flush(0)
        self._release_rested()
        queued = self._active.pop()
        if queued is not None:
            queued.attempts += 1
            self._in_flight.begin(queued)
        return queued

    def done(self, queued: QueuedPod) -> None:
        """Note that a pod in flight was bound or is gone; another of its name is left alone."""
        if self._in_flight.find(queued.key) is queued:
            self._in_flight.end(queued.key)
            self._in_flight.trim()

    def hold(self, key: Key) -> None:
        """Note that a pod in flight has a node and waits, maybe for long: events that arrive are not kept for it."""
        self._in_flight.hold(key)

    def give_back(self, queued: QueuedPod, rejected_by: Iterable[str]) -> bool:
        """Return a pod from flight. Without a rejecting plugin it failed by error and only rests.

        Events that arrived since it was popped count as if they arrived now. Returns False, and does nothing, for a pod
        that is not in flight any more: it is gone, though another of its name may be.
        """
        if self._in_flight.find(queued.key) is not queued:
            return False
        since = self._in_flight.end(queued.key)
        queued.rejected_by = frozenset(rejected_by)
        queued.queued = self._clock.monotonic()
        self.moment += 1
        queued.returned = self.moment
        woken = not queued.rejected_by or self._missed_something(queued, since)
        self._in_flight.trim()
        if woken:
            self._enqueue_after_rest(queued)
        else:
            self._enter_unschedulable(queued)
        return True

    def notify(
        self, event: ClusterEvent, *, between: tuple[int, int] | None = None, but_not: frozenset[Key] = frozenset()
    ) -> None:
        """Wake every rejected pod that ``event`` may help.

        An event that undoes what was done a moment ago is news only to the pods that were returned in between. While a
        cluster is first read, nodes come by the thousand, and so do pods whose group has not come yet.
        """
        if not self._begun:
            self._wake()
            return
        self._in_flight.happened(event)
        for queued in self._helped_by(event):
            if queued.key in but_not or (between is not None and not between[0] < queued.returned <= between[1]):
                continue
            self._leave_unschedulable(queued)
            self._enqueue_after_rest(queued)

    def activate(self, keys: Iterable[Key]) -> None:
        """Make these pods active now, without rest; unknown and active ones are left as they are."""
        for key in keys:
            queued = self._backing_off.remove(key) or self._unschedulable.get(key)
            if queued is None:
                continue
            if key in self._unschedulable:
                self._leave_unschedulable(queued)
            self._enqueue(queued)

    def flush(self, seconds: float) -> None:
        """Try pods again that have waited this long: a safety net, should an event have been missed."""
        limit = self._clock.monotonic() - seconds
        for queued in [each for each in self._unschedulable.values() if each.queued <= limit]:
            self._leave_unschedulable(queued)
            self._enqueue(queued)

    def reorder(self, keys: Iterable[Key]) -> None:
        """Sort these active pods anew: what their sort key depends on has changed."""
        for key in keys:
            queued = self._active.get(key)
            if queued is not None:
                self._active.push(key, self._place(queued), queued)

    # -- reading -----------------------------------------------------------------------------------------------------

    def next_rested(self) -> float | None:
        """Return when the next pod's rest ends, on the monotonic clock, if any rests."""
        rested: float | None = self._backing_off.first_key()
        return rested

    def __len__(self) -> int:
        return len(self._active) + len(self._backing_off) + len(self._unschedulable)

    @property
    def counts(self) -> Mapping[str, int]:
        """Return how many pods are in each place."""
        return {
            "active": len(self._active),
            "backoff": len(self._backing_off),
            "unschedulable": len(self._unschedulable),
            "in_flight": len(self._in_flight),
        }

    def refusal(self, pod: Pod) -> Status | None:
        """Return why a pod may not enter, if a PreEnqueue plugin says so; raises :class:`FrameworkPluginFailed`."""
        for plugin in self._pre_enqueue(pod):
            status = self.faults.ask(plugin.name, "preEnqueue", partial(plugin.pre_enqueue, pod), a_status)
            if not status.ok:
                return status.by(plugin.name)
        return None

    def refused_by(self) -> Mapping[str, int]:
        """Return how many pods each plugin has refused that wait for something to change."""
        return {plugin: len(pods) for plugin, pods in self._rejected_by.items()}

    # -- moving between places ---------------------------------------------------------------------------------------

    def _enqueue(self, queued: QueuedPod) -> None:
        try:
            refused = self.refusal(queued.pod)
        except FrameworkPluginFailed as error:
            self._stay_out(queued, error)
            return
        if refused is not None:
            queued.rejected_by = frozenset({refused.plugin})
            self._enter_unschedulable(queued)
            self._kept_out(queued, refused)
            return
        self._active.push(queued.key, self._place(queued), queued)
        self._wake()

    def _stay_out(self, queued: QueuedPod, error: FrameworkPluginFailed) -> None:
        """Have a pod rest that could not be asked about, and say so."""
        queued.attempts += 1
        queued.queued = self._clock.monotonic()
        self._backing_off.push(queued.key, queued.queued + self._backoff_times.after(queued.attempts), queued)
        self._wake()
        self._failed(queued, error)

    def _place(self, queued: QueuedPod) -> "_OrderKey":
        """Return a pod's place in the order; one whose sort key cannot be had comes after all others."""
        sort = self._sort
        with suppress(FrameworkPluginFailed):
            key = self.faults.ask(sort.name, "queueSort", partial(sort.sort_key, queued), _a_key)
            return _OrderKey((0, *key), queued.first_queued, self._incomparable)
        return _OrderKey((1,), queued.first_queued, self._incomparable)

    def _incomparable(self, error: BaseException) -> None:
        self.faults.note(self._sort.name, "queueSort", error)

    def _enqueue_after_rest(self, queued: QueuedPod) -> None:
        rested = queued.queued + self._backoff_times.after(queued.attempts) if queued.attempts else 0.0
        if rested > self._clock.monotonic():
            self._backing_off.push(queued.key, rested, queued)
            self._wake()
        else:
            self._enqueue(queued)

    def _release_rested(self) -> None:
        now = self._clock.monotonic()
        while (rested := self._backing_off.first_key()) is not None and rested <= now:
            queued = self._backing_off.pop()
            assert queued is not None
            self._enqueue(queued)

    def _enter_unschedulable(self, queued: QueuedPod) -> None:
        self._unschedulable[queued.key] = queued
        for plugin in sorted(queued.rejected_by):  # pods are woken in the order in which they came
            self._rejected_by.setdefault(plugin, {})[queued.key] = queued

    def _leave_unschedulable(self, queued: QueuedPod) -> None:
        del self._unschedulable[queued.key]
        for plugin in queued.rejected_by:
            del self._rejected_by[plugin][queued.key]

    # -- events ------------------------------------------------------------------------------------------------------

    def _missed_something(self, queued: QueuedPod, since: int) -> bool:
        """Tell whether an event since then, of a kind that its plugins asked for, may help a pod."""
        return any(
            self._wakes(plugin, hint, queued, event)
            for plugin in sorted(queued.rejected_by)
            for hint in self._hints.get(plugin, ())
            for event in self._in_flight.missed(hint, since)
        )

    def _helped_by(self, event: ClusterEvent) -> list[QueuedPod]:
        """Return the waiting pods that ``event`` may help, looking only where a plugin asked for such events."""
        helped: dict[Key, QueuedPod] = {}
        for plugin, waiting in self._rejected_by.items():
            hints = [hint for hint in self._hints.get(plugin, ()) if hint.concerns(event)]
            if hints:
                helped |= {
                    key: queued
                    for key, queued in waiting.items()
                    if key not in helped and any(self._wakes(plugin, hint, queued, event) for hint in hints)
                }
        return list(helped.values())

    def _wakes(self, plugin: str, hint: EventHint, queued: QueuedPod, event: ClusterEvent) -> bool:
        """Tell whether an event may help a pod; if the hint cannot tell, the pod is tried."""
        try:
            return self.faults.ask(plugin, "events", partial(hint.wakes, queued.pod, event), a_truth)
        except FrameworkPluginFailed:
            return True


def _concerns_scheduling(old: Pod, new: Pod) -> bool:
    """Tell whether a change of a pod may change where it can go; claims made from templates are named in its status."""
    return (
        old.spec != new.spec
        or old.metadata.labels != new.metadata.labels
        or old.status.resource_claim_statuses != new.status.resource_claim_statuses
    )


def _a_key(answer: object) -> tuple[Any, ...]:
    if not isinstance(answer, tuple):
        raise InvalidAnswer(shown(answer), "a tuple that compares with those of other pods")
    return answer


class _OrderKey:
    """A place in the order of pods. Where two keys do not compare, who came first goes first."""

    __slots__ = ("_incomparable", "_since", "key")

    def __init__(self, key: tuple[Any, ...], since: float, incomparable: Callable[[BaseException], None]) -> None:
        self.key = key
        self._since = since
        self._incomparable = incomparable

    def __lt__(self, other: "_OrderKey") -> bool:
        try:
            return bool(self.key < other.key)
        except raised() as error:  # keys are made by a plugin
            self._incomparable(error)
            return self._since < other._since
