"""What a pod looks like once it runs: in a simulation, as soon as it is bound."""

from datetime import datetime
from typing import Final

from spinney.api.core import Pod
from spinney.api.meta import Condition
from spinney.api.struct import changed
from spinney.binding.shared_devices import group_labels
from spinney.scheduler.framework.results import Binding

_READY: Final = Condition(type="Ready", status="True")


def running_as_bound(pod: Pod, bind: Binding, now: datetime) -> Pod:
    """Return a pod that runs where it was bound, with the groups of the devices it shares."""
    if bind.gpu_groups:
        pod = changed(pod, metadata={"labels": {**pod.metadata.labels, **group_labels(bind.gpu_groups)}})
    return running_on(pod, bind.node, now)


def running_on(pod: Pod, node: str, now: datetime) -> Pod:
    """Return a pod that runs on a node since ``now``."""
    bound = Condition(type="PodScheduled", status="True", last_transition_time=now)
    status = {"phase": "Running", "start_time": now, "conditions": (_READY, bound)}
    return changed(pod, spec={"node_name": node}, status=status)
