"""Random small clusters with queues, running and waiting gangs, made from a seed."""

from random import Random

from spinney.gangs.tree import DEFAULT_POD_SET, Gang, GangKey, GroupSet, PodSet, TopologyConstraint, single
from spinney.scheduler.fairshare import GPU, Amounts, Queue
from spinney.scheduler.inventory import Inventory
from spinney.scheduler.topology.levels import Topology
from tests.scheduler.building import RACK, ZONE, a_node, a_pod, an_inventory, put_gang

QUEUES = ("a", "b", "c")
NAMESPACES = ("red", "blue")


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
    inventory.put_topology(Topology("t", (ZONE, RACK)))
    total = sum(shapes) * GPU
    inventory.put_queue(Queue(name="department", quota=Amounts(gpu=total // 2), created=1.0))
    for number, name in enumerate(QUEUES):
        parent = "department" if name != "c" and chance.random() < 0.5 else None
        quota = Amounts(gpu=chance.choice((0, total // 4, total // 2)))
        inventory.put_queue(Queue(name=name, parent=parent, quota=quota, created=float(2 + number)))
    left = dict(enumerate(shapes))
    for number in range(chance.randint(0, 5)):
        _put_running(inventory, chance, f"run{number}", left)
    for number in range(chance.randint(1, 5)):
        _put_waiting(inventory, chance, f"job{number}")
    return inventory


def _a_gang(chance: Random, name: str, root: GroupSet, namespace: str) -> Gang:
    return Gang(
        key=GangKey("kai", namespace, name),
        root=root,
        uid=name,
        queue=chance.choice(QUEUES),
        priority=chance.choice((10, 50, 50, 90)),
        preemptible=chance.random() < 0.8,
    )


def _put_running(inventory: Inventory, chance: Random, name: str, left: dict[int, int]) -> None:
    pods, namespace = [], chance.choice(NAMESPACES)
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
                namespace=namespace,
                labels={"role": "leader" if not index else "worker"},
                terminating=chance.random() < 0.1,
            )
        )
    if pods:
        root = single(PodSet(DEFAULT_POD_SET, chance.randint(1, len(pods))))
        put_gang(inventory, _a_gang(chance, name, root, namespace), pods)


def _put_waiting(inventory: Inventory, chance: Random, name: str) -> None:
    namespace, sets, pods = chance.choice(NAMESPACES), [], []
    for index in range(chance.choice((1, 1, 1, 2))):
        pod_set = f"s{index}"
        size, count = chance.choice(("0", "1", "1", "1", "2", "0.5")), chance.randint(1, 5)
        share = {"gpu-fraction": size} if "." in size else {}
        sets.append(PodSet(pod_set, chance.randint(1, count), _a_constraint(chance)))
        leader = chance.randrange(count)
        pods += [
            a_pod(
                f"{name}-{index}-{each}",
                gang=name,
                pod_set=pod_set,
                gpus=0 if share else int(size),
                annotations=share,
                namespace=namespace,
                labels={"role": "leader" if each == leader else "worker", "team": chance.choice("uv")},
            )
            for each in range(count)
        ]
    root = GroupSet("", tuple(sets), None, _a_constraint(chance))
    put_gang(inventory, _a_gang(chance, name, root, namespace), pods)


def _a_constraint(chance: Random) -> TopologyConstraint | None:
    kind = chance.choice((None, None, None, "required", "preferred"))
    return TopologyConstraint("t", **{kind: chance.choice((ZONE, RACK))}) if kind else None
