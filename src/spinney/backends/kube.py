"""The backend of kube-scheduler."""

from typing import ClassVar

import msgspec

from spinney.api.podgang import PodGang
from spinney.backends.interface import Capabilities, PodManifest, SchedulerBackend


class KubeSchedulerConfig(msgspec.Struct, frozen=True, rename="camel"):
    """Configuration of the kube backend."""

    gang_scheduling: bool = False


class KubeScheduler(SchedulerBackend):
    """kube-scheduler, with or without native gang scheduling."""

    name: ClassVar[str] = "default-scheduler"
    aliases: ClassVar[tuple[str, ...]] = ("kube-scheduler",)
    config_type: ClassVar[type[msgspec.Struct] | None] = KubeSchedulerConfig

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities()

    def prepare_pod(self, pod: PodManifest, gang: PodGang) -> None:
        pod["spec"]["schedulerName"] = self.name
