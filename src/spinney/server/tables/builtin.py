"""The columns of the other built-in kinds."""

from collections.abc import Mapping
from datetime import datetime

from spinney.api.struct import JSON
from spinney.server.tables.columns import AGE, NAME, Column, at, field
from spinney.server.tables.durations import age
from spinney.server.tables.pods import NODE, POD


def _count(path: str) -> Column:
    return Column("Data", lambda obj, _: len(at(obj, path, {})))


def _last_seen(event: JSON, now: datetime) -> str:
    when = event.get("lastTimestamp") or at(event, "series.lastObservedTime") or event.get("eventTime")
    return age(when or event["metadata"].get("creationTimestamp"), now)


def _event_object(event: JSON, _: datetime) -> str:
    regarding = event.get("involvedObject") or {}
    return f"{str(regarding.get('kind', '')).lower()}/{regarding.get('name', '')}"


def _ports(service: JSON, _: datetime) -> str:
    ports = at(service, "spec.ports", ())
    return ",".join(f"{each.get('port')}/{each.get('protocol', 'TCP')}" for each in ports) or "<none>"


def _replicas(obj: JSON, _: datetime) -> str:
    return f"{at(obj, 'status.readyReplicas', 0)}/{at(obj, 'spec.replicas', 1)}"


def _completions(job: JSON, _: datetime) -> str:
    return f"{at(job, 'status.succeeded', 0)}/{at(job, 'spec.completions', 1)}"


def _gang_policy(group: JSON, _: datetime) -> str:
    policy = at(group, "spec.schedulingPolicy", {})
    gang = policy.get("gang")
    return f"gang(minCount={gang.get('minCount')})" if gang is not None else "basic" if "basic" in policy else "<none>"


def _gang_status(group: JSON, _: datetime) -> str:
    conditions = {each.get("type"): each for each in at(group, "status.conditions", ())}
    found = conditions.get("PodGroupInitiallyScheduled") or conditions.get("PodGroupScheduled") or {}
    return "Scheduled" if found.get("status") == "True" else str(found.get("reason") or "Pending")


def _scaled_object(autoscaler: JSON, _: datetime) -> str:
    target = at(autoscaler, "spec.scaleTargetRef", {})
    return f"{target.get('kind')}/{target.get('name')}"


DEFAULT = (NAME, AGE)
COLUMNS: Mapping[str, tuple[Column, ...]] = {
    "pods": POD,
    "nodes": NODE,
    "namespaces": (NAME, field("Status", "status.phase", ""), AGE),
    "configmaps": (NAME, _count("data"), AGE),
    "secrets": (NAME, field("Type", "type", ""), _count("data"), AGE),
    "services": (
        NAME,
        field("Type", "spec.type", ""),
        field("Cluster-IP", "spec.clusterIP"),
        Column("External-IP", lambda *_: "<none>"),
        Column("Port(s)", _ports),
        AGE,
    ),
    "events": (
        Column("Last Seen", _last_seen),
        field("Type", "type", ""),
        field("Reason", "reason", ""),
        Column("Object", _event_object),
        field("Message", "message", ""),
        field("Count", "count", 1, kind="integer", priority=1),
        Column("Name", lambda obj, _: obj["metadata"]["name"], format="name", priority=1),
    ),
    "persistentvolumeclaims": (
        NAME,
        field("Status", "status.phase", ""),
        field("Volume", "spec.volumeName", ""),
        field("StorageClass", "spec.storageClassName", ""),
        AGE,
    ),
    "persistentvolumes": (
        NAME,
        field("Capacity", "spec.capacity.storage", ""),
        field("Reclaim Policy", "spec.persistentVolumeReclaimPolicy", ""),
        field("Status", "status.phase", ""),
        field("StorageClass", "spec.storageClassName", ""),
        AGE,
    ),
    "deployments.apps": (
        NAME,
        Column("Ready", _replicas),
        field("Up-to-date", "status.updatedReplicas", 0, kind="integer"),
        field("Available", "status.availableReplicas", 0, kind="integer"),
        AGE,
    ),
    "replicasets.apps": (
        NAME,
        field("Desired", "spec.replicas", 0, kind="integer"),
        field("Current", "status.replicas", 0, kind="integer"),
        field("Ready", "status.readyReplicas", 0, kind="integer"),
        AGE,
    ),
    "statefulsets.apps": (NAME, Column("Ready", _replicas), AGE),
    "daemonsets.apps": (
        NAME,
        field("Desired", "status.desiredNumberScheduled", 0, kind="integer"),
        field("Ready", "status.numberReady", 0, kind="integer"),
        AGE,
    ),
    "jobs.batch": (NAME, Column("Completions", _completions), AGE),
    "poddisruptionbudgets.policy": (
        NAME,
        field("Min Available", "spec.minAvailable", "N/A"),
        field("Max Unavailable", "spec.maxUnavailable", "N/A"),
        field("Allowed Disruptions", "status.disruptionsAllowed", 0, kind="integer"),
        AGE,
    ),
    "horizontalpodautoscalers.autoscaling": (
        NAME,
        Column("Reference", _scaled_object),
        field("MinPods", "spec.minReplicas", 1, kind="integer"),
        field("MaxPods", "spec.maxReplicas", 0, kind="integer"),
        field("Replicas", "status.currentReplicas", 0, kind="integer"),
        AGE,
    ),
    "leases.coordination.k8s.io": (NAME, field("Holder", "spec.holderIdentity", ""), AGE),
    "priorityclasses.scheduling.k8s.io": (
        NAME,
        field("Value", "value", 0, kind="integer"),
        field("Global-Default", "globalDefault", False, kind="boolean"),
        AGE,
        field("PreemptionPolicy", "preemptionPolicy", ""),
    ),
    "podgroups.scheduling.k8s.io": (
        NAME,
        Column("Policy", _gang_policy),
        field("Workload", "spec.workloadRef.workloadName"),
        Column("Status", _gang_status),
        AGE,
    ),
    "storageclasses.storage.k8s.io": (
        NAME,
        field("Provisioner", "provisioner", ""),
        field("ReclaimPolicy", "reclaimPolicy", ""),
        field("VolumeBindingMode", "volumeBindingMode", ""),
        AGE,
    ),
    "customresourcedefinitions.apiextensions.k8s.io": (
        NAME,
        field("Created At", "metadata.creationTimestamp", ""),
    ),
}
