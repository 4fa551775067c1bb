"""What the specification says becomes of each published workload, worked out by hand.

Names follow from section 2.1 of the specification, gangs from 3.1: a base gang holds the standalone cliques and the
first ``minAvailable`` replicas of each scaling group; every further replica is a gang of its own, numbered from zero.
"""

from dataclasses import dataclass, field
from typing import Literal

End = Literal["ready", "unschedulable", "empty"]


@dataclass(frozen=True)
class Expected:
    """The gangs of a workload (group to pods and minimum), and everything else that is made for it."""

    gangs: dict[str, dict[str, tuple[int, int]]]
    groups: tuple[str, ...] = ()
    autoscalers: tuple[str, ...] = ()
    starts_after: dict[str, tuple[str, ...]] = field(default_factory=dict)
    ordered: bool = False  # some clique starts after another
    end: End = "ready"
    replicas: int | None = None  # brought up with fewer replicas than written, where there are hundreds

    @property
    def cliques(self) -> dict[str, int]:
        """Return how many pods each PodClique has."""
        return {name: pods for groups in self.gangs.values() for name, (pods, _) in groups.items()}

    @property
    def pods(self) -> int:
        """Return how many pods there are."""
        return sum(self.cliques.values())


def ten_pods(name: str, a: tuple[int, int], *, ordered: bool = False, **starts_after: tuple[str, ...]) -> Expected:
    """Return the ten pods of workload 1 and its kin, all in the base gang."""
    groups = {f"{name}-0-pc-a": a}
    for j in (0, 1):
        groups |= {f"{name}-0-sg-x-{j}-pc-b": (1, 1), f"{name}-0-sg-x-{j}-pc-c": (3, 3)}
    after = {
        f"{name}-0-sg-x-{j}-{clique.replace('_', '-')}": parents
        for j in (0, 1)
        for clique, parents in starts_after.items()
    }
    return Expected({f"{name}-0": groups}, groups=(f"{name}-0-sg-x",), starts_after=after, ordered=ordered)


def experts(name: str, replicas: int) -> Expected:
    """Return pairs of expert workers, each pair a gang."""
    gangs = {f"{name}-{i}": {f"{name}-{i}-expert-worker": (2, 2)} for i in range(replicas)}
    return Expected(gangs, end="ready" if replicas else "empty", replicas=replicas)


def one_clique(name: str, pods: int, *, end: End = "ready", replicas: int = 1) -> Expected:
    """Return a workload of one clique called worker."""
    return Expected({f"{name}-{i}": {f"{name}-{i}-worker": (pods, pods)} for i in range(replicas)}, end=end)


EXPECTED: dict[str, Expected] = {
    "workload1": ten_pods("workload1", (2, 2)),
    "workload1-gt": ten_pods("workload1-gt", (2, 2)),
    "workload-ondelete": ten_pods("workload-ondelete", (2, 1)),
    "workload3": ten_pods(
        "workload3",
        (2, 2),
        ordered=True,
        pc_b=("workload3-0-pc-a",),
        pc_c=("workload3-0-sg-x-0-pc-b", "workload3-0-sg-x-1-pc-b"),
    ),
    "workload5": ten_pods(
        "workload5",
        (2, 2),
        ordered=True,
        pc_c=("workload5-0-pc-a",),
        pc_b=("workload5-0-sg-x-0-pc-c", "workload5-0-sg-x-1-pc-c"),
    ),
    "simple1": Expected(
        {
            "simple1-0": {
                "simple1-0-pca": (3, 3),
                "simple1-0-pcd": (2, 2),
                "simple1-0-sga-0-pcb": (2, 2),
                "simple1-0-sga-0-pcc": (2, 2),
            }
        },
        groups=("simple1-0-sga",),
        autoscalers=("simple1-0-pca", "simple1-0-sga"),
    ),
    "simple2-explicit-startup-order": Expected(
        {
            "simple2-0": {
                "simple2-0-pca": (3, 3),
                "simple2-0-pcb": (2, 2),
                "simple2-0-pcc": (2, 2),
                "simple2-0-pcd": (2, 2),
            }
        },
        autoscalers=("simple2-0-pca",),
        starts_after={
            "simple2-0-pcb": ("simple2-0-pca",),
            "simple2-0-pcc": ("simple2-0-pca",),
            "simple2-0-pcd": ("simple2-0-pcb", "simple2-0-pcc"),
        },
        ordered=True,
    ),
    "standalone-env-vars": Expected({"env-demo-standalone-0": {"env-demo-standalone-0-frontend": (2, 2)}}),
    "multi-node-disaggregated": Expected(
        {
            "multinode-disaggregated-0": {
                "multinode-disaggregated-0-prefill-0-pleader": (1, 1),
                "multinode-disaggregated-0-prefill-0-pworker": (4, 4),
                "multinode-disaggregated-0-decode-0-dleader": (1, 1),
                "multinode-disaggregated-0-decode-0-dworker": (2, 2),
            },
            "multinode-disaggregated-0-prefill-0": {
                "multinode-disaggregated-0-prefill-1-pleader": (1, 1),
                "multinode-disaggregated-0-prefill-1-pworker": (4, 4),
            },
        },
        groups=("multinode-disaggregated-0-decode", "multinode-disaggregated-0-prefill"),
    ),
    "complete-inference-pipeline": Expected(
        {
            "comp-inf-ppln-0": {
                "comp-inf-ppln-0-frontend": (2, 2),
                "comp-inf-ppln-0-vision-encoder": (1, 1),
                "comp-inf-ppln-0-prefill-0-pleader": (1, 1),
                "comp-inf-ppln-0-prefill-0-pworker": (4, 4),
                "comp-inf-ppln-0-decode-cluster-0-dleader": (1, 1),
                "comp-inf-ppln-0-decode-cluster-0-dworker": (2, 2),
            }
        },
        groups=("comp-inf-ppln-0-decode-cluster", "comp-inf-ppln-0-prefill"),
    ),
    "tas-hierarchy": Expected(
        {
            "tas-hierarchy-0": {
                f"tas-hierarchy-0-inference-group-{j}-{clique}": (2, 2)
                for j in (0, 1)
                for clique in ("prefill", "decode")
            }
        },
        groups=("tas-hierarchy-0-inference-group",),
    ),
    "tas-host-level": one_clique("tas-host-level", 2),
    "tas-insuffic": one_clique("tas-insuffic", 10, end="unschedulable"),
    "tas-multirep": one_clique("tas-multirep", 2, replicas=2),
    "tas-pcs-pclq": one_clique("tas-pcs-pclq", 2),
    "tas-pcsg-scale": Expected(
        {
            "tas-pcsg-scale-0": {"tas-pcsg-scale-0-inference-group-0-worker": (2, 2)},
            "tas-pcsg-scale-0-inference-group-0": {"tas-pcsg-scale-0-inference-group-1-worker": (2, 2)},
            "tas-pcsg-scale-0-inference-group-1": {"tas-pcsg-scale-0-inference-group-2-worker": (2, 2)},
        },
        groups=("tas-pcsg-scale-0-inference-group",),
    ),
    "tas-topology-condition": Expected({}, end="empty"),
    "workload-resource-sharing": Expected(
        {
            "rs-test-0": {
                "rs-test-0-worker-a": (1, 1),
                "rs-test-0-sga-0-worker-b": (1, 1),
                "rs-test-0-sga-1-worker-b": (1, 1),
            }
        },
        groups=("rs-test-0-sga",),
        end="unschedulable",  # nobody has the devices
    ),
    "mnnvl-gpu-default": Expected(
        {"mnnvl-gpu-default-0": {"mnnvl-gpu-default-0-gpu-worker": (1, 1)}},
        end="unschedulable",  # the claim is made by the driver, which is not here
    ),
    "scale-up-from-zero": experts("scale-up-from-zero", 0),
    "scale-up": experts("scale-up", 20),
    "scale-down": experts("scale-down", 20),
    "scale-test-1000": experts("scale-test-1000", 20),
}

NOT_WORKLOADS = {"queues"}
"""Files that hold no PodCliqueSet."""
