"""Plugins that fail, of each kind: session, framework and backend.

In every function that they have they now and then raise or answer nonsense; in calm weather they let everything pass.
"""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import msgspec
import numpy as np

from spinney.api.core import Pod
from spinney.api.grove import PodCliqueSet
from spinney.api.podgang import PodGang
from spinney.backends import every_backend
from spinney.backends.catalogue import Catalogue
from spinney.backends.interface import Degradation, PodManifest, SchedulerBackend
from spinney.backends.profiles import Profiles
from spinney.cluster.scores import Scores
from spinney.cluster.table import Mask, NodeTable
from spinney.coscheduling.framework.points import (
    Bind,
    CycleState,
    Filter,
    Permit,
    PostBind,
    PostFilter,
    PostFilterResult,
    PreBind,
    PreEnqueue,
    PreFilter,
    Reserve,
    Score,
)
from spinney.coscheduling.framework.registry import FrameworkRegistry
from spinney.coscheduling.framework.status import SUCCESS, Code, Status
from spinney.coscheduling.plugins import BUILT_IN
from spinney.coscheduling.process.configuration import MULTI_POINT, CoschedulerConfiguration, PluginChoice, PluginSet
from spinney.scheduler import Plugin, Session
from spinney.scheduler.config import PluginOption
from spinney.scheduler.framework.events import EventHandler
from spinney.scheduler.framework.plugin import PluginRegistry
from spinney.scheduler.plugins import default_registry
from spinney.sim.embedded.stack import StackOptions
from tests.operator.storms import Weather

NAME = "hostile"
_NONSENSE: tuple[Any, ...] = (float("nan"), -(10**30), "first", None, object(), [1, 2], {"a": 1})


class Hostility:
    """Fails as often as calls do in the present weather. Mutable: it draws by chance, and counts."""

    def __init__(self, weather: Weather) -> None:
        self._weather = weather

    def strikes(self, kind: str) -> bool:
        """Say whether a function of this kind of plugin fails now."""
        if self._weather.chance.random() >= self._weather.rate:
            return False
        self._weather.faults[f"{kind} plugin"] += 1
        return True

    def answer(self, kind: str, calm: Any) -> Any:
        """Raise, return nonsense or, mostly, return what lets everything pass."""
        if not self.strikes(kind):
            return calm
        chance: random.Random = self._weather.chance
        if chance.random() < 0.5:
            raise RuntimeError(NAME)
        return chance.choice(_NONSENSE)

    def failing(self, calm: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function of a session plugin that fails, and otherwise answers as ``calm`` does."""
        return lambda *arguments: self.answer("session", calm(*arguments))


# -- the session scheduler ---------------------------------------------------------------------------------------------


class HostilePlugin(Plugin):
    """Registers a function for whatever can be registered and asked."""

    name: ClassVar[str] = NAME

    def __init__(self, hostility: Hostility) -> None:
        super().__init__()
        self._hostility = hostility

    def on_session_open(self, session: Session) -> None:
        """Register functions, or refuse to."""
        if self._hostility.strikes("session"):
            raise RuntimeError("no session for me")
        failing = self._hostility.failing
        for register in (session.add_pre_predicate_fn, session.add_predicate_fn, session.add_subset_nodes_fn):
            register(failing(_none))
        for order in (session.add_job_order_fn, session.add_task_order_fn, session.add_queue_order_fn):
            order(failing(_zero))
        for key in (session.add_job_order_key, session.add_task_order_key):
            key(failing(_zero))
        session.add_sub_group_order_fn(failing(_zero))
        session.add_predicate_columns(failing(lambda _task, _job, nodes: np.ones(len(nodes), np.bool_)))
        session.add_node_order_columns(failing(lambda _task, _job, nodes: np.zeros(len(nodes))))
        session.add_node_order_fn(failing(_zero))
        session.add_gpu_order_fn(failing(_zero))
        for hear in (session.add_node_pre_order_fn, session.add_pre_job_allocation_fn):
            hear(failing(_none))
        session.add_on_job_solution_start_fn(failing(_none))
        session.add_victim_invariant_pre_predicate_fn(failing(_none))
        session.add_event_handler(EventHandler(allocate=failing(_none), deallocate=failing(_none)))
        for agree in (session.add_reclaim_victim_filter_fn, session.add_preempt_victim_filter_fn):
            agree(failing(_true))
        for judge in (session.add_reclaim_scenario_validator_fn, session.add_preempt_scenario_validator_fn):
            judge(failing(_true))
        session.add_reclaim_bound_fn(failing(_none))
        session.add_scenario_generator(NAME, failing(lambda _session, _job: ()))
        session.add_bind_request_mutate_fn(failing(lambda _task, _node: {}))

    def on_session_close(self, session: Session) -> None:
        """Fail as well."""
        self._hostility.answer("session", None)


def _none(*_: object) -> None:
    return None


def _zero(*_: object) -> int:
    return 0


def _true(*_: object) -> bool:
    return True


# -- the coscheduler ---------------------------------------------------------------------------------------------------


class HostileFramework(PreEnqueue, PreFilter, Filter, Score, Reserve, Permit, PreBind, PostBind):
    """Is asked at every extension point that may have several plugins, after all others."""

    name = "Hostile"

    def __init__(self, hostility: Hostility) -> None:
        self._hostility = hostility

    def _answer(self, calm: Any) -> Any:
        return self._hostility.answer("framework", calm)

    def pre_enqueue(self, pod: Pod) -> Status:
        return self._answer(SUCCESS)  # type: ignore[no-any-return]

    def pre_filter(self, state: CycleState, pod: Pod) -> Status:
        return self._answer(SUCCESS)  # type: ignore[no-any-return]

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Mask:
        return self._answer(nodes.alive)  # type: ignore[no-any-return]

    def score(self, state: CycleState, pod: Pod, nodes: NodeTable, feasible: Mask) -> Scores:
        return self._answer(np.zeros(len(feasible), np.int64))  # type: ignore[no-any-return]

    def reserve(self, state: CycleState, pod: Pod, node: str) -> Status:
        return self._answer(SUCCESS)  # type: ignore[no-any-return]

    def unreserve(self, state: CycleState, pod: Pod, node: str) -> None:
        self._answer(None)

    def permit(self, state: CycleState, pod: Pod, node: str) -> tuple[Status, float]:
        return self._answer((SUCCESS, 0.0))  # type: ignore[no-any-return]

    async def pre_bind(self, state: CycleState, pod: Pod, node: str) -> Status:
        return self._answer(SUCCESS)  # type: ignore[no-any-return]

    async def post_bind(self, state: CycleState, pod: Pod, node: str) -> None:
        self._answer(None)


class HostileFirst(PostFilter, Bind):
    """Is asked before those that make room, and before the one that binds."""

    name = "HostileFirst"

    def __init__(self, hostility: Hostility) -> None:
        self._hostility = hostility

    def post_filter(self, state: CycleState, pod: Pod) -> PostFilterResult:
        return self._hostility.answer("framework", PostFilterResult(Status.unschedulable()))  # type: ignore[no-any-return]

    async def bind(self, state: CycleState, pod: Pod, node: str) -> Status:
        return self._hostility.answer("framework", Status(Code.SKIP))  # type: ignore[no-any-return]


# -- backends ----------------------------------------------------------------------------------------------------------


def hostile_backends(profiles: Profiles, hostility: Hostility) -> Catalogue:
    """Return the backends of these profiles, each failing in what the operator asks it."""
    known, catalogue = every_backend(), Catalogue()
    for name in profiles.names():
        backend = known.get(name)
        assert backend is not None, "the profiles are of built-in backends"
        catalogue.register(_hostile(backend, hostility))
    return catalogue


def _hostile(backend: type[SchedulerBackend], hostility: Hostility) -> type[SchedulerBackend]:
    def strike() -> None:
        if hostility.strikes("backend"):
            raise RuntimeError(NAME)

    class HostileBackend(backend):  # type: ignore[misc, valid-type]
        async def sync_pod_gang(self, gang: PodGang) -> None:
            strike()
            await super().sync_pod_gang(gang)
            strike()

        def prepare_pod(self, pod: PodManifest, gang: PodGang) -> None:
            strike()
            super().prepare_pod(pod, gang)

        def may_release(self, pod: Pod, gang: PodGang) -> bool:
            strike()
            return bool(super().may_release(pod, gang))

        async def validate_pod_clique_set(self, pcs: PodCliqueSet, old: PodCliqueSet | None) -> list[Degradation]:
            strike()
            degradations: list[Degradation] = await super().validate_pod_clique_set(pcs, old)
            return degradations

    return HostileBackend


def with_hostile(options: StackOptions, hostility: Hostility) -> StackOptions:
    """Return options whose schedulers have a hostile plugin at every extension point."""
    known = default_registry()
    registry = PluginRegistry({name: known.builder(name) for name in known})
    registry.register(NAME, lambda _: HostilePlugin(hostility))
    framework = FrameworkRegistry(BUILT_IN)
    framework.register(HostileFramework.name, lambda _handle, _arguments: HostileFramework(hostility))
    framework.register(HostileFirst.name, lambda _handle, _arguments: HostileFirst(hostility))
    assert options.coscheduler is not None, "both schedulers run"
    return replace(
        options,
        scheduler=msgspec.structs.replace(
            options.scheduler, plugins=(*options.scheduler.plugins, PluginOption(HostilePlugin.name))
        ),
        plugins=registry,
        coscheduler=_with_framework(options.coscheduler),
        framework_plugins=framework,
    )


def _with_framework(config: CoschedulerConfiguration) -> CoschedulerConfiguration:
    after, before = (
        PluginSet(enabled=(PluginChoice(name=name),)) for name in (HostileFramework.name, HostileFirst.name)
    )
    added = {MULTI_POINT: after, "postFilter": before, "bind": before}
    profiles = tuple(
        msgspec.structs.replace(profile, plugins={**profile.plugins, **added}) for profile in config.profiles
    )
    return msgspec.structs.replace(config, profiles=profiles)
