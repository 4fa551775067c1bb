"""Profiles and the queue of a scheduler, from its configuration: the same for a process and for a simulation."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from spinney.api.core import Pod
from spinney.api.documents import InvalidConfiguration
from spinney.coscheduling.cycle.queue import BackoffTimes, SchedulingQueue
from spinney.coscheduling.feasibility.ranking import NodeRanking
from spinney.coscheduling.framework import (
    EventHint,
    FrameworkRegistry,
    Handle,
    PreEnqueue,
    Profile,
    QueuedPod,
    Services,
    Status,
)
from spinney.coscheduling.framework.status import FrameworkPluginFailed
from spinney.coscheduling.plugins import BUILT_IN, DEFAULT_PLUGINS
from spinney.coscheduling.process.configuration import CoschedulerConfiguration, make_profile


@dataclass(frozen=True)
class ComposedProfiles:
    """The profiles of a scheduler with their filters and scores, each by scheduler name."""

    profiles: Mapping[str, Profile]
    rankings: Mapping[str, NodeRanking]

    @classmethod
    def made(
        cls, configuration: CoschedulerConfiguration, services: Services, registry: FrameworkRegistry | None = None
    ) -> "ComposedProfiles":
        """Make every profile of a configuration; without a ``registry``, of the plugins that are installed."""
        registry = registry or FrameworkRegistry.installed(BUILT_IN)
        profiles: dict[str, Profile] = {}
        rankings: dict[str, NodeRanking] = {}
        for chosen in configuration.profiles:
            handle = Handle(services, chosen.scheduler_name)
            profile = make_profile(chosen, DEFAULT_PLUGINS, registry, handle)
            ranking = NodeRanking(profile, services.cluster, services.claims, services.nominations)
            handle.complete(ranking)
            profiles[chosen.scheduler_name] = profile
            rankings[chosen.scheduler_name] = ranking
        _check_one_order(profiles.values())
        return cls(profiles, rankings)

    def queue(
        self,
        configuration: CoschedulerConfiguration,
        services: Services,
        *,
        wake: Callable[[], None],
        failed: Callable[[QueuedPod, FrameworkPluginFailed], None],
        kept_out: Callable[[QueuedPod, Status], None] = lambda _queued, _status: None,
    ) -> SchedulingQueue:
        """Return the one queue of all profiles."""
        profiles = list(self.profiles.values())
        hints: dict[str, tuple[EventHint, ...]] = {}
        for profile in profiles:
            hints |= profile.hints()
        return SchedulingQueue(
            services.runtime.clock,
            profiles[0].queue_sort,
            pre_enqueue=self.pre_enqueue,
            hints=hints,
            backoff=BackoffTimes(configuration.pod_initial_backoff_seconds, configuration.pod_max_backoff_seconds),
            wake=wake,
            faults=profiles[0].faults,
            failed=failed,
            kept_out=kept_out,
        )

    def pre_enqueue(self, pod: Pod) -> Sequence[PreEnqueue]:
        """Return what may keep a pod out of the queue: the plugins of its own profile."""
        profile = self.profiles.get(pod.spec.scheduler_name)
        return profile.pre_enqueue if profile is not None else ()


def _check_one_order(profiles: Iterable[Profile]) -> None:
    """Refuse profiles that would sort their one common queue differently."""
    names = {profile.scheduler_name: profile.queue_sort.name for profile in profiles}
    if len(set(names.values())) > 1:
        found = ", ".join(f"{name} has {sort}" for name, sort in names.items())
        raise InvalidConfiguration(f"profiles share one queue, so all need the same queueSort plugin: {found}")
