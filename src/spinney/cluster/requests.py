"""What a pod requests, by Kubernetes' rules.

Containers add up as :mod:`spinney.api.pod_requests` says. Pod-level requests replace the aggregate of the resources
they name; overhead comes on top. While a resize is under way a container counts with the most of what its spec asks
for, what the kubelet has set aside and what is in force. Limits play no part. Every pod takes one of its node's pod
slots.
"""

from functools import reduce

import numpy as np

from spinney.api.core import Container, ContainerStatus, Pod
from spinney.api.pod_requests import peak_of_containers
from spinney.cluster.resources import PODS, ResourceAxis, Vector, padded


def pod_requests(pod: Pod, axis: ResourceAxis) -> Vector:
    """Return what ``pod`` takes from a node, ``[resource]``."""
    spec = pod.spec
    statuses = {status.name: status for status in (*pod.status.init_container_statuses, *pod.status.container_statuses)}
    infeasible = pod.status.resize == "Infeasible"

    def needs(container: Container) -> Vector:
        return _requests(container, statuses.get(container.name), axis, infeasible=infeasible)

    total = peak_of_containers(
        [(needs(each), each.restart_policy == "Always") for each in spec.init_containers],
        [needs(each) for each in spec.containers],
        nothing=axis.zeros(),
        plus=_sum,
        most=_maximum,
    )
    if spec.resources is not None:
        for name, quantity in spec.resources.requests.items():
            column = axis.column(name)
            total = padded(total, axis.width)
            total[column] = axis.amount(name, quantity)
    if spec.overhead:
        total = _sum(total, axis.vector(spec.overhead))
    total[PODS] = 1
    return total


def _requests(container: Container, status: ContainerStatus | None, axis: ResourceAxis, *, infeasible: bool) -> Vector:
    asked = axis.vector(container.resources.requests)
    if status is None or not (status.allocated_resources or status.resources):
        return asked
    in_force = [axis.vector(status.allocated_resources)]
    if status.resources is not None:
        in_force.append(axis.vector(status.resources.requests))
    # The kubelet has refused the new size, so what the spec asks for will not come about.
    return reduce(_maximum, in_force if infeasible else [asked, *in_force])


def _sum(left: Vector, right: Vector) -> Vector:
    width = max(left.shape[0], right.shape[0])
    return padded(left, width) + padded(right, width)


def _maximum(left: Vector, right: Vector) -> Vector:
    width = max(left.shape[0], right.shape[0])
    return np.maximum(padded(left, width), padded(right, width))
