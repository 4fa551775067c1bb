"""A job that is not placed is told exactly why, and what would let it in."""

import msgspec
import pytest

from spinney.api.affinity import Affinity, PodAffinity, PodAffinityTerm, Taint
from spinney.api.core import NodeSpec, PodResourceClaim, PodResourceClaimStatus
from spinney.api.selectors import LabelSelector
from spinney.explain.reasons import Explanation
from spinney.explain.rendering import as_text
from spinney.gangs.tree import TopologyConstraintInfo
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.fairshare import GPU, NO_BOUND, Amounts, QueueInfo
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeInfo, Nodes
from spinney.scheduler.framework.plugin import Plugin
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.topology.levels import TopologyLevels
from tests.scheduler.building import (
    RACK,
    ZONE,
    a_gang,
    a_node,
    a_pod,
    a_scheduler,
    an_inventory,
    put_gang,
    put_job,
)

HOSTNAME = "kubernetes.io/hostname"


def refusal(inventory: Inventory, *plugins: type[Plugin]) -> tuple[Explanation, str]:
    """Run one cycle in which one job is refused; return why, as data and as the condition's line."""
    only_allocate = SchedulerConfig(actions=("allocate",))
    (refused,) = a_scheduler(inventory, *plugins, config=only_allocate).run_cycle().unschedulable
    assert refused.explanation is not None
    return refused.explanation, refused.message


def racks(*sizes: int) -> Inventory:
    """Return racks of eight-GPU nodes in one zone, and the topology that names them."""
    nodes = [
        a_node(f"r{rack}-n{node}", labels={ZONE: "z", RACK: f"r{rack}"})
        for rack, size in enumerate(sizes)
        for node in range(size)
    ]
    inventory = an_inventory(*nodes)
    inventory.put_topology(TopologyLevels("dc", (ZONE, RACK)))
    return inventory


def test_a_gang_that_is_too_large_says_what_the_cluster_lacks() -> None:
    """The line counts the pods that fit and names the GPUs to free."""
    inventory = an_inventory(a_node("n0"), a_node("n1"))
    put_gang(inventory, a_gang("old", preemptible=False), [a_pod("old-0", gang="old", gpus=8, node="n0")])
    put_job(inventory, "train", 4, gpus=4)

    explanation, line = refusal(inventory)

    assert (explanation.placed, explanation.needed) == (2, 4)
    assert line.startswith("unschedulable on cluster: 2 of 4 pods found room")
    assert "it lacks 8 GPUs on 1 node" in line


def test_a_level_has_the_name_that_it_was_given() -> None:
    """What a topology calls ``host`` is called so, whatever the label is."""
    inventory = an_inventory(*(a_node(name, labels={ZONE: "z", HOSTNAME: name}) for name in ("n0", "n1")))
    inventory.put_topology(TopologyLevels("dc", (ZONE, HOSTNAME), {"area": ZONE, "host": HOSTNAME}))
    gang = a_gang("train", minimum=2, topology=TopologyConstraintInfo("dc", required="host"))
    put_gang(inventory, gang, [a_pod(f"train-{n}", gang="train", gpus=8) for n in range(2)])

    explanation, line = refusal(inventory)

    assert "1 of 2 pods fit in host z.n0" in line
    assert "domains (all pods in one host):" in as_text(explanation)
    assert "area z has room for all 2 pods" in as_text(explanation)


@pytest.mark.parametrize("topology", ["dc", ""])
def test_the_nearest_rack_is_named_with_what_it_lacks(topology: str) -> None:
    """Of racks that hold some of the gang the fullest match is named, and its shortage is exact."""
    inventory = racks(2, 4)
    put_gang(inventory, a_gang("old", preemptible=False), [a_pod("old-0", gang="old", gpus=4, node="r1-n0")])
    gang = a_gang("train", minimum=4, topology=TopologyConstraintInfo(topology, required=RACK))
    put_gang(inventory, gang, [a_pod(f"train-{n}", gang="train", gpus=8) for n in range(4)])

    explanation, line = refusal(inventory)

    nearest, other = explanation.domains
    assert (nearest.domain, nearest.fits, nearest.needed) == ("z.r1", 3, 4)
    assert [(short.resource, short.amount, short.nodes) for short in nearest.shortages] == [("nvidia.com/gpu", 4, 1)]
    assert (other.domain, other.fits) == ("z.r0", 2)
    assert "3 of 4 pods fit in rack z.r1; it lacks 4 GPUs on 1 node" in line
    assert "1 other rack held no more" in line


def test_a_rack_that_holds_more_but_is_too_small_is_not_said_to_hold_no_more() -> None:
    """The rack that could hold the gang is named, though a smaller one has room for more of it now."""
    inventory = racks(3, 5)
    for node in range(3):
        old = a_gang(f"old-{node}", preemptible=False)
        put_gang(inventory, old, [a_pod(f"old-{node}", gang=f"old-{node}", gpus=8, node=f"r1-n{node}")])
    gang = a_gang("train", minimum=4, topology=TopologyConstraintInfo("dc", required=RACK))
    put_gang(inventory, gang, [a_pod(f"train-{n}", gang="train", gpus=8) for n in range(4)])

    _, line = refusal(inventory)

    assert "3 of 4 pods found room; 2 of 4 pods fit in rack z.r1" in line
    assert "held no more" not in line


def test_a_wider_level_that_would_do_is_offered() -> None:
    """A gang no rack can ever hold is told that the zone can."""
    inventory = racks(2, 2)
    gang = a_gang("train", minimum=3, topology=TopologyConstraintInfo("dc", required=RACK))
    put_gang(inventory, gang, [a_pod(f"train-{n}", gang="train", gpus=8) for n in range(3)])

    explanation, line = refusal(inventory)

    assert explanation.wider is not None
    assert (explanation.wider.level, explanation.wider.domain) == ("zone", "z")
    assert "zone z has room for all 3 pods" in line


def test_a_leader_beside_its_workers_is_counted_with_what_it_asks_for() -> None:
    """A rack of four nodes is not called too small for four workers of a whole node and a leader without a GPU."""
    inventory = racks(4)
    put_gang(inventory, a_gang("old", preemptible=False), [a_pod("old-0", gang="old", gpus=8, node="r0-n0")])
    gang = a_gang("train", minimum=5, topology=TopologyConstraintInfo("dc", required=RACK))
    pods = [a_pod("train-leader", gang="train", gpus=0), *(a_pod(f"train-{n}", gang="train", gpus=8) for n in range(4))]
    put_gang(inventory, gang, pods)

    explanation, line = refusal(inventory)

    assert (explanation.placed, explanation.needed) == (4, 5)
    assert "4 of 5 pods fit in rack z.r0; it lacks 8 GPUs on 1 node" in line


class Naming(Plugin):
    """Refuses every pod, on every node or beforehand, by its name."""

    name = "naming"
    before = False

    def on_session_open(self, session: Session) -> None:
        """Register the refusal."""
        if self.before:
            session.add_pre_predicate_fn(lambda task, job: f"{task.name} is not wanted")
        else:
            session.add_predicate_fn(lambda task, job, node: f"{task.name} is not wanted")


class NamingBefore(Naming):
    """The same before any node is looked at."""

    before = True


@pytest.mark.parametrize("plugin", [Naming, NamingBefore])
@pytest.mark.parametrize("explain", [False, True])
@pytest.mark.parametrize("count", [1, 2])
def test_reasons_name_the_pods_of_the_job_they_are_about(plugin: type[Plugin], explain: bool, count: int) -> None:
    """Jobs that ask for the same share a verdict, but each is told about its own pods and itself."""
    inventory = an_inventory(a_node("n0", gpus=1))
    for name in ("first", "second", "third"):
        put_job(inventory, name, count, gpus=1)
    config = SchedulerConfig(actions=("allocate",), explain=explain)
    found = a_scheduler(inventory, plugin, config=config).run_cycle().unschedulable
    assert [refused.gang.name for refused in found] == ["first", "second", "third"]
    for refused in found:
        texts = [refused.message, *(error.message for error in refused.errors)]
        mentioned = {word for word in ("first", "second", "third") for text in texts if word in text}
        assert mentioned <= {refused.gang.name}, texts
        assert any(refused.gang.name in text for text in texts)


def test_a_topology_that_is_too_small_is_told_to_each_job_by_name() -> None:
    """The summary of a refused topology names the job it is about."""
    inventory = racks(1, 1)
    for name in ("first", "second"):
        gang = a_gang(name, minimum=2, topology=TopologyConstraintInfo("dc", required=RACK))
        put_gang(inventory, gang, [a_pod(f"{name}-{n}", gang=name, gpus=8) for n in range(2)])
    config = SchedulerConfig(actions=("allocate",), explain=False)
    found = a_scheduler(inventory, config=config).run_cycle().unschedulable
    assert [refused.gang.name for refused in found] == ["first", "second"]
    for refused in found:
        assert f"of job {refused.gang.name}" in refused.message


def test_filters_are_counted_with_examples() -> None:
    """Taints and labels that keep a pod out are counted per node, with the nodes named in the full text."""
    tainted = msgspec.structs.replace(a_node("n0"), spec=NodeSpec(taints=(Taint(key="gpu", effect="NoSchedule"),)))
    inventory = an_inventory(tainted, a_node("n1"))
    put_gang(inventory, a_gang("job"), [a_pod("job-0", gang="job", node_selector={"disk": "ssd"})])

    explanation, _ = refusal(inventory)

    (report,) = explanation.pods
    assert report.feasible_nodes == 0
    assert {found.filter: found.nodes for found in report.filters} == {"TaintToleration": 1, "NodeAffinity": 1}
    assert "n1" in as_text(explanation)


def test_the_taint_or_label_in_the_way_is_named() -> None:
    """The taint that is not tolerated, or the label that is missing, is named with its node."""
    taint = Taint(key="team", value="vision", effect="NoSchedule")
    inventory = an_inventory(msgspec.structs.replace(a_node("n0"), spec=NodeSpec(taints=(taint,))))
    put_gang(inventory, a_gang("job"), [a_pod("job-0", gang="job")])
    assert "n0 has the taint team=vision:NoSchedule, not tolerated by the pod" in refusal(inventory)[1]

    inventory = an_inventory(a_node("n0"))
    put_gang(inventory, a_gang("job"), [a_pod("job-0", gang="job", node_selector={"disk": "ssd"})])
    assert "n0 lacks the label disk=ssd" in refusal(inventory)[1]


def test_a_cordoned_node_is_one_obstacle() -> None:
    """Kubernetes also taints a node that is cordoned; that is one obstacle, unless another taint is in the way."""
    cordoned = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
    team = Taint(key="team", value="vision", effect="NoSchedule")
    advice = []
    for taints in ((cordoned,), (cordoned, team)):
        spec = NodeSpec(unschedulable=True, taints=taints)
        inventory = an_inventory(msgspec.structs.replace(a_node("n0"), spec=spec))
        put_gang(inventory, a_gang("job"), [a_pod("job-0", gang="job")])
        advice.append(refusal(inventory)[1].rpartition("; ")[2])

    assert advice == [
        "n0 is cordoned",
        "n0 is cordoned, and n0 has the taint team=vision:NoSchedule, not tolerated by the pod",
    ]


class OnlyOnSundays(Plugin):
    """Refuses every pod before a node is looked at."""

    name = "only-on-sundays"

    def on_session_open(self, session: Session) -> None:
        session.add_pre_predicate_fn(lambda _task, _job: "today is not Sunday")


def test_what_rules_a_pod_out_beforehand_is_said_on_a_full_cluster_too() -> None:
    """A reason that has nothing to do with nodes is not hidden by nodes that are full as well."""
    inventory = an_inventory(a_node("n0", gpus=1))
    put_job(inventory, "train", 2, gpus=1)

    explanation, line = refusal(inventory, OnlyOnSundays)

    assert "today is not Sunday" in line
    assert not explanation.pods


def test_a_queue_that_does_not_exist_is_all_that_is_said() -> None:
    """What nodes offer is beside the point where a job cannot be in the queue it names."""
    inventory = an_inventory(a_node("n0"))
    inventory.put_queue(QueueInfo(name="real", quota=NO_BOUND, limit=NO_BOUND))
    put_job(inventory, "train", 1, gpus=1)

    explanation, line = refusal(inventory)

    assert not explanation.pods
    assert "queue default-queue does not exist" in line
    assert "name a queue that exists in the label kai.scheduler/queue" in line


def test_a_queue_that_has_no_place_among_queues_is_not_called_missing() -> None:
    """Who names a queue whose parents form a circle is told to give one another parent, not to create it."""
    inventory = an_inventory(a_node("n0"))
    for name, parent in (("default-queue", "above"), ("above", "default-queue")):
        inventory.put_queue(QueueInfo(name=name, parent=parent, quota=NO_BOUND, limit=NO_BOUND))
    put_job(inventory, "train", 1, gpus=1)

    _, line = refusal(inventory)

    assert "its parents form a cycle through default-queue; give one of them another parent" in line
    assert "or create it" not in line


def test_a_queue_at_its_limit_is_named_with_its_figures() -> None:
    """A job its queue's limit keeps out hears of the queue, not of nodes."""
    inventory = an_inventory(a_node("n0"))
    limit = Amounts(NO_BOUND.cpu, NO_BOUND.memory, 2 * GPU)
    inventory.put_queue(QueueInfo(name="default-queue", quota=NO_BOUND, limit=limit))
    put_job(inventory, "train", 3, gpus=1)

    explanation, line = refusal(inventory)

    assert explanation.queue is not None
    assert (explanation.queue.queue, explanation.queue.rule) == ("default-queue", "OverLimit")
    assert "queue default-queue would exceed its limit of 2 GPUs: 0 GPUs in use, 3 GPUs requested" in line


class OnlyEvenNodes(Plugin):
    """Refuses nodes whose name ends in an odd digit."""

    name = "only-even-nodes"

    def on_session_open(self, session: Session) -> None:
        session.add_predicate_fn(self._is_even)

    def _is_even(self, task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> bool:
        return int(node.name[-1]) % 2 == 0


def test_a_plugin_that_refuses_is_named() -> None:
    """What a third party's predicate refused is counted under its name."""
    inventory = an_inventory(a_node("n1"), a_node("n3"))
    put_job(inventory, "train", 1)

    explanation, _ = refusal(inventory, OnlyEvenNodes)

    (report,) = explanation.pods
    assert [(found.filter, found.nodes) for found in report.filters] == [("only-even-nodes", 2)]


def test_jobs_that_ask_for_the_same_are_told_of_their_own_pods() -> None:
    """Two equal jobs share one look at the nodes, and each is told about its own pods."""
    inventory = an_inventory(a_node("n0", gpus=1))
    for name in ("one", "two"):
        put_job(inventory, name, 2, gpus=1)

    refused = a_scheduler(inventory).run_cycle().unschedulable

    named = {found.explanation.subject: found.explanation.pods[0].pod for found in refused if found.explanation}
    assert named == {"team/one": "team/one-0", "team/two": "team/two-0"}


def explanations(inventory: Inventory) -> dict[str, str]:
    """Run one cycle; return the whole explanation of each refused job, by its name."""
    refused = a_scheduler(inventory).run_cycle().unschedulable
    return {found.gang.name: as_text(found.explanation) for found in refused if found.explanation is not None}


def test_a_job_that_may_evict_nobody_is_not_told_of_the_victims_of_another() -> None:
    """Jobs that differ in priority alone are each told what they themselves might have evicted."""
    inventory = an_inventory(a_node("n0", gpus=4))
    put_gang(inventory, a_gang("kept", preemptible=False), [a_pod("kept-0", gang="kept", gpus=3, node="n0")])
    put_gang(inventory, a_gang("small", priority=40), [a_pod("small-0", gang="small", gpus=1, node="n0")])
    for name, priority in (("high", 60), ("low", 30)):
        put_gang(inventory, a_gang(name, priority=priority), [a_pod(f"{name}-0", gang=name, gpus=4)])

    texts = explanations(inventory)

    assert "preempt: 1 pod might have been evicted from its queue, but" in texts["high"]
    assert "preempt: no pod of lower priority in its queue may be evicted" in texts["low"]


def test_a_job_is_not_told_of_rules_about_the_labels_of_another() -> None:
    """A pod that only lacks GPUs does not hear that no node may take it, as one does that a placed pod avoids."""
    term = PodAffinityTerm(
        topology_key="kubernetes.io/hostname", label_selector=LabelSelector(match_labels={"app": "a"})
    )
    avoids = Affinity(pod_anti_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=(term,)))
    inventory = an_inventory(a_node("n0", gpus=4, labels={"kubernetes.io/hostname": "n0"}))
    put_gang(
        inventory, a_gang("old", preemptible=False), [a_pod("old-0", gang="old", gpus=4, node="n0", affinity=avoids)]
    )
    for app in ("a", "b", "c"):
        put_gang(inventory, a_gang(app), [a_pod(f"{app}-0", gang=app, gpus=4, labels={"app": app})])

    texts = explanations(inventory)

    assert "no node there may take them" in texts["a"]
    for name in ("b", "c"):
        assert "no node there may take them" not in texts[name]
        assert "it lacks 4 GPUs on 1 node" in texts[name]


def test_a_pod_whose_claim_was_made_is_not_told_to_have_it_made() -> None:
    """Of two pods with claims from one template, only the one that still lacks its claim hears of the template."""
    inventory = an_inventory(a_node("n0", gpus=4))
    put_gang(inventory, a_gang("old", preemptible=False), [a_pod("old-0", gang="old", gpus=4, node="n0")])
    claim = PodResourceClaim(name="nic", resource_claim_template_name="nics")
    for name in ("without", "with"):
        pod = a_pod(f"{name}-0", gang=name, gpus=4, resource_claims=(claim,))
        if name == "with":
            made = PodResourceClaimStatus(name="nic", resource_claim_name="with-nic")
            pod = msgspec.structs.replace(
                pod, status=msgspec.structs.replace(pod.status, resource_claim_statuses=(made,))
            )
        put_gang(inventory, a_gang(name), [pod])

    texts = explanations(inventory)

    assert "ResourceClaimTemplate nics" in texts["without"]
    assert "ResourceClaimTemplate nics" not in texts["with"]
    assert "resource claim with-nic does not exist" in texts["with"]


def test_pods_beyond_the_minimum_are_told_as_more() -> None:
    """A gang that has what it needs is not told that nothing of it found room."""
    inventory = racks(2)
    there = [a_pod(f"train-{number}", gang="train", gpus=8, node=f"r0-n{number}") for number in range(2)]
    more = [a_pod(f"train-{number}", gang="train", gpus=8) for number in (2, 3)]
    put_gang(inventory, a_gang("train", minimum=2), [*there, *more])
    scheduler = a_scheduler(inventory, config=SchedulerConfig(actions=("allocate",)))

    (refused,) = scheduler.run_cycle().unschedulable
    assert refused.message.startswith("unschedulable on cluster: one more pod found no room; 0 of 1 pods fit")
    assert refused.explanation is not None
    assert "train: one more pod found no room\n" in as_text(refused.explanation)


def test_a_gang_that_lost_a_pod_is_told_which_rack_its_other_pods_keep_it_in() -> None:
    """Room in another rack is no room for it: it hears where it has to stay, and what is lacking there."""
    inventory = racks(2, 1, 2)
    put_gang(inventory, a_gang("old", preemptible=False), [a_pod("old-0", gang="old", gpus=8, node="r0-n1")])
    gang = a_gang("train", minimum=2, topology=TopologyConstraintInfo("dc", required=RACK))
    put_gang(
        inventory, gang, [a_pod("train-0", gang="train", gpus=8, node="r0-n0"), a_pod("train-1", gang="train", gpus=8)]
    )
    scheduler = a_scheduler(inventory, config=SchedulerConfig(actions=("allocate",)))

    (refused,) = scheduler.run_cycle().unschedulable

    assert refused.explanation is not None
    assert refused.message == (
        "unschedulable on cluster: one more pod found no room; it has to stay in rack z.r0, where its other pods are; "
        "0 of 1 pods fit in rack z.r0; it lacks 8 GPUs on 1 node; zone z has room for the pod"
    )
    assert "it has to stay in rack z.r0, where its other pods are" in as_text(refused.explanation)
    assert not [error.message for error in refused.errors if "r1" in error.message or "r2" in error.message]


def test_gangs_that_stay_in_different_racks_are_each_told_of_their_own() -> None:
    """Two broken gangs that ask for the same do not hear of each other's rack."""
    inventory = racks(1, 1, 1)
    for rack, name in enumerate(("first", "second")):
        gang = a_gang(name, minimum=2, preemptible=False, topology=TopologyConstraintInfo("dc", required=RACK))
        placed = a_pod(f"{name}-0", gang=name, gpus=8, node=f"r{rack}-n0")
        put_gang(inventory, gang, [placed, a_pod(f"{name}-1", gang=name, gpus=8)])

    texts = explanations(inventory)

    assert "it has to stay in rack z.r0, where its other pods are" in texts["first"]
    assert "it has to stay in rack z.r1, where its other pods are" in texts["second"]


def test_a_pod_without_rules_is_explained_without_a_look_at_who_was_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    """To bring what filters see of pods up to date costs more than all the rest of a cycle that places many."""
    inventory = an_inventory(a_node("n0"))
    put_job(inventory, "first", 2, gpus=4)
    put_job(inventory, "second", 2, gpus=4)
    monkeypatch.delattr(Nodes, "view")

    explanation, _ = refusal(inventory)

    assert explanation.needs == ()
    assert explanation.pods
