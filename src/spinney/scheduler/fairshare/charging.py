"""What a queue pays for a pod."""

from spinney.cluster.classes import RequestClass
from spinney.cluster.resources import CPU, MEMORY
from spinney.scheduler.fairshare.amounts import Amounts


def charge_of(request: RequestClass, gpu_memory: int) -> Amounts:
    """Return what a pod of a class costs on a node whose GPUs have ``gpu_memory`` MiB each."""
    return Amounts(int(request.requests[CPU]), int(request.requests[MEMORY]), request.gpu_parts(gpu_memory))
