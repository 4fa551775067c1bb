"""Registration and initialisation of backends, built-in and third-party."""

import asyncio
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import ClassVar

import pytest

from spinney.api.podgang import PodGang
from spinney.backends import (
    BackendUnavailable,
    Capabilities,
    Catalogue,
    InitializationFailed,
    PodManifest,
    Profile,
    Profiles,
    Registry,
    SchedulerBackend,
    UnusableBackend,
    every_backend,
)
from spinney.backends.interface import deprecations
from tests.virtual_time import on_virtual_time


class Theirs(SchedulerBackend):
    """A third party's backend."""

    name: ClassVar[str] = "theirs"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities()

    def prepare_pod(self, pod: PodManifest, gang: PodGang) -> None:
        pod["spec"]["schedulerName"] = self.name


class FromTheFuture(Theirs):
    """A backend for an interface that does not exist yet."""

    interface_version = "2.0"


class Unfinished(Theirs):
    """A backend that is still abstract."""

    def __init__(self, context: object, config: object = None) -> None:
        raise TypeError("cannot be made yet")


class Broken(Theirs):
    """A backend whose scheduler is missing."""

    async def init(self) -> None:
        raise BackendUnavailable("the scheduler is not installed; run its installer")


class Leaving(Theirs):
    """A backend that ends the program where its scheduler is missing."""

    async def init(self) -> None:
        sys.exit(3)


class Unending(Theirs):
    """A backend that waits for ever for its scheduler."""

    async def init(self) -> None:
        await asyncio.Event().wait()


class Cancelled(Theirs):
    """A backend one of whose own tasks was cancelled."""

    async def init(self) -> None:
        raise asyncio.CancelledError


class Vague(Theirs):
    """Names a capability with a text."""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(queues="some")  # type: ignore[arg-type]


class Incapable(Theirs):
    """A backend that does not say what it can do."""

    @property
    def capabilities(self) -> Capabilities:
        return None  # type: ignore[return-value]


def entry_point(name: str, value: str) -> EntryPoint:
    """Return an entry point as an installed package declares it."""
    return EntryPoint(name=name, value=value, group="spinney.backends")


def test_the_built_in_backends_are_there() -> None:
    """All five built-in backends, and the alias of kube-scheduler, can be enabled."""
    names = every_backend().names()
    assert {
        "coscheduling",
        "default-scheduler",
        "kai-scheduler",
        "kube-scheduler",
        "spinney-scheduler",
        "volcano",
    } <= set(names)


def test_an_installed_backend_is_found_by_its_entry_point() -> None:
    """A class named by an entry point is imported when it is asked for."""
    catalogue = Catalogue()
    catalogue.discover([entry_point("theirs", "tests.backends.test_registry:Theirs")])
    assert catalogue.get("theirs") is Theirs


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("theirs", "tests.backends.no_such_module:Theirs", "importing tests.backends.no_such_module:Theirs failed"),
        ("other", "tests.backends.test_registry:Theirs", "calls itself 'theirs'"),
        ("theirs", "tests.backends.test_registry:entry_point", "expected a subclass"),
        ("theirs", "tests.backends.test_registry:FromTheFuture", "interface 2.0, this operator serves 1.1"),
    ],
)
def test_an_unusable_backend_says_why(name: str, value: str, message: str) -> None:
    """A backend that cannot be imported, is misnamed, or is for another interface is refused at every call."""
    catalogue = Catalogue()
    catalogue.discover([entry_point(name, value)])
    for _ in range(2):
        with pytest.raises(UnusableBackend, match=message):
            catalogue.get(name)


def test_a_package_that_ends_the_program_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing a backend that calls sys.exit fails as any that cannot be had."""
    (tmp_path / "leaving_backend.py").write_text("import sys\nsys.exit(3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    catalogue = Catalogue()
    catalogue.discover([entry_point("theirs", "leaving_backend:Theirs")])
    with pytest.raises(UnusableBackend, match="importing leaving_backend:Theirs failed: SystemExit: 3"):
        catalogue.get("theirs")


def test_a_broken_package_does_not_disturb_others() -> None:
    """An installed backend that does not import stops nobody who does not enable it."""
    catalogue = Catalogue()
    catalogue.register(Theirs)
    catalogue.discover([entry_point("bad", "no.such:Thing")])
    assert catalogue.get("theirs") is Theirs


@pytest.mark.parametrize("name", ["volcano", "kube-scheduler", "theirs"])
def test_two_backends_of_one_name_are_refused(name: str) -> None:
    """A name that two packages claim, or a package and a built-in backend, is refused when it is asked for."""
    catalogue = every_backend()
    catalogue.discover([entry_point("theirs", "tests.backends.test_registry:Theirs"), entry_point(name, "other:One")])
    with pytest.raises(UnusableBackend, match=f"two backends are called '{name}': .* and other:One"):
        catalogue.get(name)
    assert catalogue.get("coscheduling") is not None


def test_every_caller_gets_a_catalogue_of_its_own() -> None:
    """What one caller adds to its catalogue, another does not see."""
    every_backend().register(Theirs)
    assert every_backend().get("theirs") is None


def test_what_is_deprecated_is_said_with_what_to_do() -> None:
    """A backend that overrides a method that is to go is told what to implement instead; others are not."""
    deprecated = {"prepare_pod": "implement something better", "may_release": "it is not asked any more"}
    assert deprecations(Theirs, deprecated) == ["prepare_pod is deprecated: implement something better"]
    assert deprecations(Theirs) == []


@on_virtual_time
async def test_the_registry_is_initialised_once() -> None:
    """Enabled backends are found by name, others are not, and a second initialisation is refused."""
    catalogue = Catalogue()
    catalogue.register(Theirs)
    registry = Registry()
    with pytest.raises(RuntimeError, match="not initialised"):
        registry.get("theirs")
    profiles = Profiles((Profile("theirs"),), "theirs")
    await registry.initialize(catalogue, None, profiles)  # type: ignore[arg-type]
    assert registry.get_default() is registry.get("theirs")
    assert registry.get("volcano") is None
    assert registry.named_or_default("") is registry.get_default()
    assert registry.named_or_default("volcano") is None
    with pytest.raises(RuntimeError, match="already initialised"):
        await registry.initialize(catalogue, None, profiles)  # type: ignore[arg-type]


@on_virtual_time
async def test_kube_scheduler_is_found_by_either_name() -> None:
    """``kube-scheduler`` and ``default-scheduler`` are one backend, which is always there."""
    registry = Registry()
    await registry.initialize(every_backend(), None, Profiles())  # type: ignore[arg-type]
    assert registry.get("kube-scheduler") is registry.get("default-scheduler") is registry.get_default()
    assert registry.names() == ["default-scheduler"]


@on_virtual_time
async def test_a_backend_that_cannot_be_made_names_its_profile() -> None:
    """A constructor that raises is reported as a failed initialisation, with the profile and its line."""
    catalogue = Catalogue()
    catalogue.register(Unfinished)
    profiles = Profiles((Profile("theirs", where="line 3"),), "theirs")
    with pytest.raises(InitializationFailed, match=r"'theirs' \(line 3\): TypeError: cannot be made yet"):
        await Registry().initialize(catalogue, None, profiles)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("backend", "said"),
    [
        (Broken, ".*run its installer"),
        (Leaving, "SystemExit: 3"),
        (Unending, "init has not ended within 120 s"),
        (Cancelled, "CancelledError, though nobody cancelled it"),
        (Incapable, "InvalidAnswer: returned None, expected Capabilities"),
        (Vague, r"InvalidAnswer: returned Capabilities whose queues is 'some' \(str\), expected True or False"),
    ],
)
@on_virtual_time
async def test_a_backend_that_cannot_be_initialised_names_its_profile(backend: type[Theirs], said: str) -> None:
    """The error of a failed initialisation has the profile, its line and the reason."""
    catalogue = Catalogue()
    catalogue.register(backend)
    profiles = Profiles((Profile("theirs", where="line 7"),), "theirs")
    with pytest.raises(InitializationFailed, match=rf"'theirs' \(line 7\): {said}"):
        await Registry().initialize(catalogue, None, profiles)  # type: ignore[arg-type]
