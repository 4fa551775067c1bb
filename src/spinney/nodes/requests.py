"""What a pod takes from its node, summed as a kubelet sums it when the pod arrives.

CPU counts in millicores, everything else in whole units. Containers and sidecars run together and add up; another init
container runs alone beside the sidecars started before it, so it counts only where it needs more.
"""

from collections.abc import Mapping

from spinney.api.core import ResourceList
from spinney.api.quantity import milli, value
from spinney.nodes.pods import BoundPod

Amounts = Mapping[str, int]


def amounts(resources: ResourceList) -> dict[str, int]:
    """Return a resource list in whole numbers."""
    return {name: milli(raw) if name == "cpu" else value(raw) for name, raw in resources.items()}


def pod_requests(pod: BoundPod) -> dict[str, int]:
    """Return what ``pod`` takes, with one of the node's pod slots."""
    together: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in pod.spec.init_containers:
        own = amounts(container.resources.requests)
        if container.sidecar:
            together = _sum(together, own)
            peak = _maximum(peak, together)
        else:
            peak = _maximum(peak, _sum(together, own))
    for container in pod.spec.containers:
        together = _sum(together, amounts(container.resources.requests))
    total = _maximum(together, peak)
    if pod.spec.resources is not None:
        total |= amounts(pod.spec.resources.requests)
    return _sum(_sum(total, amounts(pod.spec.overhead)), {"pods": 1})


def _sum(left: Amounts, right: Amounts) -> dict[str, int]:
    return dict(left) | {name: left.get(name, 0) + amount for name, amount in right.items()}


def _maximum(left: Amounts, right: Amounts) -> dict[str, int]:
    return dict(left) | {name: max(left.get(name, 0), amount) for name, amount in right.items()}
