"""Backends of third parties that get the interface wrong: each holds up its own gangs, and is named."""

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from structlog.testing import capture_logs

from spinney.api import labels as marks
from spinney.api.conditions import find_condition
from spinney.api.core import EVENT, Pod
from spinney.api.grove import POD_CLIQUE, POD_CLIQUE_SET, PodClique, PodCliqueSet
from spinney.api.podgang import BACKEND_READY, POD_GANG, PodGang
from spinney.backends import Capabilities, Catalogue, PodManifest, Profile, Profiles, SchedulerBackend
from spinney.backends.builtin import BACKENDS
from spinney.operator.operator import Settings
from spinney.operator.status.podcliqueset import CAPABILITIES_MET
from spinney.testing.builders import a_clique, a_pod_clique_set, a_pod_spec
from tests.operator.harness import World, a_world
from tests.virtual_time import on_virtual_time


class Clumsy(SchedulerBackend):
    """Does it right, but for the method that a test puts in."""

    name: ClassVar[str] = "clumsy"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities()

    def prepare_pod(self, pod: PodManifest, gang: PodGang) -> None:
        pod["spec"]["schedulerName"] = self.name


class Unspeakable(RuntimeError):
    """An error that fails once more when it is asked what it says."""

    def __str__(self) -> str:
        raise KeyError("text")

    __repr__ = __str__


def raising(error: BaseException) -> Callable[..., Any]:
    """Return a method that raises."""

    def method(*_: object) -> None:
        raise error

    return method


def answering(answer: object) -> Callable[..., Any]:
    """Return a method that has this answer to everything."""
    return lambda *_: answer


def changing(change: Callable[[PodManifest], object]) -> Callable[..., Any]:
    """Return a ``prepare_pod`` that changes a pod so."""

    def prepare_pod(self: object, pod: PodManifest, gang: PodGang) -> None:
        change(pod)

    return prepare_pod


def awaited(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return the same method, to be awaited."""

    async def waiting(*args: object) -> Any:
        return method(*args)

    return waiting


def meddling(answer: object) -> Callable[..., Any]:
    """Return a method that changes what can be changed in all that it is given, and has this answer."""

    def method(self: object, *given: Any) -> Any:
        for each in given:
            if isinstance(each, Pod | PodGang | PodCliqueSet):
                each.metadata.labels[marks.SCHEDULER_NAME] = "nobody"  # type: ignore[index]
                each.metadata.annotations.clear()  # type: ignore[attr-defined]
            if isinstance(each, PodCliqueSet):
                each.spec.template.cliques[0].spec.pod_spec.clear()
        return answer

    return method


async def beside_a_good_one(method: str, wrong: object, look: Callable[[World], Any]) -> int:
    """Bring up a set of a backend with a wrong method, then one of kube-scheduler; returns how often it was logged."""
    catalogue = Catalogue()
    for backend in (*BACKENDS, type("ClumsyOne", (Clumsy,), {method: wrong})):
        catalogue.register(backend)
    profiles = Profiles((Profile("default-scheduler"), Profile("clumsy")), "clumsy")
    with capture_logs() as logs:
        async with a_world(Settings(profiles=profiles), catalogue=catalogue) as world:
            for name, scheduler in (("ill", "clumsy"), ("well", "default-scheduler")):
                spec = a_pod_spec(scheduler=scheduler)
                await world.bring_up(a_pod_clique_set(name, [a_clique("worker", 2, pod_spec=spec)]), 30)
            running = [pod for pod in await world.pods() if pod.is_true("Ready")]
            assert sum(pod.metadata.labels[marks.PART_OF] == "well" for pod in running) == 2
            await look(world)
    assert not [each for each in logs if each.get("exc_info")]
    return sum(each["log_level"] == "warning" for each in logs)


@pytest.mark.parametrize(
    ("method", "wrong", "said"),
    [
        ("prepare_pod", raising(RuntimeError("boom")), "prepare_pod raised RuntimeError: boom"),
        ("prepare_pod", raising(asyncio.CancelledError("mine")), "prepare_pod raised CancelledError: mine"),
        ("prepare_pod", answering(3), "prepare_pod returned 3 (int), expected None: it changes the pod it is given"),
        ("prepare_pod", changing(lambda pod: pod["metadata"].update(namespace="else")), "metadata.namespace"),
        ("prepare_pod", changing(lambda pod: pod["metadata"].update(name="mine")), "metadata.name"),
        ("prepare_pod", changing(lambda pod: pod["metadata"].pop("ownerReferences")), "metadata.ownerReferences"),
        ("prepare_pod", changing(lambda pod: pod["metadata"]["labels"].pop(marks.POD_CLIQUE)), "grove.io/podclique"),
        ("prepare_pod", changing(lambda pod: pod["spec"].pop("schedulingGates")), f"gate {marks.POD_GANG_GATE}"),
        (
            "prepare_pod",
            changing(lambda pod: pod["spec"].pop("schedulerName")),
            "left a pod without spec.schedulerName",
        ),
        ("prepare_pod", changing(lambda pod: pod["spec"].update(mine=object())), "left a pod that cannot be written"),
        ("prepare_pod", changing(lambda pod: pod["spec"].update(mine=pod)), "written as JSON (RecursionError"),
        ("prepare_pod", raising(Unspeakable()), "prepare_pod raised Unspeakable: its text cannot be had: KeyError"),
        ("prepare_pod", answering(Unspeakable()), "prepare_pod returned Unspeakable, expected None"),
        ("prepare_pod", changing(dict.clear), "metadata.name, metadata.namespace, metadata.ownerReferences"),
        ("is_prepared_for", answering(None), "is_prepared_for returned None, expected True or False"),
        ("is_prepared_for", raising(RuntimeError("boom")), "is_prepared_for raised RuntimeError: boom"),
        ("may_release", answering(None), "may_release returned None, expected True or False"),
        ("may_release", raising(SystemExit(3)), "may_release raised SystemExit: 3"),
    ],
)
@on_virtual_time
async def test_what_is_wrong_about_pods_is_told_with_the_backend(method: str, wrong: object, said: str) -> None:
    """The PodClique and an event on the set name backend and method; it is tried again less and less often."""

    async def look(world: World) -> None:
        clique = await world.client.get(POD_CLIQUE, "ill-0-worker", "test", type=PodClique)
        text = clique.status.last_errors[0].description
        assert text.startswith("scheduler backend 'clumsy': ")
        assert said in text
        events = (await world.client.list(EVENT, "test")).items
        assert text in {each["message"] for each in events if each["involvedObject"]["kind"] == "PodCliqueSet"}

    assert 5 < await beside_a_good_one(method, wrong, look) < 30


@pytest.mark.parametrize("method", ["sync_pod_gang", "validate_pod_clique_set"])
@on_virtual_time
async def test_a_backend_that_cancels_itself_has_failed(method: str) -> None:
    """A CancelledError that nobody asked for, as one of a task of the backend, ends its call and no controller."""

    async def look(world: World) -> None:
        pcs = await world.client.get(POD_CLIQUE_SET, "ill", "test", type=PodCliqueSet)
        kind = BACKEND_READY if method == "sync_pod_gang" else CAPABILITIES_MET
        condition = find_condition(pcs.status.conditions, kind)
        assert condition is not None
        assert condition.message.endswith("clumsy: CancelledError, though nobody cancelled it")

    await beside_a_good_one(method, awaited(raising(asyncio.CancelledError())), look)


@pytest.mark.parametrize("answer", [None, "no", ["no"]])
@on_virtual_time
async def test_an_answer_about_a_set_that_is_none_is_told(answer: object) -> None:
    """What is no list of degradations is neither taken for praise nor for a refusal."""

    async def look(world: World) -> None:
        pcs = await world.client.get(POD_CLIQUE_SET, "ill", "test", type=PodCliqueSet)
        condition = find_condition(pcs.status.conditions, CAPABILITIES_MET)
        assert condition is not None
        assert (condition.status, condition.reason) == ("Unknown", "ValidationFailed")
        assert condition.message.startswith("clumsy: InvalidAnswer: returned ")

    await beside_a_good_one("validate_pod_clique_set", awaited(answering(answer)), look)


@on_virtual_time
async def test_what_a_backend_changes_in_what_it_is_given_is_changed_for_nobody_else() -> None:
    """A set comes up, and goes, as if its backend had left gangs, pods and the set itself alone."""

    def look_up(self: Clumsy, pod: PodManifest, gang: PodGang) -> None:
        found = self.context.lookup
        pcs, again = found.pod_clique_set(gang), found.pod_gang(gang.metadata.namespace or "", gang.metadata.name)
        meddling(None)(self, gang, pcs, again)
        pod["spec"]["schedulerName"] = self.name

    methods: dict[str, object] = {
        "sync_pod_gang": awaited(meddling(None)),
        "on_pod_gang_delete": awaited(meddling(None)),
        "validate_pod_clique_set": awaited(meddling([])),
        "prepare_pod": look_up,
        "is_prepared_for": meddling(True),
        "may_release": meddling(True),
    }
    catalogue = Catalogue()
    for backend in (*BACKENDS, type("Meddling", (Clumsy,), methods)):
        catalogue.register(backend)
    profiles = Profiles((Profile("default-scheduler"), Profile("clumsy")), "clumsy")
    async with a_world(Settings(profiles=profiles), catalogue=catalogue) as world:
        await world.bring_up(a_pod_clique_set("model", [a_clique("worker", 2)]), 30)
        assert sum(pod.is_true("Ready") for pod in await world.pods()) == 2
        gangs, sets = world.operator.caches.gangs.values(), world.operator.caches.sets.values()
        assert [gang.metadata.labels[marks.SCHEDULER_NAME] for gang in gangs] == ["clumsy"]
        assert all(pcs.spec.template.cliques[0].spec.pod_spec for pcs in sets)
        assert all(marks.SCHEDULER_NAME not in pod.metadata.labels for pod in world.operator.caches.pods.values())
        await world.client.delete(POD_CLIQUE_SET, "model", "test")
        await world.settle(30)
        assert await world.names(POD_GANG) == []
