"""How long searches for victims take, beside the figures KAI publishes for the same shapes.

    python benchmarks/scheduler/victims.py [--only ROW] [--nodes 10 50 100] [--profile]

Clusters are of the shape KAI's own benchmarks use: eight-GPU nodes, four queues in two departments, everything full of
running jobs of ``queue-0``. Only decisions are measured: the session is open when the clock starts, and no API server
takes part. Every outcome is checked from what was committed: nothing over-committed, the job whole, no victim outside
the rule. KAI's figures were taken on other hardware, and its benchmarks include about 100 ms of set-up each; those
marked * are of a running system with an API server, where the search dominates.
"""

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

import structlog

from benchmarks.scheduler.filling import profiled
from spinney.api.core import Container, Node, NodeStatus, Pod, PodSpec, PodStatus, ResourceRequirements
from spinney.api.labels import KAI_POD_GROUP
from spinney.api.meta import Metadata
from spinney.gangs.tree import DEFAULT_POD_SET, Gang, GangKey, PodSet, single
from spinney.scheduler.config import SchedulerConfig, VictimSearchLimits
from spinney.scheduler.cycle.scheduler import Scheduler
from spinney.scheduler.fairshare import GPU, Amounts, QueueInfo
from spinney.scheduler.framework.session import Session
from spinney.scheduler.intake.inventory import Inventory

GPUS = 8
NAMESPACE = "bench"
UNBOUNDED = -1


class Row(NamedTuple):
    """One measurement: what is searched for, where, and what KAI reports."""

    name: str
    nodes: int
    build: Callable[[int], Inventory]
    actions: tuple[str, ...]
    kai: str
    placed: Callable[[int], int]
    """How many pods must have been promised a node in the end."""


def a_node(number: int) -> Node:
    """Return an eight-GPU node."""
    return Node(
        metadata=Metadata(name=f"node-{number:04d}"),
        status=NodeStatus(allocatable={"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": str(GPUS)}),
    )


def a_pod(gang: str, number: int, gpus: int, *, node: str = "") -> Pod:
    """Return a pod of a gang, running on ``node`` or pending."""
    name = f"{gang}-{number:04d}"
    requests: dict[str, str | int | float] = {"cpu": str(gpus), "memory": f"{gpus}Gi", "nvidia.com/gpu": gpus}
    return Pod(
        metadata=Metadata(name=name, namespace=NAMESPACE, uid=name, annotations={KAI_POD_GROUP: gang}),
        spec=PodSpec(
            scheduler_name="kai-scheduler",
            node_name=node,
            containers=(Container(name="main", resources=ResourceRequirements(requests=requests)),),
        ),
        status=PodStatus(phase="Running" if node else "Pending"),
    )


def a_cluster(nodes: int, quotas: tuple[int, int, int, int]) -> Inventory:
    """Return nodes, and four queues of these GPU quotas in two departments."""
    inventory = Inventory()
    for number in range(nodes):
        inventory.apply(a_node(number))
    for number in range(2):
        quota = sum(quotas[number::2])
        inventory.put_queue(QueueInfo(name=f"department-{number}", quota=_gpus(quota), created=float(number)))
    for number, quota in enumerate(quotas):
        inventory.put_queue(
            QueueInfo(
                name=f"queue-{number}", parent=f"department-{number % 2}", quota=_gpus(quota), created=float(number)
            )
        )
    return inventory


def put(inventory: Inventory, gang: str, queue: int, places: Iterator[str] | list[str], gpus: int) -> None:
    """Put a gang into a queue, one pod per place; an empty place is a pending pod."""
    pods = list(places)
    inventory.put_gang(
        Gang(
            key=GangKey("kai", NAMESPACE, gang),
            root=single(PodSet(DEFAULT_POD_SET, len(pods))),
            uid=gang,
            queue=f"queue-{queue}",
            priority=50,
        )
    )
    for number, node in enumerate(pods):
        inventory.apply(a_pod(gang, number, gpus, node=node))


def fill(inventory: Inventory, nodes: int, *, queue: int = 0, gpus: int = 1) -> None:
    """Fill every node with one-pod jobs."""
    for node in range(nodes):
        for number in range(GPUS // gpus):
            put(inventory, f"run-{node:04d}-{number}", queue, [f"node-{node:04d}"], gpus)


def large_job(nodes: int) -> Inventory:
    """Half of a full cluster is asked for by one job of whole nodes."""
    half = nodes * GPUS // 2
    inventory = a_cluster(nodes, (half, half, 0, 0))
    fill(inventory, nodes)
    put(inventory, "large", 1, [""] * (nodes // 2), GPUS)
    return inventory


def one_gpu_too_few(nodes: int) -> Inventory:
    """Ten whole nodes are asked for, and one GPU fewer may be taken."""
    inventory = a_cluster(nodes, (nodes * GPUS - 80 + 1, 80, 0, 0))
    fill(inventory, nodes)
    put(inventory, "refused", 1, [""] * 10, GPUS)
    return inventory


def whole_cluster(nodes: int) -> Inventory:
    """One job asks for every GPU."""
    inventory = a_cluster(nodes, (0, nodes * GPUS, 0, 0))
    fill(inventory, nodes)
    put(inventory, "whole", 1, [""] * nodes, GPUS)
    return inventory


def single_gpu(nodes: int) -> Inventory:
    """One GPU is asked for."""
    inventory = a_cluster(nodes, (nodes * GPUS - 1, 1, 0, 0))
    fill(inventory, nodes)
    put(inventory, "single", 1, [""], 1)
    return inventory


def many_single_gpus(nodes: int) -> Inventory:
    """As many one-GPU jobs wait as run; half of them are entitled to a place."""
    half = nodes * GPUS // 2
    inventory = a_cluster(nodes, (half, half, 0, 0))
    fill(inventory, nodes)
    for number in range(nodes * GPUS):
        put(inventory, f"wait-{number:05d}", 1, [""], 1)
    return inventory


def distributed_jobs(nodes: int) -> Inventory:
    """Jobs of ten whole nodes each ask for the whole cluster."""
    inventory = a_cluster(nodes, (0, nodes * GPUS, 0, 0))
    fill(inventory, nodes)
    for number in range(nodes // 10):
        put(inventory, f"wait-{number:03d}", 1, [""] * 10, GPUS)
    return inventory


def fragments(nodes: int) -> Inventory:
    """Every node is half full of one four-GPU job; jobs of ten whole nodes wait."""
    inventory = a_cluster(nodes, (nodes * GPUS, 0, 0, 0))
    for node in range(nodes):
        put(inventory, f"run-{node:04d}", 0, [f"node-{node:04d}"], GPUS // 2)
    for number in range(nodes // 2 // 10 - 1):
        put(inventory, f"wait-{number:03d}", 0, [""] * 10, GPUS)
    return inventory


def rows(sizes: list[int]) -> list[Row]:
    """Return the measurements, KAI's figures with them."""
    published = {10: "105 ms", 50: "131 ms", 100: "213 ms", 200: "728 ms", 500: "9.17 s", 1000: "76.3 s"}
    return [
        *(
            Row("reclaim large job", size, large_job, ("reclaim",), published.get(size, "-"), lambda n: n // 2)
            for size in sizes
        ),
        Row("verdict: 80 GPUs, one too few", 500, one_gpu_too_few, ("reclaim",), "249.5 s *", lambda n: 0),
        Row("reclaim 250 pods, 4000 victims", 500, large_job, ("reclaim",), "102 s *", lambda n: n // 2),
        Row("reclaim 500 pods, 4000 victims", 500, whole_cluster, ("reclaim",), "85 s *", lambda n: n),
        Row("reclaim a single GPU", 500, single_gpu, ("reclaim",), "13.9 s *", lambda n: 1),
        Row("reclaim by 4000 one-GPU jobs", 500, many_single_gpus, ("reclaim",), "165.6 s", lambda n: n * GPUS // 2),
        Row("50 distributed 10-pod jobs", 500, distributed_jobs, ("reclaim",), "11 m 57 s *", lambda n: n),
        Row("consolidate for 24 10-pod jobs", 500, fragments, ("consolidation",), "7 m 36 s * (41)", lambda n: -1),
    ]


def check(session: Session, row: Row) -> str:
    """Verify what was committed, and return it in words."""
    table = session.nodes.table
    rows_ = session.nodes.all.rows
    assert (table.idle[rows_] + table.releasing[rows_] >= 0).all(), "a node was promised more than it has"
    assert all(eviction.beneficiary is not None for eviction in session.evictions), "an eviction without a reason"
    promised = Counter(promise.gang for promise in session.pipelines)
    for gang, count in promised.items():
        assert count == len(session.snapshot.gangs.gangs[gang].pods), f"{gang} is partial"
    asked = [pods for gang, pods in promised.items() if not gang.name.startswith("run-")]
    wanted = row.placed(row.nodes)
    assert wanted < 0 or sum(asked) == wanted, f"{sum(asked)} pods were placed, expected {wanted}"
    return f"{sum(asked)} pods placed, {len(session.evictions)} evicted"


def measure(row: Row, *, profile: bool) -> None:
    """Run the action of a row once on an open session."""
    inventory = row.build(row.nodes)
    # Unlimited time: the figures say how long a search takes, not when it is broken off.
    unlimited = VictimSearchLimits(action_seconds=1e9, job_seconds=1e9)
    config = SchedulerConfig(
        actions=row.actions, explain=False, max_consolidation_preemptees=-1, victim_search=unlimited
    )
    scheduler = Scheduler(config, inventory)
    session = scheduler.open_session()
    with profiled(wanted=profile):
        start, cpu = time.perf_counter(), time.process_time()
        scheduler.run_actions(session)
        seconds, busy = time.perf_counter() - start, time.process_time() - cpu
    outcome = check(session, row)
    session.close()
    print(f"{row.name:34} {row.nodes:5}  {_time(seconds):>9} {_time(busy):>9}  {row.kai:>16}   {outcome}", flush=True)


def main() -> None:
    """Run the measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="rows whose name contains this")
    parser.add_argument("--nodes", type=int, nargs="*", default=[10, 50, 100, 200, 500, 1000])
    parser.add_argument("--scale", type=float, default=1.0, help="of the rows with a fixed number of nodes")
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(30))
    print(f"{'search':34} {'nodes':>5}  {'ours':>9} {'CPU':>9}  {'KAI':>16}   outcome")
    for row in rows(arguments.nodes):
        if arguments.only is None or arguments.only in row.name:
            scaled = row if row.nodes in arguments.nodes else row._replace(nodes=int(row.nodes * arguments.scale))
            measure(scaled, profile=arguments.profile)


def _gpus(amount: int) -> Amounts:
    return Amounts(UNBOUNDED, UNBOUNDED, amount * GPU)


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.1f} ms"


if __name__ == "__main__":
    main()
