"""How many GPUs, and how much CPU, things have and ask for, as pictures and tables count them."""

from typing import Final

from spinney.api.core import Node, Pod
from spinney.api.quantity import milli, value

GPU: Final = "nvidia.com/gpu"
CPU: Final = "cpu"


def gpus_of(pod: Pod) -> int:
    """Return how many whole GPUs a pod asks for."""
    return sum(
        value(container.resources.requests.get(GPU, container.resources.limits.get(GPU, 0)))
        for container in pod.spec.containers
    )


def cpu_of(pod: Pod) -> int:
    """Return how many millicores a pod asks for."""
    return sum(
        milli(container.resources.requests.get(CPU, container.resources.limits.get(CPU, 0)))
        for container in pod.spec.containers
    )


def cpu_on(node: Node) -> int:
    """Return how many millicores a node has to give."""
    return milli(node.status.allocatable.get(CPU, 0))


def gpus_on(node: Node) -> int:
    """Return how many GPUs a node has to give."""
    return value(node.status.allocatable.get(GPU, 0))
