"""Clusters to fill and the work that fills them, made from a seed; and a checker that knows nothing of schedulers."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from spinney.api.affinity import Affinity, PodAffinity, PodAffinityTerm
from spinney.api.core import Container, Node, NodeCondition, NodeStatus, Pod, PodSpec, PodStatus, ResourceRequirements
from spinney.api.labels import KAI_POD_GROUP
from spinney.api.meta import Metadata
from spinney.api.selectors import LabelSelector
from spinney.gangs.tree import DEFAULT_POD_SET, Gang, GangKey, PodSet, TopologyConstraintInfo, single
from spinney.scheduler.fairshare import GPU, Amounts, QueueInfo
from spinney.scheduler.framework.results import CycleResult
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.topology.levels import TopologyLevels

HOST, RACK, BLOCK = "kubernetes.io/hostname", "example.com/rack", "example.com/block"
GPUS = 8
NODES_PER_RACK = 16
RACKS_PER_BLOCK = 16
SIZES = (8, 16, 32, 64, 128, 256, 512)
NAMESPACE = "bench"
PLAIN: Mapping[str, str] = {"cpu": "4", "memory": "32Gi", "nvidia.com/gpu": "1"}
CLASSES, QUEUES, DEPARTMENTS = 200, 100, 10
_APART_EVERY, _APART_UP_TO = 10, 64


class Work(NamedTuple):
    """A gang of one-GPU pods; those that are ``apart`` share no node, those that are ``free`` may spread."""

    name: str
    size: int
    requests: Mapping[str, str] = PLAIN
    queue: str = "default-queue"
    apart: bool = False
    free: bool = False


def uniform_work(nodes: int, seed: int) -> Iterator[Work]:
    """Yield gangs of one kind that together ask for a little more than the cluster has."""
    chance = random.Random(seed)
    asked, number = 0, 0
    while asked < nodes * GPUS * 1.1:
        size = chance.choice(SIZES)
        yield Work(f"gang-{number:05d}", size)
        asked += size
        number += 1


def alike_work(nodes: int, size: int, *, free: bool) -> Iterator[Work]:
    """Yield gangs of one size that fill the cluster."""
    for number in range(nodes * GPUS // size):
        yield Work(f"gang-{number:05d}", size, free=free)


def mixed_work(nodes: int, seed: int) -> Iterator[Work]:
    """Yield the same gangs in 200 request classes and 100 queues; the pods of some refuse to share a node."""
    for number, work in enumerate(uniform_work(nodes, seed)):
        kind = number % CLASSES
        yield work._replace(
            requests={**PLAIN, "cpu": f"{1000 + 50 * (kind % 20)}m", "memory": f"{8 + kind // 20}Gi"},
            queue=f"queue-{number % QUEUES:03d}",
            apart=number % _APART_EVERY == 0 and work.size <= _APART_UP_TO,
        )


def a_node(number: int) -> Node:
    """Return an eight-GPU node in its rack and block."""
    name, rack = f"node-{number:05d}", number // NODES_PER_RACK
    return Node(
        metadata=Metadata(
            name=name,
            labels={HOST: name, RACK: f"rack-{rack:04d}", BLOCK: f"block-{rack // RACKS_PER_BLOCK:03d}"},
        ),
        status=NodeStatus(
            allocatable={"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": str(GPUS)},
            conditions=(NodeCondition(type="Ready", status="True"),),
        ),
    )


def a_pod(work: Work, number: int, *, node: str = "") -> Pod:
    """Return a pod of a gang, pending or running."""
    name = f"{work.name}-{number:03d}"
    labels = {"app": work.name}
    term = PodAffinityTerm(topology_key=HOST, label_selector=LabelSelector(match_labels=labels))
    apart = Affinity(pod_anti_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=(term,)))
    resources = ResourceRequirements(requests=dict(work.requests))
    return Pod(
        metadata=Metadata(
            name=name, namespace=NAMESPACE, uid=name, labels=labels, annotations={KAI_POD_GROUP: work.name}
        ),
        spec=PodSpec(
            scheduler_name="kai-scheduler",
            node_name=node,
            affinity=apart if work.apart else None,
            containers=(Container(name="main", resources=resources),),
        ),
        status=PodStatus(phase="Running" if node else "Pending"),
    )


def a_gang(work: Work) -> Gang:
    """Return a gang that wants one rack and needs one block, unless it is free."""
    constraint = TopologyConstraintInfo("fabric", required=BLOCK, preferred=RACK)
    return Gang(
        key=GangKey("kai", NAMESPACE, work.name),
        root=single(PodSet(DEFAULT_POD_SET, work.size), topology=None if work.free else constraint),
        uid=work.name,
        queue=work.queue,
        priority=50,
    )


def a_cluster(nodes: int) -> Inventory:
    """Return an inventory with nodes and their topology."""
    inventory = Inventory()
    inventory.put_topology(TopologyLevels("fabric", (BLOCK, RACK)))
    for number in range(nodes):
        inventory.apply(a_node(number))
    return inventory


def put_queues(inventory: Inventory, nodes: int) -> None:
    """Divide the cluster among a hundred queues in ten departments."""
    gpus = GPU * GPUS * nodes
    for number in range(DEPARTMENTS):
        quota = Amounts(gpu=gpus // DEPARTMENTS)
        inventory.put_queue(QueueInfo(name=f"department-{number}", quota=quota, created=float(number)))
    for number in range(QUEUES):
        quota, parent = Amounts(gpu=gpus // QUEUES), f"department-{number % DEPARTMENTS}"
        inventory.put_queue(QueueInfo(name=f"queue-{number:03d}", parent=parent, quota=quota, created=float(number)))


def put_agents(inventory: Inventory, count: int) -> None:
    """Run a small pod on each of ``count`` nodes; the pods refuse to share a node with their own kind, as agents do."""
    work = Work("agent", count, {"cpu": "100m", "memory": "128Mi"}, apart=True, free=True)
    if count:
        inventory.put_gang(a_gang(work))
    for number in range(count):
        inventory.apply(a_pod(work, number, node=f"node-{number:05d}"))


def put_work(inventory: Inventory, work: Work) -> None:
    """Add a gang and its pending pods."""
    inventory.put_gang(a_gang(work))
    for number in range(work.size):
        inventory.apply(a_pod(work, number))


def check(result: CycleResult, asked: Mapping[str, Work], nodes: int) -> None:
    """Verify the outcome from the binds alone: room, gangs whole, one block each, apart who must be, no pod twice."""
    used = Counter(bind.node for bind in result.binds)
    assert max(used.values()) <= GPUS, "a node was given more than it has"
    assert len({bind.pod for bind in result.binds}) == len(result.binds), "a pod was bound twice"
    by_gang: dict[str, list[int]] = defaultdict(list)
    for bind in result.binds:
        number = int(bind.node.rpartition("-")[2])
        assert number < nodes, f"there is no {bind.node}"
        by_gang[bind.gang.name].append(number)
    for gang, places in by_gang.items():
        assert len(places) == asked[gang].size, f"{gang} is partial"
        blocks = {place // (NODES_PER_RACK * RACKS_PER_BLOCK) for place in places}
        assert asked[gang].free or len(blocks) == 1, f"{gang} is split"
        assert not asked[gang].apart or len(set(places)) == len(places), f"pods of {gang} share a node"


def in_one_rack(result: CycleResult, asked: Mapping[str, Work]) -> tuple[int, int]:
    """Return how many of the placed gangs that a rack could hold are in one, and how many there are."""
    racks: dict[str, set[int]] = defaultdict(set)
    for bind in result.binds:
        racks[bind.gang.name].add(int(bind.node.rpartition("-")[2]) // NODES_PER_RACK)
    small = [gang for gang in racks if asked[gang].size <= NODES_PER_RACK * (1 if asked[gang].apart else GPUS)]
    return sum(len(racks[gang]) == 1 for gang in small), len(small)
