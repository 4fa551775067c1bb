"""Node pools: one scheduler sees one part of the cluster."""

from spinney.api.labels import KAI_NODE_POOL
from spinney.gangs.intake import ClusterIntake
from spinney.scheduler.config_files import parse_config
from spinney.scheduler.intake.inventory import Inventory, NodePool
from tests.scheduler.building import a_node, a_pod, a_scheduler, placements


def test_schedulers_of_different_pools_share_a_cluster() -> None:
    """Each places its own pods on its own nodes; what is in no pool belongs to the scheduler without a value."""
    shared = ClusterIntake()
    cluster = shared.cluster
    inventories = {value: Inventory(shared=shared, node_pool=NodePool(value)) for value in ("", "h100", "a100")}
    cluster.apply_node(a_node("plain"))
    cluster.apply_node(a_node("hopper", labels={KAI_NODE_POOL: "h100"}))
    cluster.apply_pod(a_pod("anywhere", gpus=1))
    cluster.apply_pod(a_pod("fast", gpus=1, labels={KAI_NODE_POOL: "h100"}))
    cluster.apply_pod(a_pod("nowhere", gpus=1, labels={KAI_NODE_POOL: "a100"}))

    found = {value: placements(a_scheduler(inventory)) for value, inventory in inventories.items()}
    assert found == {"": {"anywhere": "plain"}, "h100": {"fast": "hopper"}, "a100": {}}


def test_a_shard_names_its_pool() -> None:
    """KAI's partition label value is the node pool; without one it is the rest of the cluster."""
    assert parse_config({"kind": "SchedulingShard", "spec": {"partitionLabelValue": "h100"}}).node_pool == "h100"
    assert parse_config({"kind": "SchedulingShard", "spec": {}}).node_pool == ""
    assert parse_config({}).node_pool is None
