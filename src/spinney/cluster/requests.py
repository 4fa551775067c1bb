"""What a pod requests, by Kubernetes' rules.

Containers add up as :mod:`spinney.api.pod_requests` says. Pod-level requests replace the aggregate of the resources
they name; overhead comes on top. While a resize is under way a container counts with the most of what its spec asks
for, what the kubelet has set aside and what is in force. Limits play no part. Every pod takes one of its node's pod
slots.
"""

from collections.abc import Iterator, Mapping
from functools import reduce

from spinney.api.core import Container, ContainerStatus, Pod
from spinney.api.pod_requests import Amounts, amount_of, amounts_of, most_of, peak_of_containers, total_of
from spinney.api.quantity import RawQuantity
from spinney.cluster.resources import PODS_NAME, ResourceAxis, Vector


class NegativeRequest(ValueError):
    """A pod asks for less than nothing: no API server takes one, but a file may hold it, or a CRD's pod template."""


def pod_requests(pod: Pod, axis: ResourceAxis) -> Vector:
    """Return what ``pod`` takes from a node, ``[resource]``."""
    return axis.vector(requested(pod))


def requested(pod: Pod) -> dict[str, int]:
    """Return what ``pod`` takes from a node, by name; raises :class:`NegativeRequest`."""
    spec = pod.spec
    statuses = {status.name: status for status in (*pod.status.init_container_statuses, *pod.status.container_statuses)}
    infeasible = pod.status.resize == "Infeasible"

    def needs(container: Container) -> Amounts:
        return _requests(container, statuses.get(container.name), infeasible=infeasible)

    total = peak_of_containers(
        [(needs(each), each.restart_policy == "Always") for each in spec.init_containers],
        [needs(each) for each in spec.containers],
    )
    if spec.resources is not None:
        total |= amounts_of(spec.resources.requests)
    if spec.overhead:
        total = total_of(total, amounts_of(spec.overhead))
    total[PODS_NAME] = 1
    if min(total.values()) < 0:
        raise NegativeRequest("; ".join(_negative(pod)))
    return total


def unoffered(pod: Pod, axis: ResourceAxis) -> tuple[str, ...]:
    """Return the resources ``pod`` requests that no node offers."""
    return tuple(name for name, amount in requested(pod).items() if amount and axis.find(name) is None)


def _requests(container: Container, status: ContainerStatus | None, *, infeasible: bool) -> Amounts:
    asked = amounts_of(container.resources.requests)
    if status is None or not (status.allocated_resources or status.resources):
        return asked
    in_force = [amounts_of(status.allocated_resources)]
    if status.resources is not None:
        in_force.append(amounts_of(status.resources.requests))
    # The kubelet has refused the new size, so what the spec asks for will not come about.
    return reduce(most_of, in_force if infeasible else [asked, *in_force])


def _negative(pod: Pod) -> Iterator[str]:
    """Yield what is wrong with each field in which a pod asks for less than nothing."""
    spec = pod.spec
    asked: list[tuple[str, Mapping[str, RawQuantity]]] = [
        (f"{field}[{number}].resources.requests", container.resources.requests)
        for field, containers in (("initContainers", spec.init_containers), ("containers", spec.containers))
        for number, container in enumerate(containers)
    ]
    if spec.resources is not None:
        asked.append(("resources.requests", spec.resources.requests))
    asked.append(("overhead", spec.overhead))
    for field, amounts in asked:
        for name, quantity in amounts.items():
            if amount_of(name, quantity) < 0:
                yield f"spec.{field}[{name}]: {str(quantity)!r} is negative; expected 0 or more"
