"""How fast the session scheduler decides, how well it fills, and how soon a session opens.

    python benchmarks/scheduler/decisions.py [--nodes 10000] [--seed 0] [--profile]

Three measurements, none of which talks to an API server:

* decisions: eight-GPU nodes in racks and blocks; gangs of 8 to 512 one-GPU pods, each in one rack where it can and in
  one block where it must; default plugins; one cycle until nothing more fits. An independent checker then verifies that
  no node is over-committed, no gang is split or partial, and every gang lies in one block.
* session: 4 000 nodes, 140 000 running pods, 1 000 watch events, then snapshot and session open.
* verdict: one more gang on the full cluster: refusal with its reasons.
"""

import argparse
import cProfile
import pstats
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from spinney.api.core import Container, Node, NodeCondition, NodeStatus, Pod, PodSpec, PodStatus, ResourceRequirements
from spinney.api.labels import KAI_POD_GROUP
from spinney.api.meta import Metadata
from spinney.cluster.pods import PodKey
from spinney.gangs.tree import DEFAULT_POD_SET, Gang, GangKey, PodSet, TopologyConstraint, single
from spinney.scheduler.collecting import collection_held_off
from spinney.scheduler.config import DEFAULT_ACTIONS, SchedulerConfig
from spinney.scheduler.inventory import Inventory
from spinney.scheduler.results import CycleResult
from spinney.scheduler.scheduler import Scheduler
from spinney.scheduler.topology.levels import Topology

RACK, BLOCK = "example.com/rack", "example.com/block"
GPUS = 8
NODES_PER_RACK = 16
RACKS_PER_BLOCK = 16
SIZES = (8, 16, 32, 64, 128, 256, 512)
PODS = ResourceRequirements(requests={"cpu": "4", "memory": "32Gi", "nvidia.com/gpu": "1"})
NAMESPACE = "bench"


def a_node(number: int) -> Node:
    """Return an eight-GPU node in its rack and block."""
    rack = number // NODES_PER_RACK
    return Node(
        metadata=Metadata(
            name=f"node-{number:05d}",
            labels={RACK: f"rack-{rack:04d}", BLOCK: f"block-{rack // RACKS_PER_BLOCK:03d}"},
        ),
        status=NodeStatus(
            allocatable={"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": str(GPUS)},
            conditions=(NodeCondition(type="Ready", status="True"),),
        ),
    )


def a_pod(gang: str, number: int, *, node: str = "") -> Pod:
    """Return a one-GPU pod of a gang."""
    name = f"{gang}-{number:03d}"
    return Pod(
        metadata=Metadata(name=name, namespace=NAMESPACE, uid=name, annotations={KAI_POD_GROUP: gang}),
        spec=PodSpec(
            scheduler_name="kai-scheduler", node_name=node, containers=(Container(name="main", resources=PODS),)
        ),
        status=PodStatus(phase="Running" if node else "Pending"),
    )


def a_gang(name: str, size: int) -> Gang:
    """Return a gang that wants one rack and needs one block."""
    constraint = TopologyConstraint("fabric", required=BLOCK, preferred=RACK)
    return Gang(
        key=GangKey("kai", NAMESPACE, name),
        root=single(PodSet(DEFAULT_POD_SET, size), topology=constraint),
        uid=name,
        queue="default-queue",
        priority=50,
    )


def a_cluster(nodes: int) -> Inventory:
    """Return an inventory with nodes and their topology."""
    inventory = Inventory()
    inventory.put_topology(Topology("fabric", (BLOCK, RACK)))
    for number in range(nodes):
        inventory.apply(a_node(number))
    return inventory


def gangs_to_fill(nodes: int, chance: random.Random) -> Iterator[tuple[str, int]]:
    """Yield gangs that together ask for a little more than the cluster has."""
    asked, number = 0, 0
    while asked < nodes * GPUS * 1.1:
        size = chance.choice(SIZES)
        yield f"gang-{number:05d}", size
        asked += size
        number += 1


def labels_of(inventory: Inventory, name: str) -> Mapping[str, str]:
    """Return the labels of a node."""
    node = inventory.cluster.table.nodes[inventory.cluster.table.row(name)]
    assert node is not None
    return node.metadata.labels


def check(inventory: Inventory, result: CycleResult, sizes: dict[str, int]) -> None:
    """Verify the outcome from the binds alone: room, gangs whole, one block each, no pod twice."""
    used = Counter(bind.node for bind in result.binds)
    assert max(used.values()) <= GPUS, "a node was given more than it has"
    assert len({bind.pod for bind in result.binds}) == len(result.binds), "a pod was bound twice"
    by_gang: dict[str, list[str]] = defaultdict(list)
    for bind in result.binds:
        by_gang[bind.gang.name].append(bind.node)
    for gang, places in by_gang.items():
        assert len(places) == sizes[gang], f"{gang} is partial"
        blocks = {labels_of(inventory, node)[BLOCK] for node in places}
        assert len(blocks) == 1, f"{gang} is split over blocks"


def measure_decisions(nodes: int, seed: int, *, profile: bool) -> None:
    """Fill a cluster in one cycle."""
    inventory = a_cluster(nodes)
    sizes: dict[str, int] = {}
    for gang, size in gangs_to_fill(nodes, random.Random(seed)):
        sizes[gang] = size
        inventory.put_gang(a_gang(gang, size))
        for number in range(size):
            inventory.apply(a_pod(gang, number))
    scheduler = Scheduler(SchedulerConfig(actions=("allocate",)), inventory)
    profiler = cProfile.Profile(time.process_time) if profile else None
    if profiler is not None:
        profiler.enable()
    start, cpu = time.perf_counter(), time.process_time()
    session = scheduler.open_session()
    opened = time.perf_counter()
    scheduler.run_actions(session)
    session.close()
    seconds, busy = time.perf_counter() - start, time.process_time() - cpu
    if profiler is not None:
        profiler.disable()
        pstats.Stats(profiler).sort_stats("tottime").print_stats(40)
    result = scheduler.result(session)
    check(inventory, result, sizes)
    placed = len(result.binds)
    gangs = len({bind.gang for bind in result.binds})
    racks: dict[GangKey, set[str]] = defaultdict(set)
    for bind in result.binds:
        racks[bind.gang].add(labels_of(inventory, bind.node)[RACK])
    small = [gang for gang in racks if sizes[gang.name] <= NODES_PER_RACK * GPUS]
    together = sum(len(racks[gang]) == 1 for gang in small)
    print(f"decisions: {placed} pods in {gangs} of {len(sizes)} gangs on {nodes} nodes in {seconds:.3f} s")
    print(
        f"  {placed / seconds:,.0f} pods/s, {placed / busy:,.0f} per CPU second\n"
        f"  session opened in {1000 * (opened - start):.1f} ms, "
        f"{placed / (nodes * GPUS):.2%} of GPUs filled, {together}/{len(small)} rack-sized gangs in one rack"
    )
    slowest = sorted(result.seconds.items(), key=lambda item: -item[1])[:6]
    print("  " + ", ".join(f"{plugin}.{hook} {1000 * spent:.0f} ms" for (plugin, hook), spent in slowest))
    measure_verdict(inventory, result)


def measure_verdict(inventory: Inventory, result: CycleResult) -> None:
    """Ask for one more gang on the cluster that was just filled."""
    for bind in result.binds:
        inventory.cluster.assume(bind.pod, bind.node)
    for unschedulable in result.unschedulable:
        members = inventory.gangs.snapshot().gangs.get(unschedulable.gang)
        for key in list(members.pods) if members is not None else ():
            inventory.cluster.delete_pod(key)
        inventory.remove_gang(unschedulable.gang)
    inventory.put_gang(a_gang("one-more", 512))
    for number in range(512):
        inventory.apply(a_pod("one-more", number))
    for actions in (("allocate",), DEFAULT_ACTIONS):
        _time_verdict(Scheduler(SchedulerConfig(actions=actions), inventory))


def _time_verdict(scheduler: Scheduler, rounds: int = 5) -> None:
    taken = []
    for _ in range(rounds):
        session = scheduler.open_session()
        start, cpu = time.perf_counter(), time.process_time()
        with collection_held_off():
            scheduler.run_actions(session)
            (verdict,) = scheduler.result(session).unschedulable
        taken.append((time.perf_counter() - start, time.process_time() - cpu))
        session.close()
    seconds, busy = min(taken)
    print(
        f"verdict: one more gang refused and explained in {1000 * seconds:.2f} ms ({1000 * busy:.2f} ms CPU), "
        f"fastest of {rounds}, by {', '.join(scheduler.config.actions)}\n  {verdict.message[:160]}"
    )


def measure_session(nodes: int = 4_000, pods: int = 140_000, events: int = 1_000) -> None:
    """Open a session on a large cluster after some events."""
    inventory = a_cluster(nodes)
    per_gang = 50
    for number in range(pods // per_gang):
        gang = f"run-{number:05d}"
        inventory.put_gang(a_gang(gang, per_gang))
        for member in range(per_gang):
            node = (number * per_gang + member) % nodes
            inventory.apply(a_small_pod(gang, member, f"node-{node:05d}"))
    scheduler = Scheduler(SchedulerConfig(), inventory)
    scheduler.open_session().close()
    for number in range(events):
        gang = f"run-{number % (pods // per_gang):05d}"
        key = PodKey(NAMESPACE, f"{gang}-{number % per_gang:03d}")
        record = inventory.cluster.pod(key)
        assert record is not None
        inventory.cluster.delete_pod(key)
        inventory.apply(a_small_pod(gang, number % per_gang, record.node))
    start, cpu = time.perf_counter(), time.process_time()
    snapshot = inventory.snapshot()
    taken = time.perf_counter()
    session = scheduler.open_session(snapshot)
    opened, busy = time.perf_counter(), time.process_time() - cpu
    session.close()
    print(
        f"session: {nodes} nodes, {pods} pods, {events} events: snapshot {1000 * (taken - start):.1f} ms, "
        f"open {1000 * (opened - taken):.1f} ms ({1000 * busy:.1f} ms CPU together)"
    )


def a_small_pod(gang: str, number: int, node: str) -> Pod:
    """Return a running pod that needs no GPU."""
    name = f"{gang}-{number:03d}"
    small = ResourceRequirements(requests={"cpu": "1", "memory": "1Gi"})
    return Pod(
        metadata=Metadata(name=name, namespace=NAMESPACE, uid=name, annotations={KAI_POD_GROUP: gang}),
        spec=PodSpec(
            scheduler_name="kai-scheduler", node_name=node, containers=(Container(name="main", resources=small),)
        ),
        status=PodStatus(phase="Running"),
    )


def main() -> None:
    """Run all measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--only", choices=("decisions", "session"))
    arguments = parser.parse_args()
    if arguments.only != "session":
        measure_decisions(arguments.nodes, arguments.seed, profile=arguments.profile)
    if arguments.only != "decisions":
        measure_session()


if __name__ == "__main__":
    main()
