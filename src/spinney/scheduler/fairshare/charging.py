"""What a queue pays for a pod."""

from spinney.cluster.classes import RequestClass
from spinney.cluster.devices import DEVICE
from spinney.cluster.resources import CPU, MEMORY
from spinney.scheduler.fairshare.amounts import Amounts


def charge_of(request: RequestClass, gpu_memory: int) -> Amounts:
    """Return what a pod of a class costs on a node whose GPUs have ``gpu_memory`` MiB each.

    A MIG slice counts as many GPUs as its profile says, and a share of a device as that part of one.
    """
    parts = (request.gpus + request.mig_slices) * DEVICE
    if request.share is not None:
        parts += request.share.parts_on(gpu_memory) * request.share.devices
    return Amounts(int(request.requests[CPU]), int(request.requests[MEMORY]), parts)
