"""gpupack and gpuspread: which of a node's GPUs a pod shares, the fullest that has room or the emptiest."""

from spinney.cluster.devices import DEVICE
from spinney.extensions.arguments import NoArguments
from spinney.scheduler.framework.nodes import NodeInfo
from spinney.scheduler.framework.plugin import Plugin
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.placement.devices import WHOLE_DEVICE


class GpuPack(Plugin):
    """Scores a GPU by how much of it is used."""

    name = "gpupack"
    arguments_type = NoArguments
    treats_alike = True

    def on_session_open(self, session: Session) -> None:
        """Register the GPU order."""
        session.add_gpu_order_fn(_used)


class GpuSpread(Plugin):
    """Scores a GPU by how much of it is free."""

    name = "gpuspread"
    arguments_type = NoArguments
    treats_alike = True

    def on_session_open(self, session: Session) -> None:
        """Register the GPU order."""
        session.add_gpu_order_fn(lambda task, node, gpu: 1.0 - _used(task, node, gpu))


def _used(task: PodInfo, node: NodeInfo, gpu: str) -> float:
    """Return how much of a GPU stays in use once what is terminating is gone."""
    if gpu == WHOLE_DEVICE:
        return 0.0
    use = node.shared_gpus[gpu]
    return (use.active + use.pipelined) / DEVICE
