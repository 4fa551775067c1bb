"""The gangs of a recording, each a job from when it was first seen until it was gone or finished.

A gang is a job of as many pods as were there at once, each as it was. It was submitted when its first pod arrived: when
it was created, or when its last scheduling gate opened, before which it is not there for any scheduler. It
started when its last pod had a node, and ended at the first snapshot that no longer has its pods, or has them finished
or all made anew: what comes then is another job. What runs in the last snapshot never ends; what was gone before it
started is withdrawn at that moment. Only what changed from one snapshot to the next is looked at.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, NamedTuple

from spinney.api.core import PERSISTENT_VOLUME_CLAIM, Pod
from spinney.api.resource_claims import RESOURCE_CLAIM
from spinney.cluster.classes import RequestClasses
from spinney.cluster.dra.book import claims_of
from spinney.cluster.filters.storage import claim_uses
from spinney.cluster.pods import PodRecord, record_of
from spinney.cluster.resources import ResourceAxis
from spinney.gangs.definitions import GangDefinitions
from spinney.gangs.membership import membership
from spinney.gangs.sources import bare
from spinney.gangs.tree import Gang, GangKey, GroupSet, Member, PodSet
from spinney.kube.keys import Key, key_of
from spinney.sim.replay.formats.recorded_claims import RecordedClaims
from spinney.sim.replay.formats.recorded_pods import PodTemplates, stated_by
from spinney.sim.replay.trace import WHOLE, Ask, Job, RecordedGang, RecordedPod
from spinney.sim.snapshots.snapshot import Differing

_DONE: Final = frozenset({"Succeeded", "Failed"})


class RecordedJob(NamedTuple):
    """A job that has no name of its own yet."""

    job: Job
    scheduler: str
    """Who was to place its pods."""

    @property
    def gang(self) -> RecordedGang:
        """Return the gang of the job."""
        assert self.job.recorded is not None, "every job of a recording has one"
        return self.job.recorded


class _Seen(NamedTuple):
    """A pod of a gang."""

    record: PodRecord
    pod_set: str
    arrived: datetime | None
    """When a scheduler could place it: its creation, or when its last gate opened."""

    @property
    def node(self) -> str:
        return self.record.pod.spec.node_name

    @property
    def lacks_claims(self) -> bool:
        """Tell whether claims that are made for it from templates are not there yet."""
        return len(claims_of(self.record.pod)) < len(self.record.pod.spec.resource_claims)

    @property
    def identity(self) -> str:
        return _identity(self.record.pod)


def _identity(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}/{pod.metadata.uid}"


@dataclass
class _Life:
    """A gang from when it was first seen until it was gone or finished. Mutable.

    A gang that comes again under its name, or all of whose pods were made anew, has another life: its work is done
    twice.
    """

    gang: Gang
    most: Sequence[_Seen] = ()
    """Its pods when most of them were there at once."""
    known: set[str] = field(default_factory=set)
    """All pods it ever had, by identity."""
    arrived: datetime | None = None
    started: datetime | None = None
    ended: datetime | None = None
    from_the_beginning: bool = False
    """The first snapshot has ``most`` of its pods, all on nodes."""

    def see(self, alive: Sequence[_Seen], moment: datetime, *, first: bool) -> None:
        """Take in what is there of it in a snapshot."""
        staying = _staying(alive)
        have_nodes = all(each.node for each in staying)
        if len(staying) > len(self.most):
            self.most, self.from_the_beginning = staying, first and have_nodes
        elif any(each.lacks_claims for each in self.most):
            now = {each.identity: each for each in staying}
            self.most = [now.get(each.identity, each) for each in self.most]
        self.known |= {each.identity for each in staying}
        arrived = (each.arrived for each in staying)
        self.arrived = min(filter(None, (self.arrived, *arrived)), default=moment)
        if self.started is None and have_nodes:
            self.started = max((each.record.pod.status.start_time or moment for each in staying), default=moment)

    def is_followed_by(self, alive: Sequence[_Seen]) -> bool:
        """Tell whether pods that are there now are of a later life."""
        return self.known.isdisjoint(each.identity for each in _staying(alive))


def _opened(pod: Pod, moment: datetime) -> datetime:
    """Return when the last gate of a pod opened that has none for the first time: by then, and before it had a node."""
    scheduled = pod.condition("PodScheduled")
    bound = scheduled.last_transition_time if scheduled is not None and scheduled.status == "True" else None
    return min(filter(None, (bound, pod.status.start_time)), default=moment)


def _staying(alive: Sequence[_Seen]) -> Sequence[_Seen]:
    """Return those that are not about to go; all of them if the whole gang is."""
    return [each for each in alive if not each.record.pod.metadata.deleting] or alive


class RecordedGangs:
    """The gangs that snapshots have shown so far. Mutable."""

    def __init__(self, begin: datetime, claims: RecordedClaims) -> None:
        self._begin = begin
        self._claims = claims
        self._definitions = GangDefinitions()
        self._classes = RequestClasses(ResourceAxis())
        self._templates = PodTemplates()
        self._alive: dict[GangKey, dict[str, _Seen]] = {}
        """Pods that have not finished, by gang and name."""
        self._gang_of: dict[str, GangKey] = {}
        """The same the other way round."""
        self._gated: dict[str, str] = {}
        """Pods that have scheduling gates: their identity, by name."""
        self._lives: dict[GangKey, _Life] = {}
        self._over: list[RecordedJob] = []

    def see(
        self, moment: datetime, definitions: Iterable[Differing], pods: Iterable[Differing], gpu_memory: int | None
    ) -> None:
        """Take in what is not as it was in the snapshot before; ``gpu_memory`` is that of the smallest device."""
        pods = list(pods)
        touched = {self._gang_of[name]: None for each in pods if (name := _name(each)) in self._gang_of}
        for key in touched:
            self._understand(key)  # what defines it may go together with its pods
        for each in definitions:
            found = each.new if each.new is not None else each.old
            self._definitions.put(type(found), key_of(found), each.new)
        for each in pods:
            touched |= dict.fromkeys(self._move(_name(each), each.new, moment))
        for key in touched:
            self._follow(key, moment, gpu_memory)

    def _move(self, name: str, pod: Pod | None, moment: datetime) -> Iterator[GangKey]:
        """Put a pod where it belongs now, and yield the gangs this is about."""
        before, gated = self._gang_of.pop(name, None), self._gated.pop(name, None)
        gone: _Seen | None = None
        if before is not None:
            gone = self._alive[before].pop(name)
            yield before
        if pod is None or pod.status.phase in _DONE:
            return
        if pod.gated:
            self._gated[name] = _identity(pod)
            return
        arrived = pod.metadata.creation_timestamp
        if gated == _identity(pod):
            arrived = _opened(pod, moment)
        elif gone is not None and gone.identity == _identity(pod):
            arrived = gone.arrived
        seen = self._seen(pod, arrived)
        key = self._key_of(seen.record)
        if before is not None and gone is not None and key != before and gone.identity == seen.identity:
            self._disown(before, gone)
        self._gang_of[name] = key
        self._alive.setdefault(key, {})[name] = seen
        yield key

    def _disown(self, key: GangKey, pod: _Seen) -> None:
        """Have a pod never have been in a gang: it was seen before the grouper named its own."""
        life = self._lives.get(key)
        if life is not None:
            life.known.discard(pod.identity)
            life.most = [each for each in life.most if each.identity != pod.identity]
            if not life.most:
                del self._lives[key]

    def _follow(self, key: GangKey, moment: datetime, gpu_memory: int | None) -> None:
        """Take in what a gang has come to."""
        alive = tuple(self._alive.get(key, {}).values())
        life = self._lives.get(key)
        if life is not None and (not alive or life.is_followed_by(alive)):
            life.ended = moment
            self._over.append(self._job(self._lives.pop(key), gpu_memory))
            life = None
        if not alive:
            self._alive.pop(key, None)
            return
        if life is None:
            life = self._lives[key] = _Life(self._gang(key, alive[0].record))
        else:
            self._understand(key)
        life.see(alive, moment, first=moment == self._begin)

    def jobs(self, gpu_memory: int | None) -> Iterator[RecordedJob]:
        """Yield all jobs, those that run at the end last."""
        yield from self._over
        for key, life in self._lives.items():
            self._understand(key)
            yield self._job(life, gpu_memory)

    # -- gangs -------------------------------------------------------------------------------------------------------

    def _seen(self, pod: Pod, arrived: datetime | None) -> _Seen:
        record = record_of(pod, self._classes)
        key, pod_set = membership(record)
        home = self._definitions.home(key)
        return _Seen(record, pod_set if home == key else key.name, arrived)

    def _key_of(self, record: PodRecord) -> GangKey:
        return self._definitions.home(membership(record)[0])

    def _understand(self, key: GangKey) -> None:
        """Have the life of a gang know what its object says now, if it has one."""
        life, gang = self._lives.get(key), self._definitions.gang(key)
        if life is not None and gang is not None:
            life.gang = gang

    def _gang(self, key: GangKey, record: PodRecord) -> Gang:
        """Return the gang that pods name; what no object says of it, a pod does."""
        gang = self._definitions.gang(key)
        return gang if gang is not None else replace(bare.gang(record, self._definitions.context), key=key)

    # -- jobs --------------------------------------------------------------------------------------------------------

    def _job(self, life: _Life, gpu_memory: int | None) -> RecordedJob:
        pods = tuple(self._pod(life, each, gpu_memory) for each in life.most)
        begin, gang, record = self._begin, life.gang, life.most[0].record
        duration = ends = None
        if life.ended is not None and life.started is not None:
            duration = max((life.ended - max(life.started, begin)).total_seconds(), 0.0)
        elif life.ended is not None:
            ends = (life.ended - begin).total_seconds()
        job = Job(
            name=f"{gang.namespace}-{gang.name}".replace("/", "-"),
            submitted=max(((life.arrived or begin) - begin).total_seconds(), 0.0),
            ask=_most([each.ask for each in pods]),
            pods=len(pods),
            duration=duration,
            ends=ends,
            queue=gang.queue,
            kind=gang.key.source,
            stated=stated_by(record.pod),
            recorded=RecordedGang(_as_started(gang, pods), pods),
        )
        return RecordedJob(job, record.pod.spec.scheduler_name)

    def _pod(self, life: _Life, seen: _Seen, gpu_memory: int | None) -> RecordedPod:
        pod, ask = self._templates.of(seen.record, gpu_memory)
        node = seen.node if life.from_the_beginning else ""
        started, explains = life.started is not None, self._claims.explains
        claims = (key for key in claims_of(seen.record.pod) if explains(RESOURCE_CLAIM, key, started=started))
        uses = (
            use
            for use in claim_uses(seen.record.pod)
            if explains(PERSISTENT_VOLUME_CLAIM, Key(seen.record.namespace, use.name), started=started)
        )
        return RecordedPod(
            pod,
            ask,
            life.gang.pod_set_of(seen.pod_set),
            node,
            seen.record.gpu_groups if node else (),
            claims=tuple(key.name for key in claims),
            volumes=tuple(uses),
        )


def _name(each: Differing) -> str:
    return f"{each.identity[0]}/{each.identity[1]}"


def _most(asks: Sequence[Ask]) -> Ask:
    """Return the most of each that one of the pods asks for."""
    others: dict[str, int] = {}
    for name, amount in (other for ask in asks for other in ask.others):
        others[name] = max(amount, others.get(name, 0))
    sharing = [ask for ask in asks if ask.gpus]
    return Ask(
        cpu=max(ask.cpu for ask in asks),
        memory=max(ask.memory for ask in asks),
        gpus=max(ask.gpus for ask in asks),
        milli=max(ask.milli for ask in sharing) if sharing else WHOLE,
        others=tuple(others.items()),
    )


def _as_started(gang: Gang, pods: Sequence[RecordedPod]) -> Gang:
    """Return a gang of exactly these pods, of which nothing has happened yet."""
    counts: dict[str, int] = {}
    for pod in pods:
        counts[pod.pod_set] = counts.get(pod.pod_set, 0) + 1
    others = [PodSet(name, count) for name, count in counts.items() if name not in gang.pod_sets]
    members = tuple(_needing(gang.root.members, counts))
    return replace(
        gang,
        root=GroupSet(gang.root.name, (*members, *others), None, gang.root.topology),
        last_start=None,
        last_eviction=None,
        stale_since=None,
        last_checkpoint=None,
        other_pods=None,
    )


def _needing(members: Iterable[Member], counts: Mapping[str, int]) -> Iterator[Member]:
    """Yield parts of a tree with all their pods required; parts that have none are left out."""
    for member in members:
        if isinstance(member, PodSet):
            if member.name in counts:
                yield replace(member, min_member=counts[member.name])
        elif below := tuple(_needing(member.members, counts)):
            yield GroupSet(member.name, below, None, member.topology)
