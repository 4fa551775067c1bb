"""Every built-in backend keeps the contract that third parties are held to."""

from typing import ClassVar

from spinney.api import labels as marks
from spinney.api.grove import PodCliqueSet
from spinney.api.schema.crd import manifests
from spinney.api.struct import JSON
from spinney.api.volcano import QUEUE
from spinney.backends.coscheduling import CoschedulingBackend
from spinney.backends.kai import KaiScheduler
from spinney.backends.kube import KubeScheduler
from spinney.backends.spinney_scheduler import SpinneyScheduler
from spinney.backends.volcano import Volcano
from spinney.server import ServerOptions
from spinney.testing.backends import BackendContract
from spinney.testing.builders import a_clique, a_pod_clique_set


def crds(group: str) -> tuple[JSON, ...]:
    return tuple(crd for crd in manifests() if crd["spec"]["group"] == group)


class TestSpinneyScheduler(BackendContract):
    """Spinney's own scheduler."""

    backend = SpinneyScheduler


class TestKubeScheduler(BackendContract):
    """kube-scheduler without native gangs."""

    backend = KubeScheduler


class TestKai(BackendContract):
    """KAI."""

    backend = KaiScheduler
    crds = crds("scheduling.run.ai") + crds("kai.scheduler")

    def workload(self) -> PodCliqueSet:
        """Return a workload with a queue."""
        cliques = [a_clique("leader", 1), a_clique("worker", 3, 2)]
        return a_pod_clique_set("model", cliques, labels={marks.KAI_QUEUE: "research"})


class TestCoscheduling(BackendContract):
    """The coscheduling plugin."""

    backend = CoschedulingBackend
    config: ClassVar = {"schedulerName": "scheduler-plugins-scheduler"}
    crds = crds("scheduling.x-k8s.io")


class TestVolcano(BackendContract):
    """Volcano."""

    backend = Volcano
    crds = crds("scheduling.volcano.sh")
    objects: ClassVar = [(QUEUE, {"metadata": {"name": "default"}, "spec": {"weight": 1}, "status": {"state": "Open"}})]


class TestNativeGangs137(BackendContract):
    """kube-scheduler with native gangs of Kubernetes 1.37."""

    backend = KubeScheduler
    config: ClassVar = {"gangScheduling": True}
    server = ServerOptions(kubernetes_version="1.37")


class TestComposites(BackendContract):
    """kube-scheduler with trees of native groups."""

    backend = KubeScheduler
    config: ClassVar = {"gangScheduling": True, "composites": True}
    server = ServerOptions(kubernetes_version="1.37")


class TestNativeGangs136(BackendContract):
    """kube-scheduler with native gangs of Kubernetes 1.36."""

    backend = KubeScheduler
    config: ClassVar = {"gangScheduling": True}
    server = ServerOptions(kubernetes_version="1.36")


class TestNativeGangs135(BackendContract):
    """kube-scheduler with native gangs of Kubernetes 1.35."""

    backend = KubeScheduler
    config: ClassVar = {"gangScheduling": True}
    server = ServerOptions(kubernetes_version="1.35")
