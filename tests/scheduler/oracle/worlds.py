"""Random small clusters with queues, running and waiting gangs, made from a seed.

Gangs are drawn from a few kinds, so that many ask for the same and differ in names and labels only.
"""

from dataclasses import dataclass
from random import Random

from msgspec.structs import replace

from spinney.api.affinity import Affinity, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from spinney.api.core import PodResourceClaim
from spinney.api.selectors import LabelSelector
from spinney.gangs.tree import DEFAULT_POD_SET, Gang, GangKey, GroupSet, PodSet, TopologyConstraintInfo, single
from spinney.scheduler.fairshare import GPU, Amounts, QueueInfo
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.topology.levels import TopologyLevels
from tests.scheduler.building import RACK, ZONE, a_node, a_pod, an_inventory, put_gang
from tests.scheduler.devices import publish_devices, put_claim

QUEUES = ("a", "b", "c")
NAMESPACES = ("red", "blue")


@dataclass(frozen=True)
class Kind:
    """What gangs of one kind have in common; sizes of pods are in GPUs."""

    queue: str
    namespace: str
    priority: int
    preemptible: bool
    sets: tuple[tuple[str, int, PodSet], ...]
    constraint: TopologyConstraintInfo | None
    rule: str | None = None
    """What its pods say about others: keep apart, or be near."""
    nominated: str = ""
    """The node that its pods were once nominated for."""
    claimed: bool = False
    """Whether each of its pods has a claim for a device, instead of GPUs."""

    def gang(self, name: str, root: GroupSet) -> Gang:
        return Gang(
            key=GangKey("kai", self.namespace, name),
            root=root,
            uid=name,
            queue=self.queue,
            priority=self.priority,
            preemptible=self.preemptible,
        )


def a_world(seed: int) -> Inventory:
    """Return a cluster that is partly full, with more work than fits."""
    chance = Random(seed)
    shapes = [chance.randint(0, 4) for _ in range(chance.randint(1, 6))]
    inventory = an_inventory(
        *(
            a_node(
                f"n{number}",
                gpus=gpus,
                cpu=chance.choice(("4", "16")),
                labels={ZONE: chance.choice("xy"), RACK: chance.choice("rst"), "pool": chance.choice(("old", "new"))},
            )
            for number, gpus in enumerate(shapes)
        )
    )
    inventory.put_topology(TopologyLevels("t", (ZONE, RACK)))
    total = sum(shapes) * GPU
    inventory.put_queue(QueueInfo(name="department", quota=Amounts(gpu=total // 2), created=1.0))
    for number, name in enumerate(QUEUES):
        parent = "department" if name != "c" and chance.random() < 0.5 else None
        quota = Amounts(gpu=chance.choice((0, total // 4, total // 2)))
        inventory.put_queue(QueueInfo(name=name, parent=parent, quota=quota, created=float(2 + number)))
    kinds = [_a_kind(chance) for _ in range(chance.randint(1, 3))]
    if any(kind.claimed for kind in kinds):
        publish_devices(inventory, {f"n{number}": chance.randint(0, 3) for number in range(len(shapes))})
    left = dict(enumerate(shapes))
    for number in range(chance.randint(0, 6)):
        _put_running(inventory, chance, f"run{number}", chance.choice(kinds), left)
    for number in range(chance.randint(1, 6)):
        _put_waiting(inventory, chance, f"job{number}", chance.choice(kinds))
    return inventory


def _a_kind(chance: Random) -> Kind:
    sets = []
    for index in range(chance.choice((1, 1, 1, 2))):
        size, count = chance.choice(("0", "1", "1", "1", "2", "0.5")), chance.randint(1, 5)
        sets.append((size, count, PodSet(f"s{index}", chance.randint(1, count), _a_constraint(chance))))
    return Kind(
        queue=chance.choice(QUEUES),
        namespace=chance.choice(NAMESPACES),
        priority=chance.choice((10, 50, 50, 90)),
        preemptible=chance.random() < 0.8,
        sets=tuple(sets),
        constraint=_a_constraint(chance),
        rule=chance.choice((None, None, None, "apart", "near")),
        nominated=f"n{chance.randrange(6)}" if chance.random() < 0.15 else "",
        claimed=chance.random() < 0.15,
    )


def _put_running(inventory: Inventory, chance: Random, name: str, kind: Kind, left: dict[int, int]) -> None:
    pods = []
    for index in range(chance.randint(1, 3)):
        free = [node for node, gpus in left.items() if gpus]
        if not free:
            break
        node = chance.choice(free)
        left[node] -= 1
        pods.append(
            a_pod(
                f"{name}-{index}",
                gang=name,
                gpus=1,
                node=f"n{node}",
                namespace=kind.namespace,
                labels={"role": "leader" if not index else "worker"},
                terminating=chance.random() < 0.1,
            )
        )
    if pods:
        root = single(PodSet(DEFAULT_POD_SET, chance.randint(1, len(pods))))
        put_gang(inventory, kind.gang(name, root), pods)


def _put_waiting(inventory: Inventory, chance: Random, name: str, kind: Kind) -> None:
    pods = []
    for size, count, pod_set in kind.sets:
        share = {"gpu-fraction": size} if "." in size and not kind.claimed else {}
        leader = chance.randrange(count)
        pods += [
            a_pod(
                f"{name}-{pod_set.name}-{each}",
                gang=name,
                pod_set=pod_set.name,
                gpus=0 if share or kind.claimed else int(size),
                annotations=share,
                namespace=kind.namespace,
                labels={"role": "leader" if each == leader else "worker", "team": chance.choice("uv")},
                **_rules(kind.rule),  # type: ignore[arg-type] # fields of a spec
                resource_claims=_claims(f"{name}-{pod_set.name}-{each}") if kind.claimed else (),
            )
            for each in range(count)
        ]
    if kind.claimed:
        for pod in pods:
            put_claim(inventory, pod.metadata.name, namespace=kind.namespace, queue=kind.queue)
    if kind.nominated:
        pods = [replace(pod, status=replace(pod.status, nominated_node_name=kind.nominated)) for pod in pods]
    root = GroupSet("", tuple(pod_set for _, _, pod_set in kind.sets), None, kind.constraint)
    put_gang(inventory, kind.gang(name, root), pods)


def _claims(name: str) -> tuple[PodResourceClaim, ...]:
    return (PodResourceClaim(name="device", resource_claim_name=name),)


def _rules(rule: str | None) -> dict[str, object]:
    """Return the fields of a pod's spec that a rule about other pods takes."""
    same = LabelSelector(match_labels={"role": "worker"})
    match rule:
        case "apart":
            apart = PodAffinityTerm(topology_key=RACK, label_selector=same)
            anti = PodAffinity(required_during_scheduling_ignored_during_execution=(apart,))
            return {"affinity": Affinity(pod_anti_affinity=anti)}
        case "near":
            near = WeightedPodAffinityTerm(
                weight=5, pod_affinity_term=PodAffinityTerm(topology_key=ZONE, label_selector=same)
            )
            affinity = PodAffinity(preferred_during_scheduling_ignored_during_execution=(near,))
            return {"affinity": Affinity(pod_affinity=affinity)}
        case _:
            return {}


def _a_constraint(chance: Random) -> TopologyConstraintInfo | None:
    kind = chance.choice((None, None, None, "required", "preferred"))
    return TopologyConstraintInfo("t", **{kind: chance.choice((ZONE, RACK))}) if kind else None
