"""The columns of the other built-in kinds."""

from collections.abc import Mapping
from datetime import datetime

from spinney.api.struct import JSON
from spinney.server.rest.tables.columns import AGE, CREATED, NAME, Column, at, field, named
from spinney.server.rest.tables.durations import age
from spinney.server.rest.tables.networking import NETWORKING
from spinney.server.rest.tables.pods import NODE, POD
from spinney.server.rest.tables.storage import STORAGE
from spinney.server.rest.tables.workloads import WORKLOADS


def _last_seen(event: JSON, now: datetime) -> str:
    when = event.get("lastTimestamp") or at(event, "series.lastObservedTime") or event.get("eventTime")
    return age(when or event["metadata"].get("creationTimestamp"), now)


def _event_object(event: JSON, _: datetime) -> str:
    regarding = event.get("involvedObject") or {}
    return f"{str(regarding.get('kind', '')).lower()}/{regarding.get('name', '')}"


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


def _targets(autoscaler: JSON, _: datetime) -> str:
    shown = []
    for metric in at(autoscaler, "spec.metrics", ()):
        resource = metric.get("resource") or metric.get("containerResource") or {}
        target = resource.get("target") or {}
        if target.get("averageUtilization") is not None:
            shown.append(f"{resource.get('name')}: <unknown>/{target['averageUtilization']}%")
        else:
            shown.append(f"{resource.get('name', '<unknown>')}: <unknown>/{target.get('averageValue', '<auto>')}")
    return ", ".join(shown) or "<none>"


def _param_kind(policy: JSON, _: datetime) -> str:
    kind = at(policy, "spec.paramKind", None)
    return f"{kind['apiVersion']}/{kind['kind']}" if kind else "<unset>"


def _param_ref(binding: JSON, _: datetime) -> str:
    params = at(binding, "spec.paramRef", None)
    if not params:
        return "<unset>"
    name = params.get("name") or "*"
    return f"{params['namespace']}/{name}" if params.get("namespace") else str(name)


def _entries(obj: JSON, _: datetime) -> int:
    return len(obj.get("data") or {}) + len(obj.get("binaryData") or {})


def _first_seen(event: JSON, now: datetime) -> str:
    when = event.get("firstTimestamp") or event.get("eventTime")
    return age(when or event["metadata"].get("creationTimestamp"), now)


def _event_source(event: JSON, _: datetime) -> str:
    component = at(event, "source.component") or event.get("reportingComponent") or ""
    host = at(event, "source.host") or event.get("reportingInstance") or ""
    return f"{component}, {host}" if host else str(component)


def _quota(quota: JSON, *, limits: bool) -> str:
    hard, used = at(quota, "status.hard") or at(quota, "spec.hard", {}), at(quota, "status.used", {})
    names = sorted(name for name in hard if name.startswith("limits.") is limits)
    return ", ".join(f"{name}: {used.get(name, 0)}/{hard[name]}" for name in names)


def _subjects(kind: str) -> Column:
    def cell(binding: JSON, _: datetime) -> str:
        found = [each for each in binding.get("subjects") or () if each.get("kind") == kind]
        return ", ".join(
            f"{each['namespace']}/{each['name']}" if each.get("namespace") else str(each["name"]) for each in found
        )

    return Column(f"{kind}s", cell, priority=1)


_BINDING = (
    NAME,
    Column("Role", lambda obj, _: f"{at(obj, 'roleRef.kind')}/{at(obj, 'roleRef.name')}"),
    AGE,
    *(_subjects(kind) for kind in ("User", "Group", "ServiceAccount")),
)
_HOOKS = named(Column("Webhooks", lambda obj, _: len(obj.get("webhooks") or ()), type="integer"))
DEFAULT = named()
COLUMNS: Mapping[str, tuple[Column, ...]] = {
    **WORKLOADS,
    **NETWORKING,
    **STORAGE,
    "pods": POD,
    "configmaps": named(Column("Data", _entries)),
    "secrets": named(field("Type", "type", ""), Column("Data", _entries)),
    "events": (
        Column("Last Seen", _last_seen),
        field("Type", "type", ""),
        field("Reason", "reason", ""),
        Column("Object", _event_object),
        field("Subobject", "involvedObject.fieldPath", "", priority=1),
        Column("Source", _event_source, priority=1),
        Column("Message", lambda event, _: str(event.get("message", "")).strip()),
        Column("First Seen", _first_seen, priority=1),
        Column("Count", lambda event, _: int(at(event, "series.count") or event.get("count") or 1), priority=1),
        Column("Name", lambda obj, _: obj["metadata"]["name"], format="name", priority=1),
    ),
    "resourcequotas": named(
        Column("Request", lambda obj, _: _quota(obj, limits=False)),
        Column("Limit", lambda obj, _: _quota(obj, limits=True)),
    ),
    "limitranges": (NAME, CREATED),
    "runtimeclasses.node.k8s.io": named(field("Handler", "handler", "")),
    "roles.rbac.authorization.k8s.io": (NAME, CREATED),
    "clusterroles.rbac.authorization.k8s.io": (NAME, CREATED),
    "rolebindings.rbac.authorization.k8s.io": _BINDING,
    "clusterrolebindings.rbac.authorization.k8s.io": _BINDING,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _HOOKS,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _HOOKS,
    "validatingadmissionpolicies.admissionregistration.k8s.io": named(
        Column("Validations", lambda obj, _: len(at(obj, "spec.validations", ())), type="integer"),
        Column("ParamKind", _param_kind),
    ),
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": named(
        field("PolicyName", "spec.policyName", ""),
        Column("ParamRef", _param_ref),
    ),
    "horizontalpodautoscalers.autoscaling": named(
        Column("Reference", _scaled_object),
        Column("Targets", _targets),
        Column("MinPods", lambda obj, _: str(at(obj, "spec.minReplicas", "<unset>"))),
        field("MaxPods", "spec.maxReplicas", 0),
        field("Replicas", "status.currentReplicas", 0),
    ),
    "customresourcedefinitions.apiextensions.k8s.io": (NAME, CREATED),
    "nodes": NODE,
    "namespaces": named(field("Status", "status.phase", "")),
    "poddisruptionbudgets.policy": named(
        field("Min Available", "spec.minAvailable", "N/A"),
        field("Max Unavailable", "spec.maxUnavailable", "N/A"),
        field("Allowed Disruptions", "status.disruptionsAllowed", 0, kind="integer"),
    ),
    "leases.coordination.k8s.io": named(field("Holder", "spec.holderIdentity", "")),
    "priorityclasses.scheduling.k8s.io": (
        NAME,
        field("Value", "value", 0, kind="integer"),
        field("Global-Default", "globalDefault", False, kind="boolean"),
        AGE,
        field("PreemptionPolicy", "preemptionPolicy", ""),
    ),
    "podgroups.scheduling.k8s.io": named(
        Column("Policy", _gang_policy),
        field("Workload", "spec.workloadRef.workloadName"),
        Column("Status", _gang_status),
    ),
}
