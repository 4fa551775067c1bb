"""Backends of third parties that get a topology wrong: the binding says which, and the others' topologies stand."""

import asyncio
from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec
import pytest
from structlog.testing import capture_logs

from spinney.api.conditions import find_condition
from spinney.api.kai import TOPOLOGY
from spinney.api.podgang import PodGang
from spinney.api.resource import Resource
from spinney.api.topology_binding import (
    CLUSTER_TOPOLOGY_BINDING,
    ClusterTopologyBinding,
    SchedulerTopologyBinding,
    SchedulerTopologyStatus,
)
from spinney.backends import (
    Capabilities,
    Catalogue,
    InitializationFailed,
    PodManifest,
    Profile,
    Profiles,
    Registry,
    SchedulerBackend,
    TopologyAware,
    TopologyState,
)
from spinney.backends.builtin import BACKENDS
from spinney.kube.manager import Manager
from spinney.operator.operator import Settings
from spinney.operator.status.clustertopologybinding import DRIFT
from spinney.testing.builders import a_topology
from tests.operator.harness import World, a_world
from tests.virtual_time import on_virtual_time

PROFILES = Profiles((Profile("default-scheduler"), Profile("clumsy"), Profile("kai-scheduler")), "kai-scheduler")


class Clumsy(SchedulerBackend, TopologyAware):
    """Does it right, but for what a test puts in; its topologies are of a kind that the cluster does not have."""

    name: ClassVar[str] = "clumsy"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities()

    def prepare_pod(self, pod: PodManifest, gang: PodGang) -> None:
        pod["spec"]["schedulerName"] = self.name

    @property
    def topology_resource(self) -> Resource:
        return Resource("clumsy.example", "v1", "Map", "maps", namespaced=False)

    def topology_name(self, binding: ClusterTopologyBinding) -> str:
        return binding.metadata.name

    async def sync_topology(self, binding: ClusterTopologyBinding) -> TopologyState:
        return TopologyState(True)

    async def check_topology(self, binding: ClusterTopologyBinding, reference: str) -> TopologyState:
        return TopologyState(True)


def a_catalogue(wrong: Mapping[str, object]) -> Catalogue:
    """Return the built-in backends, and the clumsy one with these wrong methods."""
    catalogue = Catalogue()
    for backend in (*BACKENDS, type("ClumsyOne", (Clumsy,), dict(wrong))):
        catalogue.register(backend)
    return catalogue


def exits(*_: object) -> Any:
    """End the program."""
    raise SystemExit(3)


def counts(*_: object) -> Any:
    """Answer with a number."""
    return 3


def meddles(self: object, binding: ClusterTopologyBinding) -> str:
    """Change what it is given."""
    binding.metadata.labels["mine"] = "yes"  # type: ignore[index]
    return binding.metadata.name


async def raises(*_: object) -> Any:
    """Fail."""
    raise LookupError("no map of the racks")


async def cancels(*_: object) -> Any:
    """Fail as if it had been cancelled."""
    raise asyncio.CancelledError


async def hangs(*_: object) -> Any:
    """Never answer."""
    await asyncio.Event().wait()


async def says_nothing(*_: object) -> Any:
    """Answer with nothing."""


async def half_says(*_: object) -> Any:
    """Answer with a state that is filled in wrongly."""
    return TopologyState(True, observed_generation="3")  # type: ignore[arg-type]


async def by_scheduler(world: World) -> dict[str, SchedulerTopologyStatus]:
    """Return what the binding says of each scheduler's topology."""
    found = await world.client.get(CLUSTER_TOPOLOGY_BINDING, "cluster", type=ClusterTopologyBinding)
    assert find_condition(found.status.conditions, DRIFT) is not None
    return {each.scheduler_name: each for each in found.status.scheduler_topology_statuses}


@pytest.mark.parametrize(
    ("method", "wrong", "said"),
    [
        ("topology_name", exits, "topology_name raised SystemExit: 3"),
        ("topology_name", counts, "topology_name returned 3 (int), expected the name of a topology"),
        ("sync_topology", raises, "sync_topology raised LookupError: no map of the racks"),
        ("sync_topology", cancels, "sync_topology raised CancelledError, though nobody cancelled it"),
        ("sync_topology", hangs, "sync_topology has not answered within 30 s"),
        ("sync_topology", says_nothing, "sync_topology returned None, expected a TopologyState"),
        ("sync_topology", half_says, "returned a TopologyState whose observed_generation is '3' (str), expected int"),
        ("check_topology", raises, "check_topology raised LookupError: no map of the racks"),
        ("check_topology", hangs, "check_topology has not answered within 30 s"),
        ("check_topology", says_nothing, "check_topology returned None, expected a TopologyState"),
    ],
)
@on_virtual_time
async def test_a_backend_that_gets_a_topology_wrong_is_named(method: str, wrong: object, said: str) -> None:
    """The method stands beside the scheduler's name, KAI's topology is kept, and no traceback is logged."""
    with capture_logs() as logs:
        async with a_world(Settings(profiles=PROFILES), catalogue=a_catalogue({method: wrong})) as world:
            binding = a_topology("cluster")
            if method == "check_topology":
                named = SchedulerTopologyBinding(scheduler_name="clumsy", topology_reference="theirs")
                spec = msgspec.structs.replace(binding.spec, scheduler_topology_bindings=(named,))
                binding = msgspec.structs.replace(binding, spec=spec)
            await world.client.create(CLUSTER_TOPOLOGY_BINDING, binding)
            await world.settle(40)
            told = await by_scheduler(world)
            assert (told["clumsy"].in_sync, told["kai-scheduler"].in_sync) == (False, True)
            assert said in (told["clumsy"].message or "")
            assert (await world.client.get(TOPOLOGY, "cluster"))["spec"]["levels"]
    assert not [each for each in logs if each.get("exc_info")]


@on_virtual_time
async def test_what_a_backend_changes_in_a_binding_is_changed_for_nobody_else() -> None:
    """The operator's own copy of the binding stays as it is stored."""
    async with a_world(Settings(profiles=PROFILES), catalogue=a_catalogue({"topology_name": meddles})) as world:
        await world.client.create(CLUSTER_TOPOLOGY_BINDING, a_topology("cluster"))
        await world.settle()
        assert all(each.in_sync for each in (await by_scheduler(world)).values())
        assert [dict(each.metadata.labels) for each in world.operator.caches.bindings.values()] == [{}]


@on_virtual_time
async def test_topologies_are_watched_in_the_order_of_schedulers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process does the same at each start: in the order of a set, a seed would not replay a run."""
    names = [f"clumsy-{letter}" for letter in "abcdefgh"]
    catalogue = a_catalogue({})
    for name in names:
        kind = property(lambda self: Resource(f"{self.name}.example", "v1", "Map", "maps", namespaced=False))
        catalogue.register(type("ClumsyOne", (Clumsy,), {"name": name, "topology_resource": kind}))
    followed: list[Resource] = []
    monkeypatch.setattr(Manager, "follow_later", lambda _self, kinds, _follow: followed.extend(kinds))

    profiles = Profiles((Profile("default-scheduler"), *map(Profile, names)), "default-scheduler")
    async with a_world(Settings(profiles=profiles), catalogue=catalogue):
        assert [kind.group for kind in followed if kind.kind == "Map"] == [f"{name}.example" for name in names]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [(exits, "SystemExit: 3"), (counts, r"InvalidAnswer: returned 3 \(int\), expected a Resource from `topology")],
)
@on_virtual_time
async def test_a_backend_that_does_not_say_its_kind_of_topology_names_its_profile(wrong: Any, said: str) -> None:
    """The operator does not start, and says why."""
    with pytest.raises(InitializationFailed, match=rf"profile 'clumsy' \(not listed\): {said}"):
        await Registry().initialize(
            a_catalogue({"topology_resource": property(wrong)}),
            None,  # type: ignore[arg-type]
            Profiles((Profile("clumsy"),), "clumsy"),
        )
