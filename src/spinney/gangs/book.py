"""The book of gangs: which gangs there are, which pods are in them, and what queues hold through them.

Fed by watch events: pods through :meth:`GangBook.pod_changed`, gangs through :meth:`GangBook.put` and
:meth:`GangBook.remove`; gangs that no object lists one by one are derived when a pod first names them. Each event costs
constant time, and so does taking a snapshot per gang that changed: a gang's members are shared with the snapshots until
the next event changes them.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping

import msgspec

from spinney.cluster.pods import PodKey, PodRecord
from spinney.cluster.state import PodChange
from spinney.cluster.statuses import ACTIVE_USED, PodStatus
from spinney.cluster.surroundings import keep
from spinney.gangs import composites
from spinney.gangs.definitions import GangDefinitions
from spinney.gangs.holdings import Holdings, QueueHoldings, charges_alike
from spinney.gangs.sources import bare, native, ungrouped
from spinney.gangs.sources.context import SourceContext
from spinney.gangs.tree import DEFAULT_POD_SET, Gang, GangKey, is_satisfied_by
from spinney.kube.keys import Key

Membership = tuple[GangKey, str]
"""A gang and the pod set of it that a pod belongs to."""


class GangMembers(msgspec.Struct, frozen=True, eq=False):
    """A gang with its pods at one moment. Compared by identity."""

    gang: Gang
    pods: Mapping[PodKey, tuple[str, PodRecord]]
    """Pod set and record by pod, in the order the pods appeared."""
    pending: int
    """How many of the pods are pending."""
    counts: Mapping[tuple[str, PodStatus], int]
    """How many pods of each pod set have each status."""

    def has_minimum(self, statuses: Collection[PodStatus]) -> bool:
        """Tell whether enough pods of the gang have one of these statuses."""
        return is_satisfied_by(self.gang.root, number_of_pods(self.counts, statuses))

    def with_pods(self, more: Mapping[PodKey, tuple[str, PodRecord]]) -> "GangMembers":
        """Return the gang with further pods."""
        pods = {**self.pods, **more}
        counts = Counter((pod_set, record.status) for pod_set, record in pods.values())
        return GangMembers(self.gang, pods, sum(r.status is PodStatus.PENDING for _, r in pods.values()), counts)


class GangSnapshot(msgspec.Struct, frozen=True, eq=False):
    """All gangs at one moment."""

    gangs: Mapping[GangKey, GangMembers]
    pending: tuple[GangKey, ...]
    """Gangs that have pending pods, oldest event first."""
    queues: frozenset[str]
    """Those that gangs name."""
    holdings: Mapping[str, Holdings]
    """By queue."""
    started: Mapping[str, Mapping[GangKey, Gang]]
    """By queue, the gangs that have pods which are not pending."""
    broken: Collection[GangKey]
    """Gangs that hold something, of which no pod has succeeded, and that are below their minimum."""
    orphans: Mapping[PodKey, str]
    """Pods that cannot be scheduled because the gang they name is not there, and why."""


class GangEntry:
    """A gang being kept. Mutable, written to by its book alone; others read it, as it is at the moment."""

    __slots__ = ("_by_set", "context", "counts", "gang", "lasting", "pending", "pods", "shared", "view")

    def __init__(self) -> None:
        self.gang: Gang | None = None
        """``None`` while pods name it and its object has not been seen."""
        self.lasting = False
        """Whether the gang is there without pods, until it is removed."""
        self.context: SourceContext | None = None
        """What the gang of a single pod was made in."""
        self.pods: dict[PodKey, tuple[str, PodRecord]] = {}
        """Pod set and record by pod."""
        self.pending = 0
        self.counts: dict[tuple[str, PodStatus], int] = {}
        self.shared = False
        self.view: GangMembers | None = None
        self._by_set: dict[str, dict[PodKey, None]] | None = None
        """The pods of each pod set, from when somebody asks on."""

    def put(self, pod_set: str, record: PodRecord) -> None:
        """Have a pod, as it is now, be in a pod set."""
        pods = self._writable()
        if self._by_set is not None:
            self._leave_set(record.key)
            self._by_set.setdefault(pod_set, {})[record.key] = None
        pods[record.key] = (pod_set, record)

    def take_out(self, pod: PodKey) -> None:
        """Have a pod be in it no longer."""
        self._leave_set(pod)
        self._writable().pop(pod, None)

    def of_set(self, pod_set: str) -> list[PodRecord]:
        """Return the pods of a pod set, without looking at those of others each time."""
        if self._by_set is None:
            self._by_set = {}
            for key, (own, _) in self.pods.items():
                self._by_set.setdefault(own, {})[key] = None
        return [self.pods[key][1] for key in self._by_set.get(pod_set, ())]

    def _leave_set(self, pod: PodKey) -> None:
        if self._by_set is None or pod not in self.pods:
            return
        before = self.pods[pod][0]
        del self._by_set[before][pod]
        if not self._by_set[before]:
            del self._by_set[before]

    def count(self, pod_set: str, status: PodStatus, step: int) -> None:
        key = (pod_set, status)
        count = self.counts.get(key, 0) + step
        if count:
            self.counts[key] = count
        else:
            del self.counts[key]

    def number(self, statuses: Collection[PodStatus]) -> dict[str, int]:
        """Return how many pods of each pod set have one of these statuses."""
        return number_of_pods(self.counts, statuses)

    def lacks(self, statuses: Collection[PodStatus]) -> bool:
        """Tell whether the gang is known, and too few of its pods have one of these statuses."""
        return self.gang is not None and not is_satisfied_by(self.gang.root, self.number(statuses))

    def _writable(self) -> dict[PodKey, tuple[str, PodRecord]]:
        if self.shared:
            self.pods = dict(self.pods)
            self.shared = False
        self.view = None
        return self.pods


class GangBook:
    """Gangs and their pods. Mutable; one writer, snapshots for readers."""

    def __init__(
        self, membership: Callable[[PodRecord], Membership], definitions: GangDefinitions | None = None
    ) -> None:
        self._membership = membership
        self._definitions = definitions if definitions is not None else GangDefinitions()
        self._of_workload: dict[Key, dict[GangKey, None]] = {}
        """The gangs of each Workload that pods name."""
        self._entries: dict[GangKey, GangEntry] = {}
        self._views: dict[GangKey, GangMembers] = {}
        self._named: Counter[str] = Counter()
        """How many gangs of the last snapshot name each queue."""
        self._dirty: dict[GangKey, None] = {}
        self._pending: dict[GangKey, int] = {}
        self._started: dict[str, dict[GangKey, Gang]] = {}
        self._broken: dict[GangKey, bool] = {}
        self._holdings = QueueHoldings()
        self._orphans: dict[PodKey, str] = {}
        self._sorting: dict[GangKey, Gang] = {}
        """The gangs that say in which pod set those count that name another."""

    # -- events ------------------------------------------------------------------------------------------------------

    def put(self, gang: Gang) -> None:
        """Take in a gang that appeared or changed; it is there until it is removed."""
        entry = self._entry(gang.key)
        entry.lasting = True
        self._become(entry, gang)

    def _become(self, entry: GangEntry, gang: Gang) -> None:
        if entry.gang == gang:
            return
        was_missing = entry.gang is None
        self._define(gang.key, entry, gang)
        for key in entry.pods if was_missing else ():
            self._orphans.pop(key, None)

    def attach(self, part: GangKey, before: GangKey) -> None:
        """Put pods that name ``part`` into the gang it is part of now, out of ``before``; each may be itself."""
        entry = self._entries.get(before)
        pod_set = DEFAULT_POD_SET if before == part else part.name
        for record in entry.of_set(pod_set) if entry is not None else ():
            self._take_out(record, (before, pod_set), leaving=True)
            self._put_in(record, self.membership(record))

    def derive_again(self, workload: Key | None) -> list[GangKey]:
        """Look again at the gangs of a Workload that pods name, or of all, and return them."""
        keys = self.named(workload)
        for key in keys:
            entry = self._entries[key]
            derived = self._definitions.derive(key)
            if derived is None:
                self._lose(key, entry)
            elif entry.gang != derived:
                self._dirty[key] = None
                self._become(entry, derived)
        return keys

    def remove(self, key: GangKey) -> None:
        """Take out a gang; pods that still name it become orphans."""
        entry = self._entries.get(key)
        if entry is not None:
            entry.lasting = False
            self._lose(key, entry)

    def _lose(self, key: GangKey, entry: GangEntry) -> None:
        if entry.gang is None:
            return
        self._dirty[key] = None
        self._define(key, entry, None)
        if not entry.pods:
            self._drop(key)
        for pod in entry.pods:
            self._orphans[pod] = _missing(key)

    def pod_changed(self, change: PodChange) -> None:
        """Take in what happened to a pod that this scheduler serves."""
        before, after = change.old, change.new
        old = self.membership(before) if before is not None else None
        is_same = before is not None and after is not None and before.pod is after.pod
        new = old if is_same else self.membership(after) if after is not None else None
        self.move(before, old, after, new)

    def move(
        self, before: PodRecord | None, old: Membership | None, after: PodRecord | None, new: Membership | None
    ) -> None:
        """Take in what happened to a pod, where it is known what it belonged to and belongs to now."""
        if before is not None and after is not None and old == new and self._update(before, after, new):
            return
        if before is not None and old is not None:
            self._take_out(before, old, leaving=new is None or new[0] != old[0])
        if after is not None and new is not None:
            self._put_in(after, new)

    # -- reading ----------------------------------------------------------------------------------------------------

    def membership(self, record: PodRecord) -> Membership:
        """Return the gang and pod set of a pod; what is part of a composite counts for the composite."""
        found = self._membership(record)
        if self._sorting and (gang := self._sorting.get(found[0])) is not None:
            return found[0], gang.pod_set_of(found[1])
        home = self._definitions.homes.get(found[0]) if self._definitions.homes else None
        return found if home is None else (home, found[0].name)

    def __contains__(self, key: GangKey) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[GangKey]:
        return iter(self._entries)

    def entry(self, key: GangKey) -> GangEntry:
        """Return a gang to be read from now on, for as long as it is in the book; one that is not begins to be."""
        found = self._entries.get(key)
        return found if found is not None else self._entry(key)

    def named(self, workload: Key | None) -> list[GangKey]:
        """Return the gangs of a Workload that pods name, or of every Workload."""
        workloads = self._of_workload if workload is None else (workload,)
        return [key for each in workloads for key in self._of_workload.get(each, ())]

    def members(self, key: GangKey) -> GangMembers | None:
        """Return one gang as it is now, if it is known."""
        entry = self._entries.get(key)
        return None if entry is None or entry.gang is None else _view_of(entry, entry.gang)

    def snapshot(self) -> GangSnapshot:
        """Return all gangs as they are now, at a cost proportional to what changed since the last snapshot."""
        for key in self._dirty:
            entry = self._entries.get(key)
            if entry is None or entry.gang is None:
                known = self._views.pop(key, None)
                self._pending.pop(key, None)
                self._broken.pop(key, None)
                if known is not None:
                    self._leaves(known.gang.queue, key)
                continue
            known = self._views.get(key)
            if known is not None and known.gang.queue != entry.gang.queue:
                self._leaves(known.gang.queue, key)
                known = None
            if known is None:
                self._named[entry.gang.queue] += 1
            self._views[key] = _view_of(entry, entry.gang)
            self._list(key, entry, entry.gang)
        self._dirty.clear()
        return GangSnapshot(
            gangs=dict(self._views),
            pending=tuple(self._pending),
            queues=frozenset(self._named),
            holdings=self._holdings.copied(),
            started={queue: dict(gangs) for queue, gangs in self._started.items()},
            broken=dict(self._broken).keys(),
            orphans=dict(self._orphans),
        )

    @property
    def holdings(self) -> Mapping[str, Holdings]:
        """Return what queues hold and want as it is now, by queue; not to be written to."""
        return self._holdings.by_queue

    def _list(self, key: GangKey, entry: GangEntry, gang: Gang) -> None:
        """Put a gang into the lists that it belongs to, and take it out of the others."""
        keep(self._pending, key, entry.pending or None)
        has_started = len(entry.pods) > entry.pending
        if has_started:
            self._started.setdefault(gang.queue, {})[key] = gang
        else:
            self._not_started(gang.queue, key)
        keep(self._broken, key, (has_started and _is_broken(gang, entry.counts)) or None)

    def _leaves(self, queue: str, key: GangKey) -> None:
        self._named[queue] -= 1
        if not self._named[queue]:
            del self._named[queue]
        self._not_started(queue, key)

    def _not_started(self, queue: str, key: GangKey) -> None:
        started = self._started.get(queue)
        if started is not None:
            started.pop(key, None)
            if not started:
                del self._started[queue]

    # -- keeping the book --------------------------------------------------------------------------------------------

    @property
    def _context(self) -> SourceContext:
        return self._definitions.context

    def _entry(self, key: GangKey) -> GangEntry:
        self._dirty[key] = None
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = GangEntry()
            if key.source == native.WORKLOAD_SOURCE:
                self._of_workload.setdefault(native.workload_of(key), {})[key] = None
        return entry

    def _drop(self, key: GangKey) -> None:
        del self._entries[key]
        self._sorting.pop(key, None)
        if key not in self._views:
            self._dirty.pop(key, None)  # it came and went, and no snapshot has shown it
        if key.source == native.WORKLOAD_SOURCE:
            workload = native.workload_of(key)
            named = self._of_workload[workload]
            del named[key]
            if not named:
                del self._of_workload[workload]

    def _update(self, old: PodRecord, new: PodRecord, membership: Membership | None) -> bool:
        """Take in a pod that stays in its gang; ``False`` if the gang may not stay what it is."""
        if membership is None:
            return False
        key, pod_set = membership
        entry = self._entries.get(key)
        if entry is None or entry.gang is None:
            return False
        if key.source == bare.SOURCE and not (entry.context is self._context and bare.makes_same_gang(old, new)):
            return False
        self._dirty[key] = None
        entry.put(pod_set, new)
        if old.status is not new.status:
            entry.pending += (new.status is PodStatus.PENDING) - (old.status is PodStatus.PENDING)
            entry.count(pod_set, old.status, -1)
            entry.count(pod_set, new.status, 1)
        self._holdings.change(entry.gang, old, new)
        return True

    def _put_in(self, record: PodRecord, membership: Membership) -> None:
        key, pod_set = membership
        entry = self._entry(key)
        if key.source == bare.SOURCE:
            entry.gang = bare.gang(record, self._context)
            entry.context = self._context
        elif entry.gang is None:
            derived = self._definitions.derive(key)
            if derived is not None:
                self._become(entry, derived)
        entry.put(pod_set, record)
        entry.pending += record.status is PodStatus.PENDING
        entry.count(pod_set, record.status, 1)
        if entry.gang is None:
            self._orphans[record.key] = _missing(key)
            return
        self._holdings.count(entry.gang, record, 1)

    def _take_out(self, record: PodRecord, membership: Membership, *, leaving: bool) -> None:
        key, pod_set = membership
        entry = self._entry(key)
        if entry.gang is not None:
            self._holdings.count(entry.gang, record, -1)
        entry.pending -= record.status is PodStatus.PENDING
        entry.count(pod_set, record.status, -1)
        self._orphans.pop(record.key, None)
        entry.view = None
        if not leaving:
            return
        entry.take_out(record.key)
        if not entry.pods and not entry.lasting:
            self._drop(key)

    def _define(self, key: GangKey, entry: GangEntry, gang: Gang | None) -> None:
        """Have a gang be another one or, for now, none; its pods count in the pod sets they are in then."""
        if gang is None or entry.gang is None or not charges_alike(entry.gang, gang):
            self._charge_all(entry, -1)
            entry.gang = gang
            self._charge_all(entry, 1)
        entry.gang = gang
        entry.view = None
        if not keep(self._sorting, key, gang if gang is not None and gang.other_pods is not None else None):
            return
        for pod_set, record in list(entry.pods.values()):
            now = self.membership(record)[1]
            if now != pod_set:
                entry.count(pod_set, record.status, -1)
                entry.count(now, record.status, 1)
                entry.put(now, record)

    def _charge_all(self, entry: GangEntry, sign: int) -> None:
        if entry.gang is not None:
            for _, record in entry.pods.values():
                self._holdings.count(entry.gang, record, sign)


def number_of_pods(counts: Mapping[tuple[str, PodStatus], int], statuses: Collection[PodStatus]) -> dict[str, int]:
    """Return how many pods of each pod set have one of these statuses."""
    found: dict[str, int] = {}
    for (pod_set, status), count in counts.items():
        if status in statuses:
            found[pod_set] = found.get(pod_set, 0) + count
    return found


def _view_of(entry: GangEntry, gang: Gang) -> GangMembers:
    """Return the members of an entry as a value, shared until the next event changes them."""
    if entry.view is None:
        entry.view = GangMembers(gang, entry.pods, entry.pending, dict(entry.counts))
        entry.shared = True
    return entry.view


def _is_broken(gang: Gang, counts: Mapping[tuple[str, PodStatus], int]) -> bool:
    """Tell whether a gang holds something, none of it has succeeded, and what it holds is below its minimum."""
    used = number_of_pods(counts, ACTIVE_USED)
    if used.keys().isdisjoint(gang.pod_sets) or any((name, PodStatus.SUCCEEDED) in counts for name in gang.pod_sets):
        return False
    return not is_satisfied_by(gang.root, used)


def _missing(key: GangKey) -> str:
    if key.source == ungrouped.SOURCE:
        return "the grouper has not said yet which gang the pod belongs to"
    if key.source == composites.SOURCE:
        return f"the composite {key} that the pod's group is part of does not exist, or is part of itself"
    return f"the {key.source} group {key} that the pod names does not exist"
