"""Packing: pods go where they spoil least for those still to come."""

from random import Random

import numpy as np

from spinney.api.core import Pod
from spinney.cluster.pods import GPU_GROUP_LABEL
from spinney.scheduler.config import KAI_PLUGINS, PluginOption, SchedulerConfig
from spinney.scheduler.plugins.packing.leftovers import values_of_space
from spinney.scheduler.plugins.packing.workload import LEVELS, QUANTILES, DemandMix, stranded_gpus, stranded_on
from tests.scheduler.building import a_node, a_pod, a_scheduler, an_inventory

_PACKING = SchedulerConfig(actions=("allocate",), device_reservation=True)
_KAI = SchedulerConfig(
    actions=("allocate",), device_reservation=True, plugins=tuple(PluginOption(name) for name in KAI_PLUGINS)
)


def a_share(name: str, hundredths: int, *, device: str = "", node: str = "", cpu: str = "1") -> Pod:
    """Return a pod that shares a GPU, pending or running on a device of a node."""
    labels = {GPU_GROUP_LABEL: device} if device else {}
    return a_pod(name, cpu=cpu, node=node, labels=labels, annotations={"gpu-fraction": f"0.{hundredths:02d}"})


# -- what free space is worth ------------------------------------------------------------------------------------------


def empty_devices(count: int, **at: int) -> np.ndarray:
    """Return how many devices have how many hundredths free: ``count`` all, others as told."""
    free = np.zeros(LEVELS + 1, dtype=np.int64)
    free[LEVELS] = count
    for key, number in at.items():
        free[int(key.removeprefix("with_"))] = number
    return free


def test_space_that_nothing_fits_is_worth_nothing() -> None:
    """Where the smallest request is 0.47, a device with 0.19 free is as good as full."""
    values = values_of_space({47: 10, 100: 10}, empty_devices(20, with_19=5))

    assert values[19] == 0
    assert values[47] > 0.4


def test_space_that_many_wait_for_is_worth_what_fits() -> None:
    """Where requests of 0.19 abound, they fill what requests of 0.81 leave."""
    scarce = values_of_space({19: 1, 81: 200}, empty_devices(100, with_19=100))
    plenty = values_of_space({19: 400, 81: 200}, empty_devices(100, with_19=100))

    assert scarce[19] < 0.05
    assert plenty[19] > 0.15


# -- which GPUs stay idle ----------------------------------------------------------------------------------------------


def test_gpus_are_stranded_by_what_is_missing_beside_them() -> None:
    """Many nodes at once, one node, and the definition, ratio by ratio, tell the same number of idle GPUs."""
    chance = np.random.default_rng(7)
    for resources in (1, 2, 3):
        ratios = np.sort(chance.uniform(0.5, 30, (resources, QUANTILES)))
        workload = DemandMix({LEVELS: 1}, np.arange(resources), ratios)
        gpus, others = chance.integers(0, 9, 50) + chance.random(50), chance.uniform(-2, 120, (resources, 50))

        found = stranded_gpus(workload, gpus, others)

        for node in range(50):
            idle = [max(gpus[node] - min(others[:, node] / ratios[:, each]), 0) for each in range(QUANTILES)]
            assert np.isclose(found[node], np.mean(idle))
            assert found[node] == stranded_on(workload, gpus[node], *others[:, node].tolist())


# -- where pods go -----------------------------------------------------------------------------------------------------


def test_a_share_goes_where_its_rest_can_be_used() -> None:
    """Where everybody asks for 0.4 and 0.6, a share of 0.6 completes a device with 0.4 on it, not one with 0.2."""
    inventory = an_inventory(a_node("n1", gpus=1), a_node("n2", gpus=1), a_node("n3", gpus=8))
    inventory.apply(a_share("odd", 20, device="x", node="n1"))
    inventory.apply(a_share("even", 40, device="y", node="n2"))
    for number in range(40):
        inventory.apply(a_share(f"like-{number}", 40 + 20 * (number % 2), device=f"d{number // 2}", node="n3"))
    inventory.apply(a_share("new", 60))

    (bind,) = a_scheduler(inventory, config=_PACKING).run_cycle().binds

    assert (bind.node, bind.gpu_groups) == ("n2", ("y",))


def test_a_pod_without_gpus_leaves_cpu_where_gpus_need_it() -> None:
    """CPU is taken from the node that has more of it than its free GPUs can use, though the other is fuller."""
    inventory = an_inventory(a_node("a-tight", gpus=4, cpu="40"), a_node("b-ample", gpus=4, cpu="120"))
    inventory.apply(a_pod("runs", gpus=1, cpu="10", node="a-tight"))
    inventory.apply(a_pod("batch", cpu="12"))

    (bind,) = a_scheduler(inventory, config=_PACKING).run_cycle().binds

    assert bind.node == "b-ample"


def test_whole_nodes_are_kept_whole() -> None:
    """A pod of one GPU goes to the node that is in use already."""
    inventory = an_inventory(a_node("n1"), a_node("n2"))
    inventory.apply(a_pod("runs", gpus=3, node="n2"))
    inventory.apply(a_pod("new", gpus=1))

    (bind,) = a_scheduler(inventory, config=_PACKING).run_cycle().binds

    assert bind.node == "n2"


def test_of_nodes_with_as_many_free_gpus_the_one_with_less_of_all_else_goes_first() -> None:
    """What is most plentiful on a node decides, and only between nodes that are equal by their GPUs."""
    inventory = an_inventory(a_node("n1"), a_node("n2"), a_node("n3"))
    inventory.apply(a_pod("little", gpus=3, cpu="1", node="n1"))
    inventory.apply(a_pod("much", gpus=3, cpu="16", node="n2"))
    inventory.apply(a_pod("fuller", gpus=7, cpu="1", node="n3"))
    inventory.apply(a_pod("new-1", gpus=1, cpu="1"))
    inventory.apply(a_pod("new-2", gpus=1, cpu="1"))

    binds = a_scheduler(inventory, config=_PACKING).run_cycle().binds

    assert [bind.node for bind in binds] == ["n3", "n2"]


def test_nodes_without_gpus_are_filled_one_after_the_other() -> None:
    """Pods without GPUs go to the fullest of the nodes that have none."""
    inventory = an_inventory(a_node("n1", gpus=0), a_node("n2", gpus=0), a_node("n3"))
    inventory.apply(a_pod("runs", cpu="8", node="n2"))
    inventory.apply(a_pod("new"))

    (bind,) = a_scheduler(inventory, config=_PACKING).run_cycle().binds

    assert bind.node == "n2"


def test_more_gpus_are_given_out_than_by_filling_the_fullest_node() -> None:
    """Pods of many shapes, one after the other, until no more fit: packing gives out more than KAI's rules."""
    given = {name: _given_out(config) for name, config in (("packing", _PACKING), ("kai", _KAI))}

    assert given["packing"] > given["kai"] + 3


def _given_out(config: SchedulerConfig) -> float:
    """Return the GPUs of 36 that pods of a seeded list hold in the end."""
    nodes = [a_node(f"g{number}", gpus=8, cpu="96") for number in range(3)]
    nodes += [a_node(f"t{number}", gpus=2, cpu="104") for number in range(6)]
    inventory = an_inventory(*nodes)
    random, sizes = Random(7), {}
    for number in range(90):
        name = f"p{number:03d}"
        kind = random.random()
        if kind < 0.25:
            sizes[name] = 0.0
            inventory.apply(a_pod(name, cpu=str(random.choice([12, 16, 32]))))
        elif kind < 0.6:
            sizes[name] = 1.0
            inventory.apply(a_pod(name, gpus=1, cpu=str(random.choice([8, 11, 12, 16]))))
        else:
            hundredths = random.choice([81, 47, 47, 32, 65, 23])
            sizes[name] = hundredths / 100
            inventory.apply(a_share(name, hundredths, cpu=str(random.choice([3, 8, 12]))))
    return sum(sizes[bind.pod.name] for bind in a_scheduler(inventory, config=config).run_cycle().binds)
