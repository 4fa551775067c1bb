"""Kubernetes' own workloads on a cluster without a controller manager: ReplicaSet, Deployment, StatefulSet, Job.

An embedded cluster runs these, so that what people apply first becomes pods. They follow the rules of Kubernetes that
a user can see: names, labels, owners, order, rolling updates, completions, statuses. On a real cluster its controller
manager does all of this, and nothing here runs.
"""

from collections.abc import Mapping
from typing import Final

from spinney.workloads.controllers import WorkloadControllers

__all__ = ["NOT_RUN", "WorkloadControllers"]

NOT_RUN: Final[Mapping[str, str]] = {
    "cronjobs.batch": "no controller runs CronJobs on this cluster, so no Job will be made; apply the Job itself",
    "daemonsets.apps": "no controller runs DaemonSets on this cluster, so no pods will be made",
    "replicationcontrollers": "no controller runs ReplicationControllers on this cluster; use a Deployment",
    "horizontalpodautoscalers.autoscaling": (
        "nothing measures pods on this cluster, so nothing will be scaled; change replicas, or use kubectl scale"
    ),
}
"""What a user is told who creates one of the kinds that no controller here runs."""
