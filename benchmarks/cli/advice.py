"""How long `spinney why` takes about a gang of 9 000 pods: until its reasons are known, and until changes are proven.

``python -m benchmarks.cli.advice`` prints CPU time, which a busy machine does not lengthen: of the reasons, of the
remedies, and how many changed clusters were tried. The target for the reasons is 3 s. Each situation is a cluster
of 1 000 nodes of 8 GPUs: ``small`` is empty and too small, ``busy`` runs 250 gangs, ``queue`` has a limit in the way,
``native`` and ``kai`` are gangs of kube-scheduler and of KAI.
"""

import argparse
import sys
import time
from collections.abc import Callable

from spinney.api.struct import JSON
from spinney.runtime import Runtime
from spinney.sim import Cluster
from spinney.sim.advice.advice import Advisor
from spinney.sim.advice.subjects import find
from spinney.sim.snapshots.snapshot import ClusterSnapshot

TARGET = 3.0
PATIENCE = 10.0
"""What ``spinney why`` allows the search by default, in seconds of the clock."""
NODES, PODS = 1000, 9000


def small() -> ClusterSnapshot:
    """Return a gang that an empty cluster is too small for."""
    cluster = Cluster(f"{NODES}x8")
    cluster.gang("train", pods=PODS, gpus=1)
    return cluster.snapshot()


def busy() -> ClusterSnapshot:
    """Return a gang that would fit if most of 250 others were not there."""
    cluster = Cluster(f"{NODES}x8")
    for number in range(250):
        cluster.gang(f"old-{number}", pods=4, gpus=4)
    cluster.step()
    cluster.gang("train", pods=PODS, minimum=7500, gpus=1)
    return cluster.snapshot()


def queue() -> ClusterSnapshot:
    """Return a gang that the limits of its queue and of the queue above keep out."""
    cluster = Cluster(f"{NODES + 200}x8")
    cluster.queue("org", quota=4000, limit=8500)
    cluster.queue("team", quota=4000, limit=8000, parent="org")
    cluster.gang("train", pods=PODS, gpus=1, queue="team")
    return cluster.snapshot()


def native() -> ClusterSnapshot:
    """Return a PodGroup of kube-scheduler that the cluster is too small for."""
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": PODS}}},
    }
    return _with_pods(group, "default-scheduler", spec={"schedulingGroup": {"podGroupName": "train"}})


def kai() -> ClusterSnapshot:
    """Return a PodGroup of KAI that the cluster is too small for."""
    group = {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"minMember": PODS, "queue": "default-queue"},
    }
    return _with_pods(group, "kai-scheduler", annotations={"pod-group-name": "train"})


def _with_pods(
    group: JSON, scheduler: str, *, annotations: JSON | None = None, spec: JSON | None = None
) -> ClusterSnapshot:
    cluster = Cluster(f"{NODES}x8")
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    pods: list[JSON] = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"train-{number}", "namespace": "default", "annotations": annotations or {}},
            "spec": {"schedulerName": scheduler, "containers": [container], **(spec or {})},
        }
        for number in range(PODS)
    ]
    cluster.submit(group, *pods)
    return cluster.snapshot()


SITUATIONS: dict[str, Callable[[], ClusterSnapshot]] = {
    each.__name__: each for each in (small, busy, queue, native, kai)
}


def main() -> int:
    """Measure, print, and return 1 if the target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("situations", nargs="*", choices=[[], *SITUATIONS], help="which; by default all")
    worst = 0.0
    for name in parser.parse_args().situations or SITUATIONS:
        snapshot = SITUATIONS[name]()
        reasons, _ = measured(snapshot, best=0)
        whole, tried = measured(snapshot, best=3)
        worst = max(worst, reasons)
        print(f"{name:8} reasons {reasons:5.2f} s CPU, with remedies {whole:5.2f} s CPU, {tried} clusters tried")
    print(f"reasons after at most {worst:.2f} s CPU (target {TARGET:g} s)")
    return int(worst > TARGET)


def measured(snapshot: ClusterSnapshot, *, best: int) -> tuple[float, int]:
    """Return the CPU time of an answer with at most ``best`` remedies, and how many clusters were tried for it."""
    runtime = Runtime.system()
    began = time.process_time()
    advisor = Advisor(snapshot, runtime=runtime, best=best, patience=PATIENCE)
    answer = advisor.answer(find(snapshot, "train", "default"))
    taken = time.process_time() - began
    runtime.executor.close()
    return taken, answer.tried


if __name__ == "__main__":
    sys.exit(main())
