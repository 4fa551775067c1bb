"""How the operator and a backend work together: order, failures, the delete hook, and gangs of disabled backends."""

import asyncio
import dataclasses
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import ClassVar

from spinney.api import labels as marks
from spinney.api.conditions import find_condition, is_true
from spinney.api.core import EVENT, POD, Pod
from spinney.api.grove import POD_CLIQUE, POD_CLIQUE_SET, PodCliqueSet
from spinney.api.podgang import BACKEND_READY, CONSTRAINT_NOT_HONOURED, INITIALIZED, POD_GANG, SCHEDULED, PodGang
from spinney.backends import Capabilities, Catalogue, PodManifest, Profile, Profiles, SchedulerBackend, additions
from spinney.backends.builtin import BACKENDS
from spinney.backends.interface import Degradation, Rejected
from spinney.backends.kube import KubeSchedulerConfig
from spinney.kube.controller import RESYNC_SECONDS
from spinney.operator.configuration import WORKERS
from spinney.operator.operator import Settings
from spinney.operator.pod_states import has_gate
from spinney.operator.status.podcliqueset import CAPABILITIES_MET
from spinney.testing.builders import a_clique, a_pod_clique_set, a_pod_spec
from tests.operator.harness import World, a_world
from tests.virtual_time import on_virtual_time, opening


class Recorder(SchedulerBackend):
    """Keeps what it was asked, and does what a test tells it to."""

    name: ClassVar[str] = "recorder"
    calls: ClassVar[list[str]] = []
    failing: ClassVar[bool] = False
    holding: ClassVar[bool] = False
    hanging: ClassVar[tuple[str, ...]] = ()  # how the names of gangs begin that get no answer
    clumsy: ClassVar[tuple[str, ...]] = ()  # and whose pods cannot be prepared
    leaving: ClassVar[tuple[str, ...]] = ()  # and about whose pods it ends the program
    leaving_at_sync: ClassVar[tuple[str, ...]] = ()  # and about which themselves
    writes_scheduled: ClassVar[bool] = False
    undecided: ClassVar[tuple[str, ...]] = ()  # how the names of sets begin that it never judges
    confused: ClassVar[int] = 0  # how many times it cannot judge a set
    rejecting: ClassVar[bool] = False

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(writes_scheduled=self.writes_scheduled)

    async def sync_pod_gang(self, gang: PodGang) -> None:
        initialized = is_true(gang.status.conditions, INITIALIZED)
        scheduled = is_true(gang.status.conditions, SCHEDULED)
        type(self).calls.append(f"sync {gang.metadata.name} initialized={initialized} scheduled={scheduled}")
        if type(self).failing:
            raise RuntimeError("the scheduler is on holiday")
        if gang.metadata.name.startswith(type(self).leaving_at_sync):
            sys.exit(3)
        if gang.metadata.name.startswith(type(self).hanging):
            await asyncio.Event().wait()

    async def on_pod_gang_delete(self, gang: PodGang) -> None:
        type(self).calls.append(f"delete {gang.metadata.name}")
        if type(self).failing:
            raise RuntimeError("the scheduler is on holiday")

    def prepare_pod(self, pod: PodManifest, gang: PodGang) -> None:
        type(self).calls.append(f"prepare {pod['spec']['hostname']}")
        if gang.metadata.name.startswith(type(self).clumsy):
            raise RuntimeError("the pod was dropped")
        if gang.metadata.name.startswith(type(self).leaving):
            sys.exit(3)
        pod["spec"]["schedulerName"] = self.name

    def may_release(self, pod: Pod, gang: PodGang) -> bool:
        return not type(self).holding

    async def validate_pod_clique_set(self, pcs: PodCliqueSet, old: PodCliqueSet | None) -> list[Degradation]:
        if pcs.metadata.name.startswith(type(self).undecided):
            await asyncio.Event().wait()
        if type(self).confused:
            type(self).confused -= 1
            raise ConnectionError("the scheduler does not answer")
        if type(self).rejecting:
            raise Rejected("not now")
        return [Degradation("gang_scheduling", "there are no gangs here")]


def settings() -> tuple[Settings, Catalogue]:
    """Return settings with the recorder as default, and forget what it recorded."""
    Recorder.calls, Recorder.failing, Recorder.holding = [], False, False
    Recorder.leaving, Recorder.leaving_at_sync = (), ()
    Recorder.hanging, Recorder.clumsy, Recorder.undecided, Recorder.writes_scheduled = (), (), (), False
    Recorder.confused, Recorder.rejecting = 0, False
    catalogue = Catalogue()
    backends: list[type[SchedulerBackend]] = [*BACKENDS, Recorder]
    for backend in backends:
        catalogue.register(backend)
    profiles = Profiles((Profile("default-scheduler"), Profile("recorder")), "recorder")
    return Settings(profiles=profiles), catalogue


@asynccontextmanager
async def recorded() -> AsyncIterator[World]:
    """Run an operator whose backend is the recorder."""
    chosen, catalogue = settings()
    async with a_world(chosen, catalogue=catalogue) as world:
        yield world


given_a_recorder = opening(recorded)


async def the_set(world: World, name: str = "model") -> PodCliqueSet:
    return await world.client.get(POD_CLIQUE_SET, name, "test", type=PodCliqueSet)


@given_a_recorder
async def test_a_backend_is_asked_in_the_promised_order(world: World) -> None:
    """Sync before any pod is prepared, again when the gang is initialized, again when it is scheduled."""
    await world.bring_up(a_pod_clique_set("model", [a_clique("worker", 2)]))
    calls = Recorder.calls
    assert calls[0] == "sync model-0 initialized=False scheduled=False"
    prepared = [n for n, call in enumerate(calls) if call.startswith("prepare")]
    assert len(prepared) == 2
    assert prepared[-1] < calls.index("sync model-0 initialized=True scheduled=False")
    assert calls[-1] == "sync model-0 initialized=True scheduled=True"


@given_a_recorder
async def test_gangs_are_created_with_empty_references(world: World) -> None:
    """A gang is there before its pods: its first version has every group, with its minimum and without references."""
    await world.bring_up(a_pod_clique_set("model", [a_clique("leader", 1), a_clique("worker", 2)]))
    first = world.witness.gang_history["model-0"][0]
    groups = [(each["name"], each["minReplicas"], each.get("podReferences", [])) for each in first["spec"]["podgroups"]]
    assert groups == [("model-0-leader", 1, []), ("model-0-worker", 2, [])]
    assert all(len(group.pod_references) > 0 for group in (await world.gang("model-0")).spec.pod_groups)


@given_a_recorder
async def test_a_pod_that_cannot_be_prepared_is_tried_again(world: World) -> None:
    """A backend that raises while it prepares a pod holds up that gang alone, and the pod comes when it does not."""
    Recorder.clumsy = ("stuck-",)
    await world.apply(a_pod_clique_set("stuck"))
    await world.bring_up(a_pod_clique_set("model"), 30)
    assert {pod.metadata.labels[marks.PART_OF] for pod in await world.pods()} == {"model"}
    Recorder.clumsy = ()
    await world.settle(400)
    assert len(await world.pods()) == 4


@given_a_recorder
async def test_a_backend_does_not_end_the_operator(world: World) -> None:
    """One that calls sys.exit about a gang, or about its pods, holds up that gang alone, until it does so no more."""
    Recorder.leaving, Recorder.leaving_at_sync = ("pods-",), ("gang-",)
    for name in ("pods", "gang"):
        await world.apply(a_pod_clique_set(name, [a_clique("worker", 2)]))
    await world.bring_up(a_pod_clique_set("model"), 30)
    assert {pod.metadata.labels[marks.PART_OF] for pod in await world.pods()} == {"model"}
    said = find_condition((await world.gang("gang-0")).status.conditions, BACKEND_READY)
    assert said is not None
    assert said.message == "recorder: SystemExit: 3"
    Recorder.leaving, Recorder.leaving_at_sync = (), ()
    await world.settle(400)
    assert {pod.metadata.labels[marks.PART_OF] for pod in await world.pods()} == {"model", "pods", "gang"}


@given_a_recorder
async def test_no_pod_is_created_while_the_backend_fails(world: World) -> None:
    """A failing sync is shown as condition and event, and retried; pods come when it succeeds."""
    Recorder.failing = True
    await world.bring_up(a_pod_clique_set("model"), 30)
    assert await world.pods() == []
    condition = find_condition((await world.gang("model-0")).status.conditions, BACKEND_READY)
    assert condition is not None
    assert (condition.status, condition.reason) == ("False", "SyncFailed")
    assert "on holiday" in condition.message
    events = (await world.client.list(EVENT, "test")).items
    told = {event["involvedObject"]["kind"] for event in events if event["reason"] == "SyncFailed"}
    assert told == {"PodGang", "PodCliqueSet"}
    on_set = find_condition((await the_set(world)).status.conditions, BACKEND_READY)
    assert on_set is not None
    assert (on_set.status, on_set.reason) == ("False", "SyncFailed")
    assert on_set.message == "PodGang model-0: recorder: RuntimeError: the scheduler is on holiday"
    Recorder.failing = False
    await world.settle(400)
    assert len(await world.pods()) == 2
    assert is_true((await world.gang("model-0")).status.conditions, BACKEND_READY)
    assert find_condition((await the_set(world)).status.conditions, BACKEND_READY) is None


@given_a_recorder
async def test_failures_are_retried_less_and_less_often(world: World) -> None:
    """A backend that keeps failing is asked again after growing pauses: a handful of times in a minute, not all day."""
    Recorder.failing = True
    await world.bring_up(a_pod_clique_set("model"), 60)
    first = len(Recorder.calls)
    assert 5 < first < 25
    await world.settle(60)
    assert len(Recorder.calls) - first <= 2


@given_a_recorder
async def test_a_backend_that_does_not_answer_holds_up_nobody_else(world: World) -> None:
    """More gangs than there are workers get no answer; another set comes up at once, and theirs say what is wrong."""
    Recorder.hanging = ("stuck-",)
    await world.bring_up(a_pod_clique_set("stuck", [a_clique("worker", 1)], replicas=20), 2)
    await world.bring_up(a_pod_clique_set("model"), 5)
    assert {pod.spec.hostname for pod in await world.pods()} == {"model-0-worker-0", "model-0-worker-1"}
    await world.settle(60)
    condition = find_condition((await world.gang("stuck-7")).status.conditions, BACKEND_READY)
    assert condition is not None
    assert (condition.status, condition.message) == ("False", "recorder: no answer within 30 s")
    on_set = find_condition((await the_set(world, "stuck")).status.conditions, BACKEND_READY)
    assert on_set is not None
    assert on_set.message.splitlines()[-1] == "and 17 more"
    Recorder.hanging = ()
    await world.settle(600)
    assert len(await world.pods()) == 22
    assert find_condition((await the_set(world, "stuck")).status.conditions, BACKEND_READY) is None


@on_virtual_time
async def test_stopping_does_not_wait_for_a_backend() -> None:
    """An operator that stops ends the calls under way: whoever comes after it must be the only one that writes."""
    async with recorded() as world:
        Recorder.hanging = ("model-",)
        await world.bring_up(a_pod_clique_set("model"), 5)
        before = world.runtime.clock.monotonic()
    assert world.runtime.clock.monotonic() - before < 1
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("recorder for")]


@given_a_recorder
async def test_a_set_forgets_the_failures_of_gangs_that_are_gone(world: World) -> None:
    """Scaling the failing replica away clears the condition."""
    Recorder.hanging = ("model-1",)
    await world.bring_up(a_pod_clique_set("model", [a_clique("worker", 1)], replicas=2), 60)
    assert find_condition((await the_set(world)).status.conditions, BACKEND_READY) is not None
    await world.client.patch(POD_CLIQUE_SET, "model", {"spec": {"replicas": 1}}, "test")
    await world.settle(60)
    assert await world.names(POD_GANG) == ["model-0"]
    assert find_condition((await the_set(world)).status.conditions, BACKEND_READY) is None


@given_a_recorder
async def test_a_gang_is_held_until_its_backend_has_cleaned_up(world: World) -> None:
    """A gang of a backend with a delete hook has a finalizer that goes once the hook has succeeded."""
    await world.bring_up(a_pod_clique_set("model"))
    assert (await world.gang("model-0")).metadata.finalizers == (additions.BACKEND_FINALIZER,)
    Recorder.failing = True
    await world.client.delete(POD_CLIQUE_SET, "model", "test")
    await world.settle()
    assert await world.names(POD_GANG) == ["model-0"]
    condition = find_condition((await world.gang("model-0")).status.conditions, BACKEND_READY)
    assert condition is not None
    assert (condition.status, condition.reason) == ("False", "CleanupFailed")
    Recorder.failing = False
    await world.settle(400)
    assert await world.names(POD_GANG) == []
    assert "delete model-0" in Recorder.calls


@given_a_recorder
async def test_a_set_says_why_a_gang_it_has_no_use_for_does_not_go(world: World) -> None:
    """A hook that fails is in the set's condition and an event, is tried less and less often, and is forgotten."""
    await world.bring_up(a_pod_clique_set("model", [a_clique("worker", 1)], replicas=2))
    Recorder.failing = True
    before = len(Recorder.calls)
    await world.client.patch(POD_CLIQUE_SET, "model", {"spec": {"replicas": 1}}, "test")
    await world.settle(60)
    assert len(Recorder.calls) - before < 25
    condition = find_condition((await the_set(world)).status.conditions, BACKEND_READY)
    assert condition is not None
    assert (condition.status, condition.reason) == ("False", "CleanupFailed")
    assert condition.message == "PodGang model-1: recorder: RuntimeError: the scheduler is on holiday"
    events = (await world.client.list(EVENT, "test")).items
    told = {event["involvedObject"]["kind"] for event in events if event["reason"] == "CleanupFailed"}
    assert told == {"PodGang", "PodCliqueSet"}
    Recorder.failing = False
    await world.settle(400)
    assert await world.names(POD_GANG) == ["model-0"]
    assert find_condition((await the_set(world)).status.conditions, BACKEND_READY) is None


@given_a_recorder
async def test_a_set_that_is_being_deleted_says_why_it_does_not_go(world: World) -> None:
    """Whoever waits for a set to go, with its gangs first, finds the reason in its events."""
    await world.bring_up(a_pod_clique_set("model"))
    Recorder.failing = True
    await world.client.delete(POD_CLIQUE_SET, "model", "test", propagation_policy="Foreground")
    await world.settle()
    events = (await world.client.list(EVENT, "test")).items
    told = {event["involvedObject"]["kind"] for event in events if event["reason"] == "CleanupFailed"}
    assert told == {"PodGang", "PodCliqueSet"}


@given_a_recorder
async def test_a_backend_may_hold_gates(world: World) -> None:
    """``may_release`` has the last word on a gate."""
    Recorder.holding = True
    await world.bring_up(a_pod_clique_set("model"))
    assert all(has_gate(pod) for pod in await world.pods())
    assert is_true((await world.gang("model-0")).status.conditions, INITIALIZED)


@given_a_recorder
async def test_degradations_are_written_to_the_set(world: World) -> None:
    """What the backend does not honour stands in the set's condition, one line each."""
    await world.bring_up(a_pod_clique_set("model"))
    pcs = await world.client.get(POD_CLIQUE_SET, "model", "test", type=PodCliqueSet)
    condition = find_condition(pcs.status.conditions, CAPABILITIES_MET)
    assert condition is not None
    assert (condition.status, condition.message) == ("False", "gang_scheduling: there are no gangs here")


@given_a_recorder
async def test_a_backend_that_could_not_judge_a_set_is_asked_again(world: World) -> None:
    """The set says what its backend does not honour soon after that can be told, though nothing else happens to it."""
    await world.bring_up(a_pod_clique_set("model"))
    Recorder.confused = 2
    later = {"spec": {"template": {"terminationDelay": "5h"}}}
    await world.client.patch(POD_CLIQUE_SET, "model", later, "test")
    await world.settle(20)
    condition = find_condition((await the_set(world, "model")).status.conditions, CAPABILITIES_MET)
    assert condition is not None
    assert (condition.status, condition.reason) == ("False", "Degraded")


@given_a_recorder
async def test_a_rejected_set_says_so_until_its_backend_says_otherwise(world: World) -> None:
    """While a backend that is asked again takes its time, what it said last counts."""
    Recorder.rejecting = True
    await world.bring_up(a_pod_clique_set("model"))
    Recorder.undecided = ("model",)
    await world.settle(RESYNC_SECONDS * 1.2)
    condition = find_condition((await the_set(world)).status.conditions, CAPABILITIES_MET)
    assert condition is not None
    assert (condition.status, condition.reason, condition.message) == ("False", "Rejected", "not now")


@on_virtual_time
async def test_a_backend_that_does_not_answer_holds_up_no_other_set() -> None:
    """With one worker, sets that the backend judges come up beside many it never answers for, which come up as well."""
    chosen, catalogue = settings()
    async with a_world(
        dataclasses.replace(chosen, workers={**WORKERS, "pod_clique_set": 1}), catalogue=catalogue
    ) as world:
        Recorder.undecided = ("slow-",)
        names = [*(f"slow-{n}" for n in range(5)), "model"]
        for name in names:
            await world.apply(a_pod_clique_set(name))
        await world.settle(5)
        told = {}
        for name in names:
            condition = find_condition((await the_set(world, name)).status.conditions, CAPABILITIES_MET)
            told[name] = (condition.status, condition.reason) if condition is not None else None
        assert told == dict.fromkeys(names[:-1], ("Unknown", "Validating")) | {"model": ("False", "Degraded")}
        assert len({pod.metadata.labels[marks.PART_OF] for pod in await world.pods()}) == len(names)


@given_a_recorder
async def test_a_scheduler_that_does_not_keep_a_constraint_is_told_of(world: World) -> None:
    """What the scheduler that runs says on a gang stands in the set's condition, until it says otherwise."""
    Recorder.writes_scheduled = True
    await world.bring_up(a_pod_clique_set("model"))
    for reason in (CONSTRAINT_NOT_HONOURED, "Unschedulable"):
        told = {"type": SCHEDULED, "status": "False", "reason": reason, "message": "add topology"}
        told["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        body = {"metadata": {"name": "model-0", "namespace": "test"}, "status": {"conditions": [told]}}
        await world.client.apply(POD_GANG, body, subresource="status", force=True)
        await world.settle()
        pcs = await world.client.get(POD_CLIQUE_SET, "model", "test", type=PodCliqueSet)
        condition = find_condition(pcs.status.conditions, CAPABILITIES_MET)
        assert condition is not None
        assert ("PodGang model-0: add topology" in condition.message) is (reason == CONSTRAINT_NOT_HONOURED)
        assert condition.status == "False"


@on_virtual_time
async def test_a_gang_of_a_disabled_backend_is_not_handed_to_another() -> None:
    """Such a gang says that its backend is not enabled, gets no pods, and can still be deleted."""
    chosen, catalogue = settings()
    async with a_world(chosen, catalogue=catalogue) as world:
        await world.bring_up(a_pod_clique_set("model"))
    without = dataclasses.replace(chosen, profiles=Profiles())
    async with a_world(without, catalogue=catalogue, server=world.server) as later:
        await later.settle()
        gang = await later.gang("model-0")
        assert gang.metadata.labels[marks.SCHEDULER_NAME] == "recorder"
        condition = find_condition(gang.status.conditions, BACKEND_READY)
        assert condition is not None
        assert (condition.status, condition.reason) == ("False", "BackendNotEnabled")
        await later.client.delete(POD, (await later.pods())[0].metadata.name, "test")
        await later.settle()
        assert len(await later.pods()) == 1
        await later.client.delete(POD_CLIQUE_SET, "model", "test")
        await later.settle()
        assert await later.names(POD_GANG) == []


@on_virtual_time
async def test_pods_beyond_a_native_gang_follow_it() -> None:
    """With native gangs, pods beyond the minimum keep their gate until the gang is scheduled, and go first."""
    native = Profile("default-scheduler", KubeSchedulerConfig(gang_scheduling=True))
    async with a_world(Settings(profiles=Profiles((native,)))) as world:
        world.place = lambda pod: False
        spec = a_pod_spec(scheduler="default-scheduler")
        await world.bring_up(a_pod_clique_set("model", [a_clique("worker", 4, 2, pod_spec=spec)]))
        gated = sorted(pod.spec.hostname for pod in await world.pods() if has_gate(pod))
        assert gated == ["model-0-worker-2", "model-0-worker-3"]
        members = [pod for pod in await world.pods() if pod.spec.scheduling_group is not None]
        assert sorted(pod.spec.hostname for pod in members) == ["model-0-worker-0", "model-0-worker-1"]
        await world.now_place()
        await world.settle()
        assert not any(has_gate(pod) for pod in await world.pods())
        await world.client.patch(POD_CLIQUE, "model-0-worker", {"spec": {"replicas": 2}}, "test")
        await world.settle()
        assert sorted(pod.spec.hostname for pod in await world.pods()) == ["model-0-worker-0", "model-0-worker-1"]


@on_virtual_time
async def test_a_gang_that_was_deleted_is_made_anew_with_its_waiting_pods() -> None:
    """Pods that wait for a node name the native group of the new gang; those that run are left alone."""
    native = Profile("default-scheduler", KubeSchedulerConfig(gang_scheduling=True))
    async with a_world(Settings(profiles=Profiles((native,)))) as world:
        world.place = lambda pod: pod.metadata.labels[marks.POD_GANG] == "runs-0"
        spec = a_pod_spec(scheduler="default-scheduler")
        for name in ("runs", "waits"):
            await world.apply(a_pod_clique_set(name, [a_clique("worker", 2, pod_spec=spec)]))
        await world.settle()
        before = {pod.metadata.uid for pod in await world.pods()}
        for name in ("runs-0", "waits-0"):
            await world.client.delete(POD_GANG, name, "test")
        await world.settle()
        gang, found = await world.gang("waits-0"), await world.pods()
        groups = {pod.metadata.name: pod.spec.scheduling_group for pod in found}
        mended = {name: group.pod_group_name for name, group in groups.items() if group and name.startswith("waits")}
        assert len(mended) == 2
        assert set(mended.values()) == {f"waits-0-{(gang.metadata.uid or '')[:5]}"}
        assert sum(pod.metadata.uid in before for pod in found if pod.metadata.name.startswith("runs")) == 2
        await world.now_place()
        await world.settle()
        assert all(pod.is_true("Ready") for pod in await world.pods())
