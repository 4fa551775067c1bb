"""Whether kube-scheduler keeps native gangs together is tried at start, and what was found is written down.

On the embedded cluster a few lines stand in for kube-scheduler; the real one of each release is asked below.
"""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from spinney.api.conditions import find_condition
from spinney.api.core import POD, Pod
from spinney.api.meta import Condition
from spinney.api.podgang import POD_GANG, PodGang
from spinney.backends import BackendContext, BackendUnavailable, gang_probe
from spinney.backends.kube import NOT_KEPT, KubeScheduler, KubeSchedulerConfig
from spinney.backends.native_gangs import NEWEST_FIRST
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.kube.errors import NotFound
from spinney.kube.events import EventRecorder
from spinney.runtime import Runtime
from spinney.runtime.tasks import end
from spinney.testing.backends import Lookup
from spinney.testing.builders import a_pod_clique_set
from spinney.testing.controlplane import ControlPlane
from tests.backends.bench import asking
from tests.virtual_time import on_virtual_time

PLANES = {"1.35": "controlplane_135", "1.36": "controlplane_136", "1.37": "controlplane"}


def verifying(context: BackendContext) -> KubeScheduler:
    """Return the kube backend, told to try a gang at start."""
    return KubeScheduler(context, KubeSchedulerConfig(gang_scheduling=True, verify_gang_scheduling=True))


async def told_unschedulable(client: Client, looks_at: Callable[[Pod, Sequence[Pod]], bool]) -> None:
    """Call pods unschedulable as soon as the scheduler would look at them."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/0 nodes"}
    async for _ in client.watch(POD, "default"):
        pods = (await client.list(POD, "default", type=Pod)).items
        for pod in pods:
            if pod.condition("PodScheduled") is None and looks_at(pod, pods):
                try:
                    patch = {"status": {"conditions": [condition]}}
                    await client.patch(POD, pod.metadata.name, patch, "default", subresource="status")
                except NotFound:
                    continue


def at_once(pod: Pod, pods: Sequence[Pod]) -> bool:
    """Look at every pod, as a scheduler without gangs does."""
    return True


def when_complete(pod: Pod, pods: Sequence[Pod]) -> bool:
    """Look at the pods of a group of two when there are two of them."""
    members = [each for each in pods if each.spec.scheduling_group is not None]
    return pod.spec.scheduling_group is None or len(members) == 2


def never(pod: Pod, pods: Sequence[Pod]) -> bool:
    """Do not run at all."""
    return False


async def verdict(client: Client) -> Condition:
    """Return what the record of the probe says, after checking that nothing else was left."""
    record = await client.get(POD_GANG, gang_probe.NAME, "default", type=PodGang)
    assert not (await client.list(POD, "default")).items
    condition = find_condition(record.status.conditions, gang_probe.VERIFIED)
    assert condition is not None
    return condition


@pytest.mark.parametrize(
    ("looks_at", "status", "reason"),
    [(when_complete, "True", "WaitedForQuorum"), (at_once, "False", "TriedAlone"), (never, "Unknown", "NotLookedAt")],
)
@on_virtual_time
async def test_what_a_scheduler_does_is_found_out(looks_at: Callable[..., bool], status: str, reason: str) -> None:
    """A scheduler that waits for a gang is told from one that does not, and from one that is not there."""

    class Accompanied(KubeScheduler):
        async def init(self) -> None:
            scheduler = asyncio.create_task(told_unschedulable(self.context.client, looks_at))
            try:
                await super().init()
            finally:
                await end(scheduler)

    config = KubeSchedulerConfig(gang_scheduling=True, verify_gang_scheduling=True)
    async with asking(lambda context: Accompanied(context, config)) as kube:
        condition = await verdict(kube.context.client)
        assert (condition.status, condition.reason) == (status, reason)
        degraded = [str(each) for each in await kube.validate_pod_clique_set(a_pod_clique_set(), None)]
        assert kube.capabilities.gang_scheduling == (status != "False")
        assert degraded == ([f"gang_scheduling: {NOT_KEPT}"] if status == "False" else [])


@on_virtual_time
async def test_nothing_is_probed_without_gang_scheduling() -> None:
    """Asking for the probe alone stops the operator: there is nothing to verify."""
    config = KubeSchedulerConfig(verify_gang_scheduling=True)
    with pytest.raises(BackendUnavailable, match="verifyGangScheduling is on and gangScheduling is not"):
        async with asking(lambda context: KubeScheduler(context, config)):
            pass


# -- on the real kube-scheduler of each release -----------------------------------------------------------------------


@pytest.fixture(params=PLANES)
def plane(request: pytest.FixtureRequest) -> ControlPlane:
    """A control plane of each release that has native gangs."""
    found: ControlPlane = request.getfixturevalue(PLANES[request.param])
    return found


@pytest.fixture
async def client(plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Client]:
    """A client of the plane, which has the CRDs; a probe may take long there."""
    monkeypatch.setattr(gang_probe, "PATIENCE_SECONDS", 100.0)
    runtime = Runtime.system()
    client = plane.connect(runtime)
    await install_crds(client)
    yield client
    await client.delete(POD_GANG, gang_probe.NAME, "default")
    await client.transport.close()
    runtime.executor.close()


@contextmanager
def without_gates(plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run the plane's kube-scheduler without the feature gates of gangs."""
    monkeypatch.setattr(plane, "gangs", dataclasses.replace(plane.gangs, gates=()))
    with plane.scheduler():
        yield


@pytest.mark.real
async def test_kube_scheduler_with_its_gates_is_verified(plane: ControlPlane, client: Client) -> None:
    """With the feature gates set on kube-scheduler, too, the probe says True."""
    with plane.scheduler():
        await _backend(client).init()
    assert (await verdict(client)).status == "True"


@pytest.mark.real
async def test_kube_scheduler_without_its_gates_is_found_out(
    plane: ControlPlane, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the gates on the API server and not on kube-scheduler the probe says False, and names the flags."""
    kube = _backend(client)
    with without_gates(plane, monkeypatch):
        await kube.init()
    found = await verdict(client)
    (native,) = [each for each in NEWEST_FIRST if each.release == plane.minor]
    assert (found.status, found.reason) == ("False", "TriedAlone")
    assert f"--feature-gates={native.gates}" in found.message
    assert not kube.capabilities.gang_scheduling


def _backend(client: Client) -> KubeScheduler:
    return verifying(BackendContext(client, EventRecorder(client, "test"), client.runtime.clock, Lookup()))
