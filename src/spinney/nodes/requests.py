"""What a pod takes from its node, summed as a kubelet sums it when the pod arrives.

CPU counts in millicores, everything else in whole units.
"""

from collections.abc import Mapping

from spinney.api.core import ResourceList
from spinney.api.pod_requests import peak_of_containers
from spinney.api.quantity import milli, value
from spinney.nodes.pods import BoundPod

Amounts = Mapping[str, int]


def amounts(resources: ResourceList) -> dict[str, int]:
    """Return a resource list in whole numbers."""
    return {name: milli(raw) if name == "cpu" else value(raw) for name, raw in resources.items()}


def pod_requests(pod: BoundPod) -> dict[str, int]:
    """Return what ``pod`` takes, with one of the node's pod slots."""
    spec = pod.spec
    total = peak_of_containers(
        [(amounts(each.resources.requests), each.sidecar) for each in spec.init_containers],
        [amounts(each.resources.requests) for each in spec.containers],
        nothing={},
        plus=_sum,
        most=_maximum,
    )
    if spec.resources is not None:
        total |= amounts(spec.resources.requests)
    return _sum(_sum(total, amounts(spec.overhead)), {"pods": 1})


def _sum(left: Amounts, right: Amounts) -> dict[str, int]:
    return dict(left) | {name: left.get(name, 0) + amount for name, amount in right.items()}


def _maximum(left: Amounts, right: Amounts) -> dict[str, int]:
    return dict(left) | {name: max(left.get(name, 0), amount) for name, amount in right.items()}
