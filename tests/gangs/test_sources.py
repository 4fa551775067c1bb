"""Gangs of each family of objects."""

from collections import Counter

import pytest

from spinney.api import coscheduling, kai, volcano, workload_v1alpha1, workload_v1beta1
from spinney.api.core import Pod, PodSchedulingGroup, PodSpec, PodWorkloadReference
from spinney.api.labels import ABOVE, GROUPED, TOP_OWNER
from spinney.api.meta import Metadata, ObjectMeta
from spinney.api.podgang import (
    GangTopologyConstraint,
    PodGang,
    PodGangSpec,
    PodGroup,
    TopologyConstraintGroupConfig,
    TopologyPackConstraint,
)
from spinney.api.scheduling import PriorityClass
from spinney.api.struct import convert
from spinney.api.workload_v1alpha1 import GangPolicy, PodGroupPolicy
from spinney.api.workload_v1alpha2 import SchedulingConstraints, SchedulingPolicy, TopologyKey
from spinney.cluster.classes import RequestClasses
from spinney.cluster.pods import record_of
from spinney.cluster.resources import ResourceAxis
from spinney.gangs.definitions import GangDefinitions
from spinney.gangs.membership import membership
from spinney.gangs.source_workloads import made_for
from spinney.gangs.sources import bare, native, podgang
from spinney.gangs.sources import coscheduling as coscheduling_source
from spinney.gangs.sources import kai as kai_source
from spinney.gangs.sources import volcano as volcano_source
from spinney.gangs.sources.context import SourceContext
from spinney.gangs.tree import Gang, GangKey, GroupSet, PodSet, TopologyConstraintInfo
from spinney.kube.keys import Key

CONTEXT = SourceContext()
META = ObjectMeta(name="g", namespace="team")


def member_of(**changes: object) -> tuple[GangKey, str]:
    """Return the membership of a pod with some labels, annotations or spec fields."""
    spec = changes.pop("spec", PodSpec())
    pod = Pod(metadata=Metadata(name="p", namespace="team", **changes), spec=spec)  # type: ignore[arg-type]
    return membership(record_of(pod, RequestClasses(ResourceAxis())))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"annotations": {"pod-group-name": "g"}}, ("kai", "g", "default")),
        (
            {"annotations": {"pod-group-name": "g"}, "labels": {"kai.scheduler/subgroup-name": "w"}},
            ("kai", "g", "w"),
        ),
        ({"labels": {"grove.io/podgang": "g", "grove.io/podclique": "c"}}, ("podgang", "g", "c")),
        ({"labels": {"scheduling.x-k8s.io/pod-group": "g"}}, ("coscheduling", "g", "default")),
        (
            {"annotations": {"scheduling.k8s.io/group-name": "g", "volcano.sh/task-spec": "t"}},
            ("volcano", "g", "t"),
        ),
        (
            {"spec": PodSpec(scheduling_group=PodSchedulingGroup(pod_group_name="g"))},
            ("native", "g", "default"),
        ),
        (
            {"spec": PodSpec(workload_ref=PodWorkloadReference(name="w", pod_group="g", pod_group_replica_key="0"))},
            ("workload", "w/g/0", "default"),
        ),
        ({}, ("pod", "p", "default")),
    ],
)
def test_a_pod_says_where_it_belongs(changes: dict[str, object], expected: tuple[str, str, str]) -> None:
    """Each family has its own way of naming the group; a pod that names none is on its own."""
    key, pod_set = member_of(**changes)

    assert (key.source, key.name, pod_set) == expected


def test_a_kai_pod_group_without_sub_groups_is_one_pod_set() -> None:
    """The floor is minMember, 1 if absent; priority and preemptibility come from the class."""
    plain = kai_source.gang(kai.PodGroup(metadata=META, spec=kai.PodGroupSpec(queue="q")), CONTEXT)
    build = kai_source.gang(
        kai.PodGroup(metadata=META, spec=kai.PodGroupSpec(queue="q", min_member=4, priority_class_name="build")),
        CONTEXT,
    )

    assert (plain.pod_sets["default"].min_member, plain.priority, plain.preemptible) == (1, 50, True)
    assert (build.pod_sets["default"].min_member, build.priority, build.preemptible) == (4, 100, False)


def test_kai_sub_groups_form_a_tree() -> None:
    """A sub-group with children is a group set, one without a pod set; constraints stay where they are."""
    constraint = kai.GroupTopologyConstraint(topology="t", required_topology_level="rack")
    spec = kai.PodGroupSpec(
        min_sub_group=1,
        sub_groups=(
            kai.SubGroup(name="replica", topology_constraint=constraint),
            kai.SubGroup(name="leader", parent="replica", min_member=1),
            kai.SubGroup(name="worker", parent="replica", min_member=3),
            kai.SubGroup(name="spare", min_member=0),
        ),
    )
    root = kai_source.gang(kai.PodGroup(metadata=META, spec=spec), CONTEXT).root

    assert root.min_groups == 1
    replica, spare = root.members
    assert isinstance(replica, GroupSet)
    assert replica.topology == TopologyConstraintInfo("t", required="rack", kind="Topology")
    assert [member.minimum for member in replica.members] == [1, 3]
    assert spare == PodSet("spare", 0)


@pytest.mark.parametrize(
    ("sub_groups", "problem"),
    [
        ((kai.SubGroup(name="a"), kai.SubGroup(name="a")), "same name"),
        ((kai.SubGroup(name="a", parent="ghost"),), "ghost"),
        ((kai.SubGroup(name="a", parent="b"), kai.SubGroup(name="b", parent="a")), "cycle"),
        (
            tuple(kai.SubGroup(name=f"s{n}", parent=f"s{n - 1}" if n else None) for n in range(5000)),
            "nested deeper than",
        ),
    ],
)
def test_sub_groups_that_form_no_tree_are_a_problem(sub_groups: tuple[kai.SubGroup, ...], problem: str) -> None:
    """The gang exists, cannot be scheduled, and says why."""
    gang = kai_source.gang(kai.PodGroup(metadata=META, spec=kai.PodGroupSpec(sub_groups=sub_groups)), CONTEXT)

    assert problem in gang.problem


def test_a_pod_gang_keeps_its_constraints_at_every_level() -> None:
    """Groups that share a constraint are one group set; the topology's name comes from the annotation."""

    def pack(key: str) -> GangTopologyConstraint:
        return GangTopologyConstraint(pack_constraint=TopologyPackConstraint(required=key))

    spec = PodGangSpec(
        pod_groups=(
            PodGroup(name="prefill", min_replicas=2),
            PodGroup(name="decode", min_replicas=4, topology_constraint=pack("host")),
            PodGroup(name="router", min_replicas=1),
        ),
        topology_constraint=pack("zone"),
        topology_constraint_group_configs=(
            TopologyConstraintGroupConfig(
                name="sg-0", pod_group_names=("prefill", "decode"), topology_constraint=pack("rack")
            ),
        ),
    )
    meta = ObjectMeta(
        name="g",
        namespace="team",
        annotations={"grove.io/topology-name": "t"},
        labels={"grove.io/base-podgang": "base"},
    )
    gang = podgang.gang(PodGang(metadata=meta, spec=spec), CONTEXT)

    assert gang.root.topology == TopologyConstraintInfo("t", required="zone", kind="ClusterTopologyBinding")
    group, router = gang.root.members
    assert group.topology == TopologyConstraintInfo("t", required="rack", kind="ClusterTopologyBinding")
    assert isinstance(group, GroupSet)
    assert group.members[1].topology == TopologyConstraintInfo("t", required="host", kind="ClusterTopologyBinding")
    assert router == PodSet("router", 1)
    assert gang.anchor == GangKey("podgang", "team", "base")
    assert gang.owned_by_operator


def test_simple_families_have_one_pod_set() -> None:
    """Coscheduling and native groups say how many pods must be there together."""
    plugin = coscheduling_source.gang(
        coscheduling.PodGroup(metadata=META, spec=coscheduling.PodGroupSpec(min_member=5)), CONTEXT
    )
    built_in = native.gang(
        workload_v1beta1.PodGroup(
            metadata=META,
            spec=workload_v1beta1.PodGroupSpec(
                scheduling_policy=SchedulingPolicy(gang=GangPolicy(min_count=6)),
                scheduling_constraints=SchedulingConstraints(topology=(TopologyKey(key="rack"),)),
            ),
        ),
        CONTEXT,
    )

    assert plugin.pod_sets["default"].min_member == 5
    assert built_in.pod_sets["default"].min_member == 6
    assert built_in.root.topology == TopologyConstraintInfo("", required="rack")


def test_a_volcano_group_may_have_minimums_per_task() -> None:
    """Each task with a minimum is a pod set of its own, and the pods of others are welcome."""
    spec = volcano.PodGroupSpec(min_member=3, min_task_member={"worker": 2, "ps": 1}, queue="ml")
    gang = volcano_source.gang(volcano.PodGroup(metadata=META, spec=spec), CONTEXT)

    minimums = {name: pod_set.min_member for name, pod_set in gang.pod_sets.items()}
    assert minimums == {"ps": 1, "worker": 2, "other tasks": 0}
    assert gang.queue == "ml"


def test_a_volcano_group_that_needs_fewer_pods_than_its_tasks_does_not_ask_for_each_task() -> None:
    """A minMember below the sum of the minimums per task holds alone, as it does for Volcano."""
    spec = volcano.PodGroupSpec(min_member=3, min_task_member={"worker": 4, "ps": 2})
    gang = volcano_source.gang(volcano.PodGroup(metadata=META, spec=spec), CONTEXT)

    assert {name: pod_set.min_member for name, pod_set in gang.pod_sets.items()} == {"default": 3}


def test_every_replica_key_of_a_workload_is_a_gang() -> None:
    """The oldest generation has templates; the gang is derived from the key pods carry."""
    workload = workload_v1alpha1.Workload(
        metadata=META,
        spec=workload_v1alpha1.WorkloadSpec(
            pod_groups=(workload_v1alpha1.PodGroup(name="w", policy=PodGroupPolicy(gang=GangPolicy(min_count=3))),)
        ),
    )
    gang = native.workload_gang(workload, GangKey("workload", "team", "g/w/1"), CONTEXT)

    assert gang is not None
    assert gang.pod_sets["default"].min_member == 3
    assert native.workload_gang(workload, GangKey("workload", "team", "g/other/1"), CONTEXT) is None


def test_a_bare_pod_takes_priority_from_its_class_or_itself() -> None:
    """The label wins, then the class of the spec, then the number admission has resolved."""

    def gang_of(**spec: object) -> int:
        pod = Pod(metadata=Metadata(name="p", namespace="team"), spec=PodSpec(**spec))  # type: ignore[arg-type]
        return bare.gang(record_of(pod, RequestClasses(ResourceAxis())), CONTEXT).priority

    assert gang_of(priority_class_name="inference") == 125
    assert gang_of(priority_class_name="unheard-of", priority=7) == 7
    assert gang_of() == 50


def test_a_priority_class_concerns_the_gangs_that_name_it() -> None:
    """There may be many classes and many gangs: each class is looked up for its own, and the default for the others."""
    definitions, asked = GangDefinitions(), Counter[str]()

    class Listening:
        def put_gang(self, gang: Gang) -> None:
            asked[gang.name] += 1
            priorities[gang.name] = gang.priority

        def remove_gang(self, key: GangKey) -> None: ...

        def attach(self, part: GangKey, before: GangKey, home: GangKey) -> None: ...

        def derive_again(self, workload: Key | None) -> None: ...

    priorities: dict[str, int] = {}
    definitions.subscribe(Listening())
    for name, named in (("mine", "high"), ("other", "low"), ("none", "")):
        raw = {"metadata": {"name": name, "namespace": "ns"}, "spec": {"minMember": 1, "priorityClassName": named}}
        definitions.put(kai.PodGroup, Key("ns", name), convert(kai.PodGroup, raw))

    def put(name: str, value: int | None, **more: object) -> None:
        made = (
            convert(PriorityClass, {"metadata": {"name": name}, "value": value, **more}) if value is not None else None
        )
        asked.clear()
        definitions.put(PriorityClass, Key("", name), made)

    put("high", 7)
    assert (asked, priorities) == ({"mine": 1}, {"mine": 7, "other": 50, "none": 50})
    put("usual", 3, globalDefault=True)
    assert priorities == {"mine": 7, "other": 3, "none": 3}
    put("low", 1)
    assert (asked, priorities["other"]) == ({"other": 1}, 1)
    put("high", None)
    assert (asked, priorities["mine"]) == ({"mine": 1}, 3)
    put("unheard", 9)
    assert not asked


def test_what_owns_a_workload_may_be_written_wrongly() -> None:
    """Anybody may annotate a PodGang of theirs; who looks for another gang by what owns it is answered."""
    labels = {GROUPED: "true"}
    annotations = {TOP_OWNER: "kind: Job\nname: run-1", ABOVE: "odd / CronJob/nightly"}
    made = PodGang(metadata=ObjectMeta(name="g", namespace="team", labels=labels, annotations=annotations))

    assert made_for(made, "cronjob", "nightly")
    assert not made_for(made, "cronjob", "odd")
