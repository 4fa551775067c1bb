"""What a PodGang says of being disrupted, read from its pods: for schedulers that write on pods alone."""

from collections.abc import Iterable

from spinney.api.conditions import find_condition
from spinney.api.core import Pod
from spinney.api.labels import EVICTION_REQUEST
from spinney.api.meta import Condition
from spinney.api.podgang import DISRUPTION_TARGET
from spinney.gangs.checkpoints import EVICTED, REQUESTED, request_of


def is_disrupted(pod: Pod) -> bool:
    """Tell whether a pod is asked to go, or says that it is being evicted."""
    return pod.is_true(DISRUPTION_TARGET) or EVICTION_REQUEST in pod.metadata.annotations


def derived_disruption(present: Iterable[Condition], pods: Iterable[Pod], *, placed: bool) -> Condition | None:
    """Return the condition DisruptionTarget of a gang, if it has one; what was true stays until the gang is placed.

    Pods are asked to go by an annotation; of those that are evicted, by whomever, the pod says so itself.
    """
    living = [pod for pod in pods if not pod.terminal]
    for pod in living:
        going = pod.condition(DISRUPTION_TARGET)
        if going is not None and going.status == "True":
            return _target(going.reason, going.message)
    for pod in living:
        asked = request_of(pod.metadata.annotations)
        if asked is not None:
            return _target(REQUESTED, asked.message)
    was = find_condition(present, DISRUPTION_TARGET)
    if was is None or was.status != "True":
        return was
    if not placed:  # those that were asked have gone
        return _target(EVICTED, was.message) if was.reason == REQUESTED else was
    text = "every group has its minimum placed, and no pod is asked to go"
    return Condition(type=DISRUPTION_TARGET, status="False", reason="NotDisrupted", message=text)


def _target(reason: str, message: str) -> Condition:
    return Condition(type=DISRUPTION_TARGET, status="True", reason=reason, message=message)
