"""How many GPUs, and how much CPU, things have and ask for, as pictures and tables count them."""

from typing import Final

from spinney.api.core import Node, Pod
from spinney.api.quantity import milli, value

GPU: Final = "nvidia.com/gpu"
CPU: Final = "cpu"


def _asked(pod: Pod, resource: str) -> list[str | int | float]:
    """Return what each container of a pod asks for; a limit counts where there is no request."""
    found = [container.resources for container in pod.spec.containers]
    return [each.requests.get(resource, each.limits.get(resource, 0)) for each in found]


def gpus_of(pod: Pod) -> int:
    """Return how many whole GPUs a pod asks for."""
    return sum(map(value, _asked(pod, GPU)))


def cpu_of(pod: Pod) -> int:
    """Return how many millicores a pod asks for."""
    return sum(map(milli, _asked(pod, CPU)))


def cpu_on(node: Node) -> int:
    """Return how many millicores a node has to give."""
    return milli(node.status.allocatable.get(CPU, 0))


def gpus_on(node: Node) -> int:
    """Return how many GPUs a node has to give."""
    return value(node.status.allocatable.get(GPU, 0))
