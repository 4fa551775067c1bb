"""A constraint that no loaded plugin keeps is not met: who has it waits and says which plugin is missing."""

import msgspec
import pytest

from spinney.api.affinity import Taint
from spinney.api.core import NodeSpec, PodResourceClaim
from spinney.api.podgang import CONSTRAINT_NOT_HONOURED
from spinney.gangs.tree import DEFAULT_POD_SET, Gang, GroupSet, PodSet, TopologyConstraintInfo
from spinney.scheduler import Plugin, Session
from spinney.scheduler.config import DEFAULT_PLUGINS, PluginOption, SchedulerConfig
from spinney.scheduler.fairshare import GPU, NO_BOUND, Amounts, QueueInfo
from spinney.scheduler.framework.plugin import Constraint
from spinney.scheduler.framework.results import CycleResult
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.topology.levels import TopologyLevels
from tests.scheduler.building import QUEUE, RACK, a_gang, a_node, a_pod, a_scheduler, an_inventory, put_gang


def without(*names: str, extra: tuple[str, ...] = ()) -> SchedulerConfig:
    kept = [name for name in DEFAULT_PLUGINS if name not in names]
    return SchedulerConfig(plugins=tuple(PluginOption(name) for name in (*kept, *extra)))


def racks() -> Inventory:
    inventory = an_inventory(*(a_node(f"n{n}", gpus=1, labels={RACK: f"r{n}"}) for n in range(2)))
    inventory.put_topology(TopologyLevels("t", (RACK,)))
    return inventory


def gang_in_one_rack(*, inner: bool = False) -> Gang:
    constraint = TopologyConstraintInfo("t", required=RACK)
    if inner:
        return a_gang("g", root=GroupSet("", (PodSet(DEFAULT_POD_SET, 2, constraint),)))
    return a_gang("g", minimum=2, topology=constraint)


def refusal(result: CycleResult) -> str:
    (refused,) = result.unschedulable
    assert refused.verdict.reason == CONSTRAINT_NOT_HONOURED
    assert not result.binds
    return refused.message


@pytest.mark.parametrize("inner", [False, True])
def test_a_required_topology_is_not_ignored(inner: bool) -> None:
    """Without the topology plugin a gang that must lie in one rack is not spread over two."""
    inventory = racks()
    put_gang(inventory, gang_in_one_rack(inner=inner), [a_pod(f"g-{n}", gang="g", gpus=1) for n in range(2)])
    said = refusal(a_scheduler(inventory, config=without("topology")).run_cycle())
    assert f"topology level {RACK} is required" in said
    assert "add topology to the plugins" in said


def test_others_are_placed() -> None:
    """Only who has the constraint waits; a preference is none."""
    inventory = racks()
    preferring = a_gang("p", minimum=2, topology=TopologyConstraintInfo("t", preferred=RACK))
    put_gang(inventory, preferring, [a_pod(f"p-{n}", gang="p", gpus=1) for n in range(2)])
    result = a_scheduler(inventory, config=without("topology")).run_cycle()
    assert len(result.binds) == 2


class Racks(Plugin):
    """Keeps topology in a way of its own."""

    name = "racks"
    honours = frozenset({Constraint.TOPOLOGY})

    def on_session_open(self, session: Session) -> None:
        """Offer the first node's rack."""
        session.add_subset_nodes_fn(lambda job, group, tasks, nodes: [session.nodes.all[:1]])


def test_another_plugin_may_keep_it() -> None:
    """A plugin that says so is believed."""
    inventory = racks()
    put_gang(inventory, gang_in_one_rack(), [a_pod(f"g-{n}", gang="g", gpus=0) for n in range(2)])
    result = a_scheduler(inventory, Racks, config=without("topology")).run_cycle()
    assert {bind.node for bind in result.binds} == {"n0"}


def test_device_claims_and_limits_and_node_rules_are_not_ignored() -> None:
    """The same for pods with claims, queues with limits and pods with rules about nodes."""
    inventory = racks()
    claim = PodResourceClaim(name="gpu", resource_claim_name="gpu")
    put_gang(inventory, a_gang("g"), [a_pod("g-0", gang="g", resource_claims=(claim,))])
    assert "device claim gpu" in refusal(a_scheduler(inventory, config=without("dynamicresources")).run_cycle())

    inventory = racks()
    inventory.put_queue(QueueInfo(name=QUEUE, quota=NO_BOUND, limit=Amounts(-1, -1, GPU)))
    put_gang(inventory, a_gang("g"), [a_pod("g-0", gang="g", gpus=1)])
    assert f"queue {QUEUE} has a limit" in refusal(a_scheduler(inventory, config=without("proportion")).run_cycle())

    inventory = racks()
    put_gang(inventory, a_gang("g"), [a_pod("g-0", gang="g", node_selector={RACK: "r1"})])
    assert "a pod has a nodeSelector" in refusal(a_scheduler(inventory, config=without("predicates")).run_cycle())


def test_closed_nodes_are_not_used_without_predicates() -> None:
    """Where nobody can tell whom a taint concerns, it concerns everybody."""
    inventory = racks()
    spec = NodeSpec(taints=(Taint(key="repair", effect="NoSchedule"),))
    inventory.apply(msgspec.structs.replace(a_node("n0", gpus=1), spec=spec))
    put_gang(inventory, a_gang("g"), [a_pod("g-0", gang="g", gpus=1)])
    result = a_scheduler(inventory, config=without("predicates")).run_cycle()
    assert [bind.node for bind in result.binds] == ["n1"]
