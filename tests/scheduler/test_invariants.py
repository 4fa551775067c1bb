"""Whatever the cluster and the work, what is decided keeps the rules. Judged from the outcome alone."""

from collections import Counter, defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.cluster.devices import DEVICE
from spinney.gangs.tree import GroupSet, PodSet, TopologyConstraintInfo
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.topology.levels import TopologyLevels
from tests.scheduler.building import RACK, ZONE, a_gang, a_node, a_pod, a_scheduler, an_inventory, put_gang

nodes = st.lists(st.tuples(st.integers(0, 4), st.sampled_from("ab"), st.sampled_from("xyz")), min_size=1, max_size=8)
pods = st.sampled_from(["0", "1", "2", "0.5", "0.3"])
constraints = st.sampled_from([None, ("required", ZONE), ("required", RACK), ("preferred", RACK)])
jobs = st.lists(
    st.tuples(st.lists(st.tuples(pods, st.integers(1, 4)), min_size=1, max_size=3), constraints, constraints),
    min_size=1,
    max_size=5,
)
running = st.lists(st.tuples(st.integers(0, 7), st.booleans()), max_size=6)


def a_constraint(found: tuple[str, str] | None) -> TopologyConstraintInfo | None:
    return TopologyConstraintInfo("t", **{found[0]: found[1]}) if found is not None else None


def a_world(
    shapes: list[tuple[int, str, str]],
    work: list[tuple[list[tuple[str, int]], tuple[str, str] | None, tuple[str, str] | None]],
    old: list[tuple[int, bool]],
) -> Inventory:
    """Return a cluster with running pods and gangs to be placed; every pod set's minimum is one below its size."""
    inventory = an_inventory(
        *(
            a_node(f"n{number}", gpus=gpus, cpu="6", labels={ZONE: zone, RACK: rack})
            for number, (gpus, zone, rack) in enumerate(shapes)
        )
    )
    inventory.put_topology(TopologyLevels("t", (ZONE, RACK)))
    taken: Counter[int] = Counter()
    for number, (node, terminating) in enumerate(old):
        if node < len(shapes) and taken[node] < shapes[node][0]:
            taken[node] += 1
            inventory.apply(a_pod(f"old{number}", gpus=1, node=f"n{node}", terminating=terminating))
    for number, (sets, outer, inner) in enumerate(work):
        members = tuple(
            PodSet(f"s{index}", max(count - 1, 1), a_constraint(inner)) for index, (_, count) in enumerate(sets)
        )
        gang = a_gang(f"job{number}", root=GroupSet("", members, None, a_constraint(outer)))
        made = []
        for index, (size, count) in enumerate(sets):
            share = {"gpu-fraction": size} if "." in size else {}
            made += [
                a_pod(
                    f"j{number}-{index}-{each}",
                    gang=f"job{number}",
                    pod_set=f"s{index}",
                    gpus=0 if share else int(size),
                    annotations=share,
                )
                for each in range(count)
            ]
        put_gang(inventory, gang, made)
    return inventory


@settings(max_examples=80, deadline=None)
@given(nodes, jobs, running)
def test_rules_are_kept(shapes, work, old) -> None:  # type: ignore[no-untyped-def]
    """No node is over-committed, no gang placed in part, every required domain held, and no pod bound twice."""
    inventory = a_world(shapes, work, old)
    scheduler = a_scheduler(inventory)
    session = scheduler.open_session()
    scheduler.run_actions(session)
    table = inventory.cluster.table

    bound = [task for job in session.jobs for task in job.tasks if task.status.value == "Binding"]
    assert len(session.binds) == len({bind.pod for bind in session.binds}) == len(bound)

    devices: dict[str, dict[str, int]] = defaultdict(dict)
    whole: Counter[str] = Counter()
    cpu: Counter[str] = Counter()
    for task in bound:
        cpu[task.node_name] += 1000
        whole[task.node_name] += task.request.gpus
        for group in task.gpu_groups:
            assert task.request.share is not None
            held = devices[task.node_name].get(group, 0)
            devices[task.node_name][group] = held + task.request.share.parts
    for name in table:
        row = table.row(name)
        assert whole[name] + len(devices[name]) <= table.idle[row, 4]
        assert cpu[name] <= table.idle[row, 0]
        assert all(parts <= DEVICE for parts in devices[name].values())

    for job in session.jobs:
        for pod_set in job.gang.pod_sets.values():
            here = [task for task in job.by_pod_set[pod_set.name] if task.node_name]
            assert not here or len(here) >= pod_set.min_member
            _in_one_domain(inventory, [task.node_name for task in here], pod_set.topology)
        _in_one_domain(inventory, [task.node_name for task in job.tasks if task.node_name], job.root.topology)
    assert (session.nodes.table.idle[session.nodes.all.rows] >= 0).all()


def _in_one_domain(inventory: Inventory, names: list[str], constraint: TopologyConstraintInfo | None) -> None:
    if constraint is None or not constraint.required:
        return
    table = inventory.cluster.table
    keys = (ZONE,) if constraint.required == ZONE else (ZONE, RACK)
    domains = {tuple(table.labels.of_row(table.row(name))[key] for key in keys) for name in names}
    assert len(domains) <= 1
