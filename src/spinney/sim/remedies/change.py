"""A change that a user could make to a cluster, in many strengths, what it costs, and a set of them that is enough.

To end a workload for good, pods that a controller would make again are ended with what they are made from.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, TypeVar

from spinney.api.core import POD, Pod
from spinney.api.grove import POD_CLIQUE, POD_CLIQUE_SET
from spinney.api.labels import GROUPED, PART_OF, REPLICA_SET_HASH
from spinney.api.labels import POD_GANG as GANG_OF_POD
from spinney.api.merge_patch import merge_patch
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.resource import Resource
from spinney.api.struct import JSON, Struct, to_json
from spinney.explain.amounts import counted
from spinney.gangs.source_workloads import workload
from spinney.gangs.tree import GangKey
from spinney.grouping.owners import owner_of
from spinney.sim.snapshots.snapshot import ClusterSnapshot, differing


class Patch(Struct, frozen=True, kw_only=True):
    """One object as it would have to be: a merge patch, a JSON patch, a whole object to create, or its deletion."""

    api_version: str
    kind: str
    name: str
    namespace: str | None = None
    merge: JSON | None = None
    operations: tuple[JSON, ...] = ()
    """A JSON patch (RFC 6902)."""
    recreate: bool = False
    """What is patched may not change: the object has to be deleted, and created with the change."""
    create: JSON | None = None
    delete: bool = False

    @property
    def target(self) -> str:
        """Return the object as kubectl is told it, with version and group: other groups have kinds of the same name."""
        group, _, version = self.api_version.rpartition("/")
        kind = f"{self.kind.lower()}.{version}.{group}" if group else self.kind.lower()
        return f"{kind} {self.name} -n {self.namespace}"


class RemedyPrice(Struct, frozen=True, kw_only=True):
    """What a remedy costs others and the owner of the cluster."""

    nodes: int = 0
    """Nodes to add."""
    gpus: int = 0
    """GPUs on nodes to add, or held by what is ended or evicted."""
    ended: tuple[str, ...] = ()
    """Workloads that a user would have to end."""
    moved: tuple[str, ...] = ()
    """Workloads that would be restarted on other nodes."""
    evicted: tuple[str, ...] = ()
    """Pods that the scheduler would evict once the change is made."""
    delayed: tuple[str, ...] = ()
    """Gangs that would start now and would no longer."""

    @property
    def total(self) -> tuple[int, int, int]:
        """Return what to sort by: disturbed workloads, nodes, GPUs."""
        disturbed = len(self.ended) + len(self.moved) + len(self.evicted) + len(self.delayed)
        return disturbed, self.nodes, self.gpus


class RemedyStep(Struct, frozen=True, kw_only=True):
    """One change, as an imperative, with the command that makes it where there is one."""

    lever: str
    text: str
    command: str = ""


class Remedy(Struct, frozen=True, kw_only=True):
    """Changes that together let the gang start. Tried: the schedulers placed it on the changed snapshot."""

    changes: tuple[RemedyStep, ...]
    patches: tuple[Patch, ...] = ()
    """The same on objects: on what a gang is made from (a PodCliqueSet, a Job), else on what schedulers read."""
    price: RemedyPrice = RemedyPrice()
    smallest: bool = True
    """False: the time was over before it was tried whether less is enough."""

    @property
    def text(self) -> str:
        """Return the changes as one sentence."""
        return ", and ".join(change.text for change in self.changes)


def patches_between(before: ClusterSnapshot, after: ClusterSnapshot) -> tuple[Patch, ...]:
    """Return what turns the objects of one snapshot into those of another."""
    found = []
    for resource, name, old, new in differing(before, after):
        if new is None or _is_restarted(old, new):
            found.append(_patch(resource, name, delete=True))
        elif old is None:
            found.append(_patch(resource, name, create=to_json(new)))
        elif merge := merge_patch(to_json(old), to_json(new)):
            found.append(_patch(resource, name, merge=merge))
    return tuple(found)


def _is_restarted(old: Any, new: Any) -> bool:
    """Tell whether a pod is to give up its node: that is done by deleting it, and its controller makes another."""
    return isinstance(old, Pod) and bool(old.spec.node_name) and not new.spec.node_name


def _patch(resource: Resource, name: tuple[str | None, str], **what: Any) -> Patch:
    namespace, own = name
    return Patch(api_version=resource.api_version, kind=resource.kind, namespace=namespace, name=own, **what)


T = TypeVar("T")
Chosen = tuple[int, ...]
"""Which elements of a lever are taken, by position."""
SHOWN: Final = 4
"""How many elements are named; the others are counted."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Lever(Generic[T]):
    """Elements that can be changed, and what comes of it when some of them are picked.

    ``ordered`` levers are taken from the first on (three more nodes, a limit two higher); of the others any set may be
    taken. The cheapest elements come first.
    """

    name: str
    elements: Sequence[T]
    apply: Callable[[ClusterSnapshot, Sequence[T]], ClusterSnapshot]
    """Return the cluster with the picked elements changed."""
    text: Callable[[Sequence[T]], str]
    """Return what to do, as an imperative."""
    command: Callable[[Sequence[T]], str] = lambda _: ""
    """Return the command that does it, where there is one."""
    price: Callable[[Sequence[T]], RemedyPrice] = lambda _: RemedyPrice()
    restarts: Callable[[Sequence[T]], Collection[GangKey]] = lambda _: ()
    """Return the other gangs that give up their nodes and have to find new ones: all of their pods."""
    ordered: bool = False
    likely: int | None = None
    """How many elements are probably enough, by arithmetic; the search begins there and does not rely on it."""
    waits: bool = False
    """Time makes the change, and nobody has to."""
    refine: "Callable[[Sequence[T]], list[Lever[T]]] | None" = None
    """Return a lever for each picked element over how much it is changed, where that can be less than all."""

    @property
    def everything(self) -> Chosen:
        return tuple(range(len(self.elements)))

    @property
    def guess(self) -> Chosen | None:
        """Return the elements that are probably enough; ``None`` without an idea, or if it is all of them."""
        return tuple(range(self.likely)) if self.likely is not None and 0 < self.likely < len(self.elements) else None


class Pull(NamedTuple):
    """A lever, and how far it is pulled."""

    lever: Lever[Any]
    chosen: Chosen

    @property
    def picked(self) -> list[Any]:
        """Return the elements that are changed."""
        return [self.lever.elements[each] for each in self.chosen]

    @property
    def step(self) -> RemedyStep:
        """Return what to do, with the command that does it where there is one."""
        lever, picked = self.lever, self.picked
        return RemedyStep(lever=lever.name, text=lever.text(picked), command=lever.command(picked))


class Maker(NamedTuple):
    """What pods are made from, as far up as a pod itself tells."""

    namespace: str | None
    api_version: str
    kind: str
    name: str

    def patch(self, **what: Any) -> Patch:
        return Patch(api_version=self.api_version, kind=self.kind, name=self.name, namespace=self.namespace, **what)

    @property
    def deletion(self) -> Patch:
        return self.patch(delete=True)

    @property
    def command(self) -> str:
        return f"kubectl delete {self.deletion.target}"

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def maker_of(pod: Pod) -> Maker | None:
    """Return what a pod is made from: its PodCliqueSet, its Deployment, or whatever controls it; ``None`` if nothing.

    A ReplicaSet of a Deployment is named for it and for the hash of the template, which is a label of the pod.
    """
    metadata, owner = pod.metadata, pod.metadata.controller
    if owner is None:
        return None
    if owner.kind == POD_CLIQUE.kind and (name := metadata.labels.get(PART_OF)):
        return Maker(metadata.namespace, POD_CLIQUE_SET.api_version, POD_CLIQUE_SET.kind, name)
    hashed = f"-{metadata.labels.get(REPLICA_SET_HASH, '')}"
    if owner.kind == "ReplicaSet" and hashed != "-" and owner.name.endswith(hashed):
        return Maker(metadata.namespace, owner.api_version, "Deployment", owner.name.removesuffix(hashed))
    return Maker(metadata.namespace, owner.api_version, owner.kind, owner.name)


def source_of(found: Any) -> Maker | None:
    """Return what the object of a gang is made from: its owner."""
    owner = owner_of(found.metadata)
    return Maker(found.metadata.namespace, owner.api_version, owner.kind, owner.name) if owner is not None else None


class Makers:
    """What the pods of a snapshot are made from: of a workload that was grouped as a whole, that workload.

    A Job of a JobSet does not say so itself, but the gang that was made for the JobSet does.
    """

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        grouped = (each for each in snapshot.of(POD_GANG, PodGang) if GROUPED in each.metadata.labels)
        self._of_gangs = {(each.metadata.namespace, each.metadata.name): source_of(each) for each in grouped}

    def of(self, pod: Pod) -> Maker | None:
        """Return what a pod is made from; ``None`` if nothing."""
        found = self._of_gangs.get((pod.metadata.namespace, pod.metadata.labels.get(GANG_OF_POD, "")))
        return found if found is not None and found.kind != POD.kind else maker_of(pod)

    def each_of(self, pods: Iterable[Pod]) -> list[Maker]:
        """Return what pods are made from, each once."""
        return list(dict.fromkeys(maker for pod in pods if (maker := self.of(pod)) is not None))


def without_pods_of(snapshot: ClusterSnapshot, manifests: Iterable[JSON], namespace: str) -> ClusterSnapshot:
    """Return a snapshot without the pods and gangs of workloads that ``manifests`` describe: they are made anew."""
    anew = {
        (metadata.get("namespace") or namespace, str(each.get("apiVersion")), str(each.get("kind")), metadata["name"])
        for each in manifests
        if isinstance(metadata := each.get("metadata"), dict) and metadata.get("name")
    }
    kinds = {(space, kind, name) for space, _, kind, name in anew}
    gangs = [
        gang
        for gang in snapshot.of(POD_GANG, PodGang)
        if (gang.metadata.namespace, *(workload(gang) or _set_of(gang))) in kinds
    ]
    named = {(gang.metadata.namespace, gang.metadata.name) for gang in gangs}
    pods = [
        pod
        for pod in snapshot.pods
        if (pod.metadata.namespace, pod.metadata.labels.get(GANG_OF_POD)) in named or maker_of(pod) in anew
    ]
    return snapshot.without_objects([*pods, *gangs])


def told_anew(before: ClusterSnapshot, without: ClusterSnapshot, named: str, where: str) -> str:
    """Return what to say where ``named`` is there already; empty if :func:`without_pods_of` took nothing away."""
    gone = len(before.pods) - len(without.pods)
    if not gone:
        return ""
    found = f"{counted(gone, 'pod')} in {where} already"
    return f"what {named} name has {found}: it is simulated as if made anew, without them"


def _set_of(gang: PodGang) -> tuple[str, str]:
    """Return kind and name of the set that a gang is of."""
    return POD_CLIQUE_SET.kind, gang.metadata.labels.get(PART_OF, "")


def patches_at_owners(before: ClusterSnapshot, after: ClusterSnapshot) -> tuple[Patch, ...]:
    """Return what turns one snapshot into another, pods that are gone ended with what they are made from."""
    gone = [old for _, _, old, new in differing(before, after) if new is None and isinstance(old, Pod)]
    makers = Makers(before)
    made = [pod for pod in gone if makers.of(pod) is not None]
    rest = patches_between(before, after.with_objects(made))
    return (*(maker.deletion for maker in makers.each_of(made)), *rest)
