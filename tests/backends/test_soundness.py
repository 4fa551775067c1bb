"""What is refused in a backend as it is written, before it is ever called."""

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from structlog.testing import capture_logs

from spinney.api.podgang import PodGang
from spinney.backends import Capabilities, Catalogue, PodManifest, Right, SchedulerBackend, TopologyAware
from spinney.backends import UnusableBackend as Unusable
from spinney.backends.soundness import faults_of


class Sound(SchedulerBackend):
    """A backend with nothing wrong."""

    name: ClassVar[str] = "sound"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities()

    def prepare_pod(self, pod: PodManifest, gang: PodGang) -> None:
        pod["spec"]["schedulerName"] = self.name


async def waits(*_: object) -> Any:
    """Stand in for any method that is async."""


async def goes_on(*_: object) -> Any:
    """Stand in for any method that is an asynchronous generator."""
    yield None


def returns(*_: object) -> Any:
    """Stand in for any method that is not async."""


TOPOLOGY = {
    "topology_resource": property(returns),
    "topology_name": returns,
    "sync_topology": waits,
    "check_topology": waits,
}


def a_backend(wrong: Mapping[str, object] | None = None, *, aware: bool = False) -> type[SchedulerBackend]:
    """Return a backend in which this is wrong."""
    return type(
        "Theirs", (Sound, TopologyAware) if aware else (Sound,), {**(TOPOLOGY if aware else {}), **(wrong or {})}
    )


@pytest.mark.parametrize("aware", [False, True])
def test_a_sound_backend_has_no_faults(aware: bool) -> None:
    """Neither the least one nor one that is aware of topology, nor one whose capabilities are a plain value."""
    assert faults_of(a_backend(aware=aware)) == []
    assert faults_of(a_backend({"capabilities": Capabilities()}, aware=aware)) == []


@pytest.mark.parametrize("method", ["init", "sync_pod_gang", "on_pod_gang_delete", "validate_pod_clique_set"])
@pytest.mark.parametrize("wrong", [returns, goes_on, None])
def test_what_is_awaited_must_be_async(method: str, wrong: object) -> None:
    """The method and what to write are named."""
    with pytest.raises(Unusable, match=f"^backend 'sound' .*: {method} is not awaitable, write `async def {method}`$"):
        Catalogue().register(a_backend({method: wrong}))


@pytest.mark.parametrize("method", ["prepare_pod", "is_prepared_for", "may_release"])
@pytest.mark.parametrize("wrong", [waits, goes_on])
def test_what_is_called_must_not_be_async(method: str, wrong: object) -> None:
    """A coroutine that nobody awaits would be taken for a yes."""
    with pytest.raises(Unusable, match=f"^backend 'sound' .*: {method} is async, write `def {method}`$"):
        Catalogue().register(a_backend({method: wrong}))


def test_what_a_backend_lacks_is_told_before_it_is_made() -> None:
    """All of it at once, when it is registered; it was said when the operator had begun to start."""
    least = type("Least", (SchedulerBackend, TopologyAware), {"name": "least"})
    with pytest.raises(Unusable) as refused:
        Catalogue().register(least)
    assert "it has no capabilities, write `@property` and `def capabilities`" in str(refused.value)
    assert "it has no prepare_pod, write `def prepare_pod`" in str(refused.value)
    assert "it has no sync_topology, write `async def sync_topology`" in str(refused.value)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("sync_podgang", ["sync_podgang is never called; did you mean sync_pod_gang?"]),
        ("on_podgang_delete", ["on_podgang_delete is never called; did you mean on_pod_gang_delete?"]),
        ("prepare_pods", []),  # prepare_pod is there
        ("helps", []),
        ("_sync_podgang", []),
    ],
)
def test_a_method_that_nobody_calls_is_told(written: str, told: list[str]) -> None:
    """A misspelled one does nothing, and the backend goes on as if it had none."""
    with capture_logs() as logs:
        Catalogue().register(a_backend({written: waits}))
    assert [each["method"] for each in logs if each["log_level"] == "warning"] == told


@pytest.mark.parametrize(
    ("field", "wrong", "said"),
    [
        ("sync_topology", returns, "sync_topology is not awaitable"),
        ("check_topology", returns, "check_topology is not awaitable"),
        ("topology_name", waits, "topology_name is async"),
        ("topology_resource", returns, "topology_resource is a method, write `@property` before"),
        ("capabilities", returns, "capabilities is a method, write `@property` before"),
        ("capabilities", property(waits), "capabilities is async, write `@property` and `def capabilities`"),
        ("name", "", "name is '', which pods could not have as schedulerName"),
        ("name", "My Scheduler", "name is 'My Scheduler', which pods could not have as schedulerName"),
        ("name", "a" * 64, "which pods could not have as schedulerName"),
        ("name", 3, 'name is 3 (int), write a text such as "my-scheduler"'),
        ("aliases", "mine", "aliases is 'mine' (str), write a tuple of texts such as (\"my-alias\",)"),
        ("aliases", ("Mine",), "aliases[0] is 'Mine', which pods could not have"),
        ("interface_version", 1.1, 'interface_version is 1.1 (float), write a text such as "1.1"'),
        ("interface_version", "v1", "interface_version is 'v1' (str)"),
        ("config_type", dict, "config_type is <class 'dict'> (type), write a class that derives from msgspec.Struct"),
        ("config_type", {}, "config_type is {} (dict)"),
        ("rights", Right("g", ("r",), ("get",)), "rights is Right"),
        ("rights", ("get",), "rights[0] is 'get' (str), write a Right"),
        ("rights", (Right("g", "gangs", ("get",)),), "rights[0].resources is 'gangs' (str), write a tuple"),  # type: ignore[arg-type]
        ("rights", (Right("g", ("gangs",), "get"),), "rights[0].verbs is 'get' (str), write a tuple"),  # type: ignore[arg-type]
        ("rights", (Right(None, ("gangs",), ("get",)),), "rights[0].group is None"),  # type: ignore[arg-type]
    ],
)
def test_what_is_wrong_is_named_with_what_to_write(field: str, wrong: object, said: str) -> None:
    """Each is refused where the backend is registered, not where it is first used."""
    with pytest.raises(Unusable) as refused:
        Catalogue().register(a_backend({field: wrong}, aware=True))
    assert said in str(refused.value)


def test_everything_that_is_wrong_is_said_at_once() -> None:
    """Two faults need one start of the operator to be found, not two."""
    with pytest.raises(Unusable, match=r"name is 'X', .*; prepare_pod is async"):
        Catalogue().register(a_backend({"name": "X", "prepare_pod": waits}))


def test_a_backend_that_is_refused_takes_no_name() -> None:
    """One with an alias that is taken leaves its own name to others."""
    catalogue = Catalogue()
    catalogue.register(a_backend({"name": "first"}))
    with pytest.raises(Unusable, match="two backends are called 'first'"):
        catalogue.register(a_backend({"aliases": ("first",)}))
    catalogue.register(Sound)
    assert catalogue.get("sound") is Sound
