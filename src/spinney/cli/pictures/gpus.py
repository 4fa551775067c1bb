"""How many GPUs, and how much CPU, pods ask for, as pictures and tables count them."""

from spinney.api.core import Node, Pod
from spinney.api.quantity import milli, value
from spinney.cluster.resources import CPU_NAME, GPU_NAME


def _asked(pod: Pod, resource: str) -> list[str | int | float]:
    """Return what each container of a pod asks for; a limit counts where there is no request."""
    found = [container.resources for container in pod.spec.containers]
    return [each.requests.get(resource, each.limits.get(resource, 0)) for each in found]


def gpus_of(pod: Pod) -> int:
    """Return how many whole GPUs a pod asks for."""
    return sum(map(value, _asked(pod, GPU_NAME)))


def cpu_of(pod: Pod) -> int:
    """Return how many millicores a pod asks for."""
    return sum(map(milli, _asked(pod, CPU_NAME)))


def cpu_on(node: Node) -> int:
    """Return how many millicores a node has to give."""
    return milli(node.status.allocatable.get(CPU_NAME, 0))
