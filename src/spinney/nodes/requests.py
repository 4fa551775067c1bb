"""What a pod takes from its node, summed as a kubelet sums it when the pod arrives."""

from spinney.api.pod_requests import Amounts, amounts_of, peak_of_containers, total_of
from spinney.nodes.pods import BoundPod


def pod_requests(pod: BoundPod) -> Amounts:
    """Return what ``pod`` takes, with one of the node's pod slots."""
    spec = pod.spec
    total = peak_of_containers(
        [(amounts_of(each.resources.requests), each.sidecar) for each in spec.init_containers],
        [amounts_of(each.resources.requests) for each in spec.containers],
    )
    if spec.resources is not None:
        total |= amounts_of(spec.resources.requests)
    return {**total_of(total, amounts_of(spec.overhead)), "pods": 1}
