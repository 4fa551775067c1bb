"""The backend of Spinney's own scheduler, which reads PodGangs directly: there is nothing to translate."""

from typing import ClassVar

from spinney.api.podgang import PodGang
from spinney.backends.interface import Capabilities, PodManifest, SchedulerBackend


class SpinneyScheduler(SchedulerBackend):
    """Pods only need to name the scheduler; it finds their gang by label."""

    name: ClassVar[str] = "spinney-scheduler"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            gang_scheduling=True,
            required_topology=True,
            preferred_topology=True,
            group_topology=True,
            queues=True,
            writes_scheduled=True,
            waits_for_group=True,
        )

    def prepare_pod(self, pod: PodManifest, gang: PodGang) -> None:
        pod["spec"]["schedulerName"] = self.name
