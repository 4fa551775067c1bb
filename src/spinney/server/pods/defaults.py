"""What a pod gets when its author did not say: the defaults clients and schedulers rely on, and its first status."""

from datetime import datetime
from typing import Any

from spinney.api.struct import JSON
from spinney.api.time import timestamp
from spinney.server.pods.quality import quality_of_service


def fill_pod_defaults(spec: JSON) -> None:
    """Fill in the spec of a pod, in place."""
    fill_template_defaults(spec)
    spec.setdefault("enableServiceLinks", True)
    account = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = account


def fill_template_defaults(spec: JSON) -> None:
    """Fill in a pod spec as it stands in a template, in place."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("securityContext", {})
    for containers in (spec.get("containers"), spec.get("initContainers")):
        for container in containers or ():
            if isinstance(container, dict):
                _fill_container(container)
    for constraint in spec.get("topologySpreadConstraints") or ():
        constraint.setdefault("nodeAffinityPolicy", "Honor")
        constraint.setdefault("nodeTaintsPolicy", "Ignore")


def first_status(spec: JSON, now: datetime) -> JSON:
    """Return the status of a pod that has just been created."""
    status: JSON = {"phase": "Pending", "qosClass": quality_of_service(spec)}
    if spec.get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "lastProbeTime": None,
                "lastTransitionTime": timestamp(now),
            }
        ]
    return status


def _fill_container(container: JSON) -> None:
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = _pull_policy(container.get("image"))
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    resources = container["resources"] = container.get("resources") or {}
    limits: Any = resources.get("limits")
    if limits:
        requests = resources["requests"] = resources.get("requests") or {}
        for name, quantity in limits.items():
            requests.setdefault(name, quantity)


def _pull_policy(image: object) -> str:
    if not isinstance(image, str) or "@" in image:
        return "IfNotPresent"
    tag = image.rpartition("/")[2].partition(":")[2]
    return "Always" if tag in {"", "latest"} else "IfNotPresent"
