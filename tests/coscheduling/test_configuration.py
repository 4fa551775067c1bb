"""The configuration is read strictly, and a profile that cannot work is refused with the reason."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from spinney.api.core import Pod, PodResourceClaim, PodSchedulingGroup
from spinney.api.documents import InvalidConfiguration
from spinney.api.meta import ObjectMeta
from spinney.api.workload_v1alpha1 import GangPolicy
from spinney.api.workload_v1alpha2 import SchedulingConstraints, SchedulingPolicy, TopologyKey
from spinney.api.workload_v1beta1 import PodGroup, PodGroupSpec
from spinney.coscheduling.framework import (
    SUCCESS,
    CycleState,
    EventHint,
    FrameworkPlugin,
    FrameworkRegistry,
    Handle,
    PostFilter,
    PostFilterResult,
    PreFilter,
    Status,
)
from spinney.coscheduling.plugins import BUILT_IN
from spinney.coscheduling.plugins.unkept import KEEPERS
from spinney.coscheduling.process.configuration import CoschedulerConfiguration, load_configuration, parse_configuration
from spinney.kube.cache import Change
from spinney.kube.keys import Key

from .bench import NAMESPACE, Bench, a_node, a_pod

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)


class Late(PostFilter):
    """A post-filter of somebody else's."""

    name = "Late"

    def __init__(self, handle: Handle, arguments: Mapping[str, Any]) -> None:
        self.arguments = arguments

    def post_filter(self, state: CycleState, pod: Pod) -> PostFilterResult:
        return PostFilterResult(Status.unschedulable())


def with_late() -> FrameworkRegistry:
    registry = FrameworkRegistry(BUILT_IN)
    registry.register("Late", Late)
    return registry


async def test_without_profiles_no_other_scheduler_is_in_the_way(cluster_name: str) -> None:
    """It serves a name of its own; kube-scheduler's, which most clusters have one for, only if it is told so."""
    assert parse_configuration({}).scheduler_names == ("coscheduling",)
    assert parse_configuration({"podMaxBackoffSeconds": 20}).scheduler_names == ("coscheduling",)
    both = CoschedulerConfiguration.in_place_of_kube_scheduler()
    assert both.scheduler_names == ("default-scheduler", "coscheduling")


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"profile": []}, "profile: no such field; did you mean 'profiles'?"),
        ({"profiles": []}, "profiles: the list is empty"),
        ({"profiles": [{"schedulerName": "a"}, {"schedulerName": "a"}]}, "'a' is there twice"),
        ({"profiles": [{"schedulerName": "a", "plugins": {"postfilter": {}}}]}, "did you mean 'postFilter'?"),
        ({"profiles": [{"schedulerName": "a", "plugin": {}}]}, "plugin"),
        ({"podInitialBackoffSeconds": 20}, "podInitialBackoffSeconds"),
        ([], "expected a mapping, found list"),
    ],
)
async def test_unknown_and_impossible_fields_are_named(cluster_name: str, raw: Any, said: str) -> None:
    """What cannot be understood is refused, with the field and what it could have been."""
    with pytest.raises(InvalidConfiguration) as raised:
        parse_configuration(raw)
    assert said in str(raised.value)


async def test_files_are_read(cluster_name: str, tmp_path: Path) -> None:
    """A configuration file says what the defaults do not; its name is in the error."""
    path = tmp_path / "config.yaml"
    path.write_text("kind: CoschedulerConfiguration\nprofiles: [{schedulerName: mine}]\n")
    assert load_configuration(path).scheduler_names == ("mine",)
    path.write_text("profiels: []\n")
    with pytest.raises(InvalidConfiguration, match=r"config\.yaml: profiels"):
        load_configuration(path)


async def test_post_filter_2_must_be_last(cluster_name: str) -> None:
    """PostFilter 2: a profile that orders another post-filter after Coscheduling is refused, naming it."""
    with pytest.raises(InvalidConfiguration, match="Coscheduling must be the last postFilter plugin, but Late comes"):
        Bench(registry=with_late(), plugins={"multiPoint": {"enabled": [{"name": "Late"}]}})


async def test_post_filter_enabled_for_its_point_comes_first(cluster_name: str) -> None:
    """A post-filter that is enabled under postFilter runs before the defaults, with its arguments."""
    bench = Bench(
        registry=with_late(),
        plugins={"postFilter": {"enabled": [{"name": "Late"}]}},
        plugin_config=[{"name": "Late", "args": {"a": 1}}],
    )
    first = bench.profile.post_filter[0]
    assert isinstance(first, Late)
    assert first.arguments == {"a": 1}
    assert bench.profile.post_filter[-1].name == "Coscheduling"


async def test_exactly_one_queue_sort(cluster_name: str) -> None:
    """A profile has one QueueSort: two are refused, and another may take its place."""
    enabled = {"enabled": [{"name": "PrioritySort"}]}
    with pytest.raises(InvalidConfiguration, match="exactly one queueSort plugin, found PrioritySort, Coscheduling"):
        Bench(plugins={"queueSort": enabled})
    bench = Bench(plugins={"queueSort": {**enabled, "disabled": [{"name": "Coscheduling"}]}})
    assert bench.profile.queue_sort.name == "PrioritySort"


async def test_disabling_and_weighing(cluster_name: str) -> None:
    """A default plugin can be disabled at one point or at all, and a score weighed anew."""
    bench = Bench(
        plugins={
            "multiPoint": {"disabled": [{"name": "ImageLocality"}]},
            "filter": {"disabled": [{"name": "TaintToleration"}]},
            "score": {"enabled": [{"name": "NodeAffinity", "weight": 9}]},
        }
    )
    assert "TaintToleration" not in [rule.name for rule in bench.profile.filter_rules]
    weights = {rule.name: rule.weight for rule in bench.profile.score_rules}
    assert weights["NodeAffinity"] == 9
    assert weights["TaintToleration"] == 3
    assert "ImageLocality" not in weights


async def test_promises_that_no_plugin_keeps_are_not_broken(cluster_name: str) -> None:
    """Without the plugin that keeps a minimum, a domain or a claim such pods wait and say so; others are bound."""
    constraints = SchedulingConstraints(topology=(TopologyKey(key="rack"),))
    spec = PodGroupSpec(
        scheduling_policy=SchedulingPolicy(gang=GangPolicy(min_count=1)), scheduling_constraints=constraints
    )
    group = PodGroup(metadata=ObjectMeta(name="near", namespace=NAMESPACE), spec=spec)
    sort = {"enabled": [{"name": "PrioritySort"}], "disabled": [{"name": "Coscheduling"}]}
    for plugin, point in KEEPERS.items():
        gone = {"disabled": [{"name": plugin}]}
        bench = Bench(plugins={point: gone, **({"queueSort": sort} if plugin == "Coscheduling" else {})})
        bench.put(a_node("n1", labels={"rack": "r"}), a_pod("single"))
        bench.intake.take_in(Change(Key(NAMESPACE, "near"), None, group, "1"))
        claims = (PodResourceClaim(name="gpu", resource_claim_name="gpu"),)
        membership = PodSchedulingGroup(pod_group_name="near")
        bench.put(a_pod("member", scheduling_group=membership, resource_claims=claims))
        await bench.run()
        assert sorted(bench.binds) == ["single"]
        assert f"the profile has no plugin {plugin}; enable it" in str(bench.refused["member"])


async def test_everything_can_be_disabled_but_a_binder_is_needed(cluster_name: str) -> None:
    """A star disables all defaults of a point; a profile without a binder is refused."""
    bench = Bench(plugins={"score": {"disabled": [{"name": "*"}]}})
    assert bench.profile.score_rules == ()
    with pytest.raises(InvalidConfiguration, match="no bind plugin is enabled"):
        Bench(plugins={"bind": {"disabled": [{"name": "*"}]}})


@pytest.mark.parametrize(
    ("plugins", "arguments", "said"),
    [
        ({"multiPoint": {"enabled": [{"name": "Coshceduling"}]}}, [], "did you mean 'Coscheduling'?"),
        ({"score": {"enabled": [{"name": "NodePorts"}]}}, [], "NodePorts does nothing at score"),
        ({}, [{"name": "Coscheduling", "args": {"permitWaitingTime": 1}}], "did you mean 'permitWaitingTimeSeconds'?"),
        (
            {},
            [{"name": "Coscheduling", "args": {"podGroupRejectPercentage": 101}}],
            "found 101, expected a whole number of at least 0 and at most 100",
        ),
        (
            {},
            [{"name": "Coscheduling", "args": {"podGroupBackoffSeconds": -1}}],
            "found -1, expected a number of at least 0",
        ),
        ({}, [{"name": "NodePorts", "args": {"a": 1}}], "argument a: unknown argument; nothing is expected here"),
        ({}, [{"name": "PrioritySort", "args": {}}], "PrioritySort, which is not enabled"),
    ],
)
async def test_plugins_and_arguments_are_checked(
    cluster_name: str, plugins: Any, arguments: list[Any], said: str
) -> None:
    """A plugin that is unknown or out of place, and an argument that is wrong, are refused by name."""
    with pytest.raises(InvalidConfiguration) as raised:
        Bench(plugins=plugins, plugin_config=arguments)
    assert said in str(raised.value)


class AtBuild(PreFilter):
    """A plugin that may fail when it is made, or when it says which events concern it."""

    def __init__(self, handle: Handle, arguments: Mapping[str, Any]) -> None:
        super().__init__(handle, arguments)
        self.fails()

    def fails(self) -> None: ...

    def pre_filter(self, state: CycleState, pod: Pod) -> Status:
        return SUCCESS


class LeavesAtBuild(AtBuild):
    def fails(self) -> None:
        sys.exit(3)


class LeavesAtEvents(AtBuild):
    def events(self) -> tuple[EventHint, ...]:
        sys.exit(3)


class RaisesAtEvents(AtBuild):
    def events(self) -> tuple[EventHint, ...]:
        raise RuntimeError("lost my configuration")


class NamesNoEvents(AtBuild):
    def events(self) -> tuple[EventHint, ...]:
        return ("Node",)  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("plugin", "said"),
    [
        (LeavesAtBuild, "plugin Faulty cannot be built: SystemExit: 3"),
        (LeavesAtEvents, "which events concern it: events() raised SystemExit: 3"),
        (RaisesAtEvents, "which events concern it: events() raised RuntimeError: lost my configuration"),
        (NamesNoEvents, "which events concern it: events() returned 'Node' (str), expected an EventHint"),
    ],
)
async def test_a_plugin_that_fails_at_the_start_is_named(
    cluster_name: str, plugin: type[FrameworkPlugin], said: str
) -> None:
    """Whatever it does, the configuration that enables it is refused, which no process takes for its end."""
    registry = FrameworkRegistry(BUILT_IN)
    registry.register("Faulty", type("Faulty", (plugin,), {"name": "Faulty"}))
    with pytest.raises(InvalidConfiguration) as raised:
        Bench(registry=registry, plugins={"multiPoint": {"enabled": [{"name": "Faulty"}]}})
    assert said in str(raised.value)


async def test_arguments_of_the_plugin_have_their_defaults(bench: Bench) -> None:
    """Groups wait 60 s, rest 10 s, and are rejected above a gap of 10 %, unless configured otherwise."""
    arguments = bench.plugin.arguments
    assert arguments.permit_waiting_time_seconds == 60
    assert arguments.pod_group_backoff_seconds == 10
    assert arguments.pod_group_reject_percentage == 10
    assert arguments.prefer_closest_to_completion


async def test_names_are_taken_once(cluster_name: str) -> None:
    """Two plugins of one name are refused."""
    registry = FrameworkRegistry(BUILT_IN)
    with pytest.raises(ValueError, match="registered already"):
        registry.register("NodePorts", Late)
