"""How soon a cycle can begin on a large cluster, and what knowing it costs: events, snapshot, session open, memory.

    python -m benchmarks.scheduler.sessions

4 000 nodes and 140 000 running pods; 1 000 events come in, a snapshot is taken and a session opened with the default
plugins; each round means other pods, and the fastest counts. Memory is the most the process ever held, so this is best
run in a process of its own.
"""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.load.processes import peak_memory
from benchmarks.scheduler import shapes
from spinney.cluster.pods import PodKey
from spinney.runtime.collection import settle_garbage_collector
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.cycle.scheduler import Scheduler

PODS_PER_GANG = 50
ROUNDS = 5
TARGET_SECONDS, TARGET_MEMORY = 0.05, 800
_SMALL = {"cpu": "1", "memory": "1Gi"}


@dataclass(frozen=True)
class Opening:
    """What it took to take events in and open a session, in seconds, and what the process held, in MiB."""

    nodes: int
    pods: int
    events: int
    taking_in: float
    snapshot: float
    opening: float
    busy: float
    memory: float

    def __str__(self) -> str:
        within = f"{TARGET_SECONDS * 1000:.0f} ms", f"{TARGET_MEMORY} MB"
        return (
            f"{self.nodes} nodes, {self.pods} pods: {self.events} events {1000 * self.taking_in:.1f} ms, "
            f"snapshot {1000 * self.snapshot:.1f} ms, open {1000 * self.opening:.1f} ms; "
            f"{1000 * self.busy:.1f} ms CPU together (at most {within[0]} is wanted)\n"
            f"  {self.memory:.0f} MiB were held at most (less than {within[1]} is wanted)"
        )


def measure(nodes: int = 4_000, pods: int = 140_000, events: int = 1_000) -> Opening:
    """Fill a cluster with running pods, let some be replaced, and open a session; return the fastest of some rounds."""
    inventory = shapes.a_cluster(nodes)
    gangs = [shapes.Work(f"run-{number:05d}", PODS_PER_GANG, _SMALL) for number in range(pods // PODS_PER_GANG)]
    for number, gang in enumerate(gangs):
        inventory.put_gang(shapes.a_gang(gang))
        for member in range(PODS_PER_GANG):
            node = (number * PODS_PER_GANG + member) % nodes
            inventory.apply(shapes.a_pod(gang, member, node=f"node-{node:05d}"))
    scheduler = Scheduler(SchedulerConfig(), inventory)
    scheduler.open_session().close()
    rounds = [
        _open(scheduler, [gangs[(part * events + n) % len(gangs)] for n in range(events // 2)])
        for part in range(ROUNDS)
    ]
    taking_in, snapshot, opening, busy = min(rounds, key=lambda each: each[-1])
    return Opening(
        nodes=nodes,
        pods=pods,
        events=events,
        taking_in=taking_in,
        snapshot=snapshot,
        opening=opening,
        busy=busy,
        memory=peak_memory(os.getpid()),
    )


def _open(scheduler: Scheduler, gangs: Sequence[shapes.Work]) -> tuple[float, float, float, float]:
    """Let a pod of each gang go and come again, then open a session; return how long each step took, and CPU time."""
    inventory, news = scheduler.inventory, []
    for number, gang in enumerate(gangs):
        key = PodKey(shapes.NAMESPACE, f"{gang.name}-{number % PODS_PER_GANG:03d}")
        record = inventory.cluster.pod(key)
        assert record is not None
        news.append((key, shapes.a_pod(gang, number % PODS_PER_GANG, node=record.node)))
    start, cpu = time.perf_counter(), time.process_time()
    for key, pod in news:
        inventory.cluster.delete_pod(key)
        inventory.apply(pod)
    taken_in = time.perf_counter()
    snapshot = inventory.snapshot()
    snapped = time.perf_counter()
    session = scheduler.open_session(snapshot)
    opened, busy = time.perf_counter(), time.process_time() - cpu
    session.close()
    return taken_in - start, snapped - taken_in, opened - snapped, busy


if __name__ == "__main__":
    settle_garbage_collector()  # as ``spinney scheduler`` does
    print(f"session: {measure()}")
