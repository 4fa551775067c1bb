"""Native gangs on the real kube-scheduler of each release: all of the minimum or nothing, and the rest after it."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

import pytest

from spinney.api.conditions import find_condition, is_true
from spinney.api.core import NODE, POD, Pod
from spinney.api.grove import POD_CLIQUE, POD_CLIQUE_SET, PodClique, PodCliqueSet
from spinney.api.podgang import POD_GANG, SCHEDULED, PodGang
from spinney.backends import InitializationFailed, Profile, Profiles, additions
from spinney.backends.kube import KubeSchedulerConfig
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.nodes import ClusterSpec, Fleet
from spinney.nodes.spec import NodeGroup
from spinney.operator.operator import Operator, Settings
from spinney.operator.pod_states import has_gate
from spinney.operator.status.podclique import POD_CLIQUE_SCHEDULED
from spinney.operator.status.podcliqueset import CAPABILITIES_MET
from spinney.runtime import Runtime
from spinney.testing.builders import a_clique, a_pod_clique_set, a_pod_spec
from spinney.testing.controlplane import ControlPlane
from tests.conftest import real_cluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

FORMS = ("1.35", "1.36", "1.37", "1.37 composites")
PLANES = {"1.35": "controlplane_135", "1.36": "controlplane_136", "1.37": "controlplane"}


@pytest.fixture(scope="module", params=FORMS)
def form(request: pytest.FixtureRequest) -> str:
    """The release whose native gangs are used, and whether as composites."""
    chosen: str = request.param
    return chosen


class StockScheduler:
    """The kube-scheduler of a control plane, which can be started anew. Mutable."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self._running = ExitStack()
        self.restart()

    def restart(self) -> None:
        """Have another one in the place of the one that runs."""
        self.stop()
        self._running.enter_context(self.plane.scheduler())

    def stop(self) -> None:
        self._running.close()


@pytest.fixture(scope="module")
def scheduler(form: str, request: pytest.FixtureRequest) -> Iterator[StockScheduler]:
    """The kube-scheduler of each release that has native gangs, on its control plane."""
    scheduler = StockScheduler(request.getfixturevalue(PLANES[form.split(maxsplit=1)[0]]))
    yield scheduler
    scheduler.stop()


@dataclass(frozen=True)
class Place:
    """A namespace of a cluster."""

    client: Client
    namespace: str
    scheduler: StockScheduler


@pytest.fixture
async def place(scheduler: StockScheduler, form: str) -> AsyncIterator[Place]:
    """A cluster of three nodes with one core each, and an operator with native gangs."""
    config = KubeSchedulerConfig(gang_scheduling=True, composites=form.endswith("composites"))
    nodes = NodeGroup(name="node-{index}", count=3, capacity={"cpu": "1", "memory": "1Gi"})
    async for cluster in real_cluster(scheduler.plane):
        client = cluster.connect("spinney-operator")
        await install_crds(client)
        place = Place(client, cluster.namespace, scheduler)
        operator = Operator(client, Settings(profiles=Profiles((Profile("default-scheduler", config),))))
        async with Fleet(client, ClusterSpec(nodes=(nodes,)), runtime=cluster.runtime).running():
            running = asyncio.create_task(operator.run())
            await operator.manager.wait_until_ready()
            yield place
            await client.delete_collection(POD_CLIQUE_SET, place.namespace)
            await until(partial(nobody, place), "the workload is gone")
            operator.stop()
            await running


async def until(holds: Callable[[], Awaitable[bool]], what: str) -> None:
    """Look again and again until something holds."""
    try:
        async with asyncio.timeout(60):
            while not await holds():  # noqa: ASYNC110 - of several kinds
                await asyncio.sleep(0.2)
    except TimeoutError:
        raise AssertionError(f"not reached: {what}") from None


async def until_bound(place: Place, count: int) -> None:
    """Wait until so many pods have a node.

    The gates of gangs are alpha or beta: stopped and continued at random, kube-scheduler 1.36 once placed nothing any
    more, of this gang and of the next test's. So another one is given a try.
    """

    async def are_bound() -> bool:
        return await bound(place) == count

    try:
        await until(are_bound, f"{count} pods are bound")
    except AssertionError:
        await asyncio.to_thread(place.scheduler.restart)
        await until(are_bound, f"{count} pods are bound by another kube-scheduler")


async def pods(place: Place) -> list[Pod]:
    """Return the pods that are not being deleted."""
    listing = await place.client.list(POD, place.namespace, type=Pod)
    return [pod for pod in listing.items if not pod.metadata.deleting]


async def nobody(place: Place) -> bool:
    """Say whether no pod is left."""
    return not (await place.client.list(POD, place.namespace)).items


async def bound(place: Place) -> int:
    """Return how many pods have a node."""
    return sum(bool(pod.spec.node_name) for pod in await pods(place))


async def cordon(place: Place, node: str, *, on: bool) -> None:
    """Take a node out of scheduling, or back in."""
    await place.client.patch(NODE, node, {"spec": {"unschedulable": on}})


def workload(place: Place) -> PodCliqueSet:
    """Return a gang of three that may grow to four."""
    cliques = [
        a_clique("leader", 1, pod_spec=a_pod_spec(cpu="800m")),
        a_clique("worker", 3, 2, pod_spec=a_pod_spec(cpu="800m")),
    ]
    return a_pod_clique_set("model", cliques, namespace=place.namespace, termination_delay="5s")


async def test_all_of_the_minimum_or_nothing(place: Place, form: str) -> None:
    """With room for two of three nothing is bound; with room for three the minimum is, and then the rest is tried."""
    await cordon(place, "node-2", on=True)
    await place.client.apply(POD_CLIQUE_SET, workload(place), field_manager="user")

    async def waiting() -> bool:
        found = await pods(place)
        members = 4 if form.endswith("composites") else 3
        return len(found) == 4 and sum(not has_gate(pod) for pod in found) == members

    await until(waiting, "members released, a pod beyond the native gang gated")
    await asyncio.sleep(3)
    assert await bound(place) == 0
    await cordon(place, "node-2", on=False)

    await until_bound(place, 3)

    async def rest_released() -> bool:
        gang = await place.client.get(POD_GANG, "model-0", place.namespace, type=PodGang)
        return is_true(gang.status.conditions, SCHEDULED) and not any(has_gate(pod) for pod in await pods(place))

    await until(rest_released, "the pod beyond the minimum is released")


async def test_a_recycled_gang_is_a_new_native_gang(place: Place) -> None:
    """After gang termination the new pods form a group of their own and are placed together again."""
    await place.client.apply(POD_CLIQUE_SET, workload(place), field_manager="user")

    await until_bound(place, 3)

    async def noticed() -> bool:
        cliques = await place.client.list(POD_CLIQUE, place.namespace, type=PodClique)
        return all(is_true(clique.status.conditions, POD_CLIQUE_SCHEDULED) for clique in cliques.items)

    await until(noticed, "the operator has seen the gang run: only what ran can break")
    before = {pod.metadata.uid for pod in await pods(place)}
    leader = next(pod for pod in await pods(place) if "leader" in pod.metadata.name)
    await cordon(place, leader.spec.node_name, on=True)
    await place.client.delete(POD, leader.metadata.name, place.namespace, grace_period_seconds=0)

    async def recycled() -> bool:
        found = await pods(place)
        return bool(found) and not before & {pod.metadata.uid for pod in found}

    await until(recycled, "no pod of the former life is left")
    gang = await place.client.get(POD_GANG, "model-0", place.namespace, type=PodGang)
    assert additions.INCARNATION in gang.metadata.annotations
    await cordon(place, leader.spec.node_name, on=False)
    await until_bound(place, 3)


async def test_scaling_in_takes_the_pod_beyond_the_minimum(place: Place, form: str) -> None:
    """A pod that is not in the native gang goes first, and the members are not disturbed."""
    await place.client.apply(POD_CLIQUE_SET, workload(place), field_manager="user")

    await until_bound(place, 3)
    before = {pod.metadata.uid for pod in await pods(place) if pod.spec.node_name}
    await place.client.patch(POD_CLIQUE, "model-0-worker", {"spec": {"replicas": 2}}, place.namespace)

    async def smaller() -> bool:
        return len(await pods(place)) == 3

    await until(smaller, "one pod less")
    if not form.endswith("composites"):  # there every pod is a member, and any three make the minimum
        assert {pod.metadata.uid for pod in await pods(place)} == before


async def test_two_priorities_in_one_gang_are_held_back(place: Place) -> None:
    """kube-scheduler would not place such a gang; the operator says so on the set."""
    cliques = [
        a_clique("leader", 1),
        a_clique("worker", 1, pod_spec=a_pod_spec(priorityClassName="system-node-critical")),
    ]
    pcs = a_pod_clique_set("mixed", cliques, namespace=place.namespace)
    await place.client.apply(POD_CLIQUE_SET, pcs, field_manager="user")

    async def told() -> bool:
        found = await place.client.get(POD_CLIQUE_SET, "mixed", place.namespace, type=PodCliqueSet)
        condition = find_condition(found.status.conditions, CAPABILITIES_MET)
        return condition is not None and (condition.status, condition.reason) == ("False", "Rejected")

    await until(told, "the condition says that the backend rejects the set")


async def test_an_api_server_without_the_gates_stops_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the API server does not have the feature the operator does not start, and says which flags to set."""
    plane = ControlPlane("1.37", controller_manager=False)
    monkeypatch.setattr(plane, "gangs", dataclasses.replace(plane.gangs, gates=()))
    runtime = Runtime.system()
    with plane:
        client = plane.connect(runtime)
        config = KubeSchedulerConfig(gang_scheduling=True)
        with pytest.raises(InitializationFailed, match="--feature-gates=GenericWorkload=true --runtime-config="):
            await Operator(client, Settings(profiles=Profiles((Profile("default-scheduler", config),)))).run()
        await client.transport.close()
    runtime.executor.close()
