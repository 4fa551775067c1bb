"""Gangs of every family at a glance: how far each has come, how widely it is spread, and what it waits for."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from spinney.api import coscheduling as coscheduling_groups
from spinney.api import kai as kai_groups
from spinney.api import volcano as volcano_groups
from spinney.api import workload_v1alpha2, workload_v1beta1
from spinney.api.conditions import find_condition, is_false, is_true
from spinney.api.core import EVENT
from spinney.api.events import Event
from spinney.api.grove import POD_CLIQUE, PodClique
from spinney.api.kai import TOPOLOGY
from spinney.api.kai import Topology as KaiTopology
from spinney.api.labels import GROUPED, HOSTNAME, POD_GANG_GATE
from spinney.api.meta import Metadata
from spinney.api.podgang import BACKEND_READY, INITIALIZED, MINIMUM_NOT_PLACED, POD_GANG, SCHEDULED, PodGang
from spinney.api.resource import Resource
from spinney.api.struct import Struct
from spinney.api.topology_binding import CLUSTER_TOPOLOGY_BINDING, ClusterTopologyBinding
from spinney.cluster.pods import PodKey, PodRecord
from spinney.cluster.statuses import ACTIVE_ALLOCATED, TERMINAL, PodStatus
from spinney.explain.amounts import counted
from spinney.gangs.book import GangMembers
from spinney.gangs.source_workloads import SourceWorkload
from spinney.gangs.source_workloads import workload as workload_of
from spinney.gangs.sources import bare, coscheduling, kai, native, podgang, volcano
from spinney.gangs.tree import GangKey
from spinney.kube.keys import Key, key_of
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.topology.levels import TopologyLevels, topology_of
from spinney.sim.overview.gates import who_opens, why_held
from spinney.sim.overview.history import grouping_refusals, said_of_pods
from spinney.sim.snapshots.snapshot import ClusterSnapshot
from spinney.sim.whatif.loading import inventory_of

_GROUPS: Final[Mapping[Resource, str]] = {
    kai_groups.POD_GROUP: kai.SOURCE,
    coscheduling_groups.POD_GROUP: coscheduling.SOURCE,
    volcano_groups.POD_GROUP: volcano.SOURCE,
    workload_v1alpha2.POD_GROUP: native.SOURCE,
    workload_v1beta1.POD_GROUP: native.SOURCE,
}
"""What backends make of a PodGang, and the family that gangs of it are."""


_OF_ONE_POD: Final = re.compile(r'pods "[^"]*" is forbidden: ')
"""How the API server refuses a pod: each that is tried has another name."""


class GangLine(Struct, frozen=True, kw_only=True):
    """One gang, or with ``source`` pod a single pod that is in none."""

    source: str
    """The family of its object: podgang, kai, native, workload, coscheduling, volcano, pod."""
    namespace: str
    name: str
    scheduler: str
    queue: str
    pods: int
    minimum: int
    placed: int
    ready: int
    gpus: int = 0
    """Whole GPUs that its pods ask for, those that have them included."""
    gpus_held: int = 0
    state: str
    nodes: tuple[str, ...] = ()
    spread: str = ""
    """How many nodes it is on, and how many domains of each level of the cluster's topology."""
    workload: str = ""
    """What the grouper made it for, such as Job/train."""
    reason: str = ""
    """What its scheduler last said, or what the gates wait for that hold it."""


def gang_lines(snapshot: ClusterSnapshot, *, singles: bool = False) -> list[GangLine]:
    """Return every gang in order of namespace and name; with ``singles`` also pods that are in none.

    Pods that the grouper refuses wait for a gang, so they are always there if the snapshot has the grouper's events.
    """
    names = {pod.spec.scheduler_name for pod in snapshot.pods}
    return GangTable().lines(snapshot, inventory_of(snapshot, names), singles=singles)


class GangTable:
    """The lines of a cluster that changes. Mutable: a line is made again only if its gang changed."""

    def __init__(self) -> None:
        self._made: dict[GangKey, tuple[GangMembers, GangWord, GangLine]] = {}
        self._places = _Places({}, ())

    def lines(self, snapshot: ClusterSnapshot, inventory: Inventory, *, singles: bool = False) -> list[GangLine]:
        """Return every gang in order of namespace and name; ``inventory`` is what schedulers see of the cluster."""
        found, missing = _with_strays(inventory)
        labels = {node.metadata.name: node.metadata.labels for node in snapshot.nodes}
        topologies = [topology_of(each) for each in snapshot.of(CLUSTER_TOPOLOGY_BINDING, ClusterTopologyBinding)]
        topologies += [topology_of(each) for each in snapshot.of(TOPOLOGY, KaiTopology)]
        present = {key for node in snapshot.nodes for key in node.metadata.labels}
        places = _Places(labels, tuple(levels_of(topologies, present)))
        if places != self._places:
            self._places, self._made = places, {}
        gangs = {GangKey.of(podgang.SOURCE, gang.metadata): gang for gang in snapshot.of(POD_GANG, PodGang)}
        failures = dict(_failures(snapshot.of(POD_CLIQUE, PodClique)))
        said = {key: word_about(gang, failures) for key, gang in gangs.items()}
        made_for = {key: workload_of(gang) for key, gang in gangs.items()}
        by_name = {(key.namespace, key.name): each for key, each in made_for.items() if each is not None}
        refused = _refused(snapshot, found)
        said |= {key: GangWord(reason) for key, (_, reason) in refused.items()} | dict(missing)
        doubles = set(_doubles(snapshot, found))
        shown = sorted(
            (key for key in found if (singles or key.source != bare.SOURCE or key in refused) and key not in doubles),
            key=lambda key: (key.namespace, key.name, key.source),
        )
        before, self._made = self._made, {}
        for key in shown:
            members, reason, line = before.get(key, (None, _NOTHING_SAID, None))
            if line is None or members is not found[key] or reason != said.get(key, _NOTHING_SAID):
                owner = refused[key][0] if key in refused else by_name.get((key.namespace, key.name))
                line = gang_line(key, found[key], places, said.get(key, _NOTHING_SAID), owner)
            self._made[key] = (found[key], said.get(key, _NOTHING_SAID), line)
        return [line for _, _, line in self._made.values()]


class GangWord(NamedTuple):
    """What a PodGang says of why it waits."""

    by_scheduler: str = ""
    derived: str = ""
    """What the operator derives from its pods, or why it makes none."""
    held: str = ""
    """Why the operator does not open its gates."""
    unmade: str = ""
    """Which pods the operator has not made."""


_NOTHING_SAID: Final = GangWord()


class _Places(NamedTuple):
    """What says where nodes are: the labels of each, and name and label of each level, narrow first."""

    labels: Mapping[str, Mapping[str, str]]
    levels: tuple[tuple[str, str], ...]


def _with_strays(inventory: Inventory) -> tuple[Mapping[GangKey, GangMembers], dict[GangKey, GangWord]]:
    """Return every gang, PodGangs with pods of theirs whose group is missing, and of these what is missing."""
    snapshot = inventory.gangs.snapshot()
    strays: dict[GangKey, dict[PodKey, tuple[str, PodRecord]]] = {}
    missing: dict[GangKey, GangWord] = {}
    for key, reason in snapshot.orphans.items():
        record = inventory.cluster.pod(key)
        named = podgang.membership(record) if record is not None else None
        if record is None or named is None or named[0] not in snapshot.gangs:
            continue
        strays.setdefault(named[0], {})[key] = named[1], record
        if record.status is not PodStatus.GATED:  # no scheduler looks for its group yet
            missing[named[0]] = GangWord(reason)
    return {**snapshot.gangs, **{key: snapshot.gangs[key].with_pods(pods) for key, pods in strays.items()}}, missing


def _refused(
    snapshot: ClusterSnapshot, found: Mapping[GangKey, GangMembers]
) -> dict[GangKey, tuple[SourceWorkload | None, str]]:
    """Return what pods wait that the grouper refuses to put into a gang: what owns each, and what the grouper says."""
    refused: dict[GangKey, tuple[SourceWorkload | None, str]] = {}
    for pod, reason in grouping_refusals(snapshot.of(EVENT, Event)).items():
        key = GangKey(bare.SOURCE, pod.namespace, pod.name)
        for _, record in found[key].pods.values() if key in found else ():
            owner = record.pod.metadata.controller
            if record.status is PodStatus.PENDING and GROUPED not in record.labels:
                refused[key] = (SourceWorkload(owner.kind, owner.name) if owner else None, reason)
    return refused


def _doubles(snapshot: ClusterSnapshot, found: Mapping[GangKey, GangMembers]) -> Iterator[GangKey]:
    """Yield gangs that are there twice, as a PodGang and as the group a backend made of it: the one without pods."""
    for resource, source in _GROUPS.items():
        for group in snapshot.objects.get(resource, ()):
            metadata: Metadata = group.metadata
            made = GangKey(source, metadata.namespace or "", metadata.name)
            owner = metadata.controller
            name = owner.name if owner is not None and owner.kind == POD_GANG.kind else metadata.name
            gang = GangKey(podgang.SOURCE, made.namespace, name)
            if made in found and gang in found:
                yield gang if found[made].pods and not found[gang].pods else made


def gang_line(
    key: GangKey,
    members: GangMembers,
    places: tuple[Mapping[str, Mapping[str, str]], Sequence[tuple[str, str]]],
    said: GangWord,
    workload: SourceWorkload | None,
) -> GangLine:
    """Return one gang; ``places`` are the labels of nodes by name, and the levels of the topology."""
    records = [record for _, record in members.pods.values()]
    placed = [record for record in records if record.status in ACTIVE_ALLOCATED]
    nodes = tuple(sorted({record.node for record in placed}))
    state = _state(records)
    lost = lost_nodes(nodes, places[0]) if places[0] else ()
    unmade = said.unmade if not records else ""
    waits_for = said.by_scheduler or _reason(records, said.held) or unmade or said.derived or "; ".join(lost)
    return GangLine(
        source=key.source,
        namespace=key.namespace,
        name=key.name,
        scheduler=records[0].pod.spec.scheduler_name if records else "",
        queue=members.gang.queue,
        pods=len(records),
        minimum=sum(pod_set.min_member for pod_set in members.gang.root.pod_sets()),
        placed=len(placed),
        ready=sum(record.pod.is_true("Ready") for record in records),
        gpus=sum(record.request.gpus for record in records),
        gpus_held=sum(record.request.gpus for record in placed),
        state=state,
        nodes=nodes,
        spread=_spread(nodes, *places),
        workload=str(workload) if workload is not None else "",
        reason="" if state == "ended" else waits_for,
    )


def lost_nodes(used: Iterable[str], known: Collection[str]) -> list[str]:
    """Return that nodes of pods do not exist: nothing runs these pods."""
    lost = sorted(set(used).difference(known))
    return [f"the node {name} does not exist: nothing runs its pods until it is back" for name in lost]


def _state(records: Sequence[PodRecord]) -> str:
    statuses = {record.status for record in records}
    if not records:
        return "empty"
    if PodStatus.PENDING in statuses:
        return "pending"
    if PodStatus.GATED in statuses:
        return "gated"
    if statuses <= TERMINAL:
        return "ended"
    return "running" if statuses <= {PodStatus.RUNNING, *TERMINAL} else "starting"


def _reason(records: Iterable[PodRecord], held: str) -> str:
    gates: dict[str, None] = {}
    silent = ""
    for record in records:
        if record.status is PodStatus.PENDING:
            if (said := next(said_of_pods([record]), None)) is not None:
                return said.message
            silent = silent or f"{record.pod.spec.scheduler_name} has said nothing about it yet"
        gates |= dict.fromkeys(gate.name for gate in record.pod.spec.scheduling_gates)
    return silent or "; ".join(
        held if gate == POD_GANG_GATE and held else f"gate {gate}: {who_opens(gate)}" for gate in gates
    )


def _failures(cliques: Iterable[PodClique]) -> Iterator[tuple[Key, str]]:
    """Yield of each clique that has failed last what could not be done, as when its pods are refused."""
    for each in cliques:
        if errors := each.status.last_errors:
            said = (_OF_ONE_POD.sub("", " ".join(error.description.split())) for error in errors)
            yield key_of(each), f"{'; '.join(dict.fromkeys(said))} (PodClique {each.metadata.name})"


def word_about(gang: PodGang, failures: Mapping[Key, str] = MappingProxyType({})) -> GangWord:
    """Return what is said of a gang that is not scheduled, or whose gates are not open.

    ``failures`` are what could not be done for cliques: why pods that it waits for are not there.
    """
    condition = find_condition(gang.status.conditions, SCHEDULED)
    if condition is not None and condition.status == "True" and is_true(gang.status.conditions, INITIALIZED):
        return _NOTHING_SAID
    conditions = gang.status.conditions
    lacks_pods = failures and is_true(conditions, BACKEND_READY) and not is_true(conditions, INITIALIZED)
    cliques = [Key(key_of(gang).namespace, group.name) for group in gang.spec.pod_groups] if lacks_pods else []
    held = "; ".join(failures[each] for each in cliques if each in failures) or why_held(gang)
    backend = find_condition(gang.status.conditions, BACKEND_READY)
    refused = held if backend is not None and backend.status == "False" else ""
    unmade = held if refused or is_false(gang.status.conditions, INITIALIZED) else ""
    if condition is None or condition.status != "False":
        return GangWord(derived=refused, held=held, unmade=unmade)
    if condition.reason == MINIMUM_NOT_PLACED:
        return GangWord(derived=refused or condition.message, held=held, unmade=unmade)
    return GangWord(condition.message, held=held, unmade=unmade)


def levels_of(topologies: Iterable[TopologyLevels], labels: Collection[str]) -> list[tuple[str, str]]:
    """Return name and label of each level that nodes have, narrow first, of the first topology they carry."""
    for topology in topologies:
        keys = [level for level in topology.levels if level in labels and level != HOSTNAME]
        if keys:
            return [(key.rpartition("/")[2], key) for key in reversed(keys)]
    return []


def _spread(nodes: Sequence[str], labels: Mapping[str, Mapping[str, str]], levels: Sequence[tuple[str, str]]) -> str:
    if not nodes:
        return ""
    parts = [counted(len(nodes), "node")]
    for name, key in levels:
        domains = {labels.get(node, {}).get(key, "") for node in nodes} - {""}
        if domains:
            parts.append(counted(len(domains), name))
    return ", ".join(parts)
