"""What is special about the smaller built-in kinds: their defaults, first states and fixed fields."""

import base64
from collections.abc import Mapping
from datetime import datetime

from spinney.api.selectors import LabelSelector
from spinney.api.struct import JSON, convert
from spinney.server.kinds.kind import Behaviour
from spinney.server.pods.defaults import fill_template_defaults
from spinney.server.status import Cause, forbidden_value, invalid_value, required

HIGHEST_USER_PRIORITY = 1_000_000_000


class NamespaceBehaviour(Behaviour):
    """A namespace lives until its contents are gone: it carries the finalizer ``kubernetes`` in its spec."""

    def prepare_create(self, obj: JSON, now: datetime) -> None:
        obj["spec"] = {"finalizers": ["kubernetes"]}
        obj["status"] = {"phase": "Active"}
        metadata = obj["metadata"]
        metadata["labels"] = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}

    def prepare_update(self, obj: JSON, old: JSON, subresource: str) -> None:
        if subresource != "finalize":
            obj["spec"] = old.get("spec", {})
        metadata = obj["metadata"]
        metadata["labels"] = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}


class SecretBehaviour(Behaviour):
    """A secret has a type; ``stringData`` is written into ``data``."""

    def fill_defaults(self, obj: JSON) -> None:
        obj.setdefault("type", "Opaque")
        plain = obj.pop("stringData", None)
        if isinstance(plain, dict):
            encoded = {key: base64.b64encode(str(value).encode()).decode() for key, value in plain.items()}
            obj["data"] = {**(obj.get("data") or {}), **encoded}

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> list[Cause]:
        if old is None:
            return []
        causes = immutable_content(obj, old)
        if obj.get("type") != old.get("type"):
            causes.append(invalid_value("type", obj.get("type"), "field is immutable"))
        return causes


class ConfigMapBehaviour(Behaviour):
    """A config map that says it is immutable is, and stays so."""

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> list[Cause]:
        return [] if old is None else immutable_content(obj, old)


def immutable_content(obj: JSON, old: JSON) -> list[Cause]:
    """Return what changed of a config map or secret that may not change any more."""
    if not old.get("immutable"):
        return []
    causes = []
    if not obj.get("immutable"):
        causes.append(forbidden_value("immutable", "field is immutable when `immutable` is set"))
    changed = [name for name in ("data", "binaryData") if (obj.get(name) or {}) != (old.get(name) or {})]
    return causes + [forbidden_value(name, "field is immutable when `immutable` is set") for name in changed]


class LeaseBehaviour(Behaviour):
    """A lease lasts for some time."""

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> list[Cause]:
        seconds = (obj.get("spec") or {}).get("leaseDurationSeconds")
        if seconds is None or seconds > 0:
            return []
        return [invalid_value("spec.leaseDurationSeconds", seconds, "must be greater than 0")]


class ServiceBehaviour(Behaviour):
    """A service gets a type and ports with a protocol; there is no network, so it gets no address."""

    def fill_defaults(self, obj: JSON) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("type", "ClusterIP")
        spec.setdefault("sessionAffinity", "None")
        if spec["type"] != "ExternalName":
            spec.setdefault("internalTrafficPolicy", "Cluster")
        for port in spec.get("ports") or ():
            port.setdefault("protocol", "TCP")
            port.setdefault("targetPort", port.get("port"))

    def prepare_create(self, obj: JSON, now: datetime) -> None:
        obj["status"] = {"loadBalancer": {}}
        if obj["spec"]["type"] == "ClusterIP":
            obj["spec"].setdefault("clusterIP", "None")


class VolumeBehaviour(Behaviour):
    """A volume begins Pending; who plays the volume controller moves it on."""

    def fill_defaults(self, obj: JSON) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
        spec.setdefault("volumeMode", "Filesystem")

    def prepare_create(self, obj: JSON, now: datetime) -> None:
        obj["status"] = {"phase": "Pending"}


class ClaimBehaviour(Behaviour):
    """A volume claim begins Pending."""

    def fill_defaults(self, obj: JSON) -> None:
        obj.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")

    def prepare_create(self, obj: JSON, now: datetime) -> None:
        obj["status"] = {"phase": "Pending"}


class NodeBehaviour(Behaviour):
    """A node that does not say what can be allocated offers its whole capacity."""

    def fill_defaults(self, obj: JSON) -> None:
        status = obj.get("status")
        if isinstance(status, dict) and status.get("capacity") and not status.get("allocatable"):
            status["allocatable"] = {**status["capacity"]}


class BudgetBehaviour(Behaviour):
    """A disruption budget allows nothing until somebody has counted."""

    def prepare_create(self, obj: JSON, now: datetime) -> None:
        obj["status"] = {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}


class DeploymentBehaviour(Behaviour):
    """Deployments and their like are stored, not run; they get the defaults that clients read back."""

    def fill_defaults(self, obj: JSON) -> None:
        spec = obj.setdefault("spec", {})
        kind = obj.get("kind", "")
        if kind != "DaemonSet":
            spec.setdefault("replicas", 1)
        if kind in _ROLLING:
            spec.setdefault("revisionHistoryLimit", 10)
            field, rolling = _ROLLING[kind]
            strategy = spec.setdefault(field, {})
            strategy.setdefault("type", "RollingUpdate")
            if strategy["type"] == "RollingUpdate":
                strategy["rollingUpdate"] = {**rolling, **(strategy.get("rollingUpdate") or {})}
        if kind == "Deployment":
            spec.setdefault("progressDeadlineSeconds", 600)
        elif kind == "StatefulSet":
            spec.setdefault("podManagementPolicy", "OrderedReady")
        _fill_template(spec)

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> list[Cause]:
        spec = obj.get("spec") or {}
        causes = []
        if obj.get("kind") != "ReplicationController":
            selector = spec.get("selector")
            if not selector:
                causes.append(required("spec.selector"))
            template = spec.get("template") or {}
            labels = (template.get("metadata") or {}).get("labels") or {}
            if template and (not selector or not convert(LabelSelector, selector).matches(labels)):
                detail = "`selector` does not match template `labels`"
                causes.append(invalid_value("spec.template.metadata.labels", labels, detail))
        replicas = spec.get("replicas", 0)
        if not isinstance(replicas, int) or replicas < 0:
            causes.append(invalid_value("spec.replicas", replicas, "must be greater than or equal to 0"))
        return causes


_ROLLING: Mapping[str, tuple[str, JSON]] = {  # where each kind says how it is rolled out, and what goes without saying
    "Deployment": ("strategy", {"maxUnavailable": "25%", "maxSurge": "25%"}),
    "StatefulSet": ("updateStrategy", {"partition": 0}),
    "DaemonSet": ("updateStrategy", {"maxUnavailable": 1, "maxSurge": 0}),
}


class JobBehaviour(Behaviour):
    """Jobs are stored, not run; each selects the pods that carry its uid, unless it says that it selects by itself."""

    def prepare_create(self, obj: JSON, now: datetime) -> None:
        spec, metadata = obj["spec"], obj["metadata"]
        if spec.get("manualSelector") or not isinstance(spec.get("template"), dict):
            return
        template = spec["template"].setdefault("metadata", {})
        identity = {"controller-uid": metadata["uid"], "job-name": metadata["name"]}
        identity |= {f"batch.kubernetes.io/{name}": value for name, value in identity.items()}
        template["labels"] = {**(template.get("labels") or {}), **identity}
        uid = "batch.kubernetes.io/controller-uid"
        spec["selector"] = {"matchLabels": {uid: metadata["uid"]}}

    def fill_defaults(self, obj: JSON) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("suspend", False)
        if "completions" not in spec and "parallelism" not in spec:
            spec["completions"] = spec["parallelism"] = 1
        spec.setdefault("parallelism", 1)
        spec.setdefault("backoffLimit", 6)
        spec.setdefault("completionMode", "NonIndexed")
        _fill_template(spec)


def _fill_template(spec: JSON) -> None:
    template = spec.get("template")
    pod_spec = template.get("spec") if isinstance(template, dict) else None
    if isinstance(pod_spec, dict):
        fill_template_defaults(pod_spec)


class PriorityClassBehaviour(Behaviour):
    """The value of a priority class never changes, and users' values stay below the system's."""

    def fill_defaults(self, obj: JSON) -> None:
        obj.setdefault("preemptionPolicy", "PreemptLowerPriority")
        obj.setdefault("value", 0)

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> list[Cause]:
        causes: list[Cause] = []
        name, value = obj["metadata"].get("name", ""), obj["value"]
        if not isinstance(value, int) or isinstance(value, bool):
            return [invalid_value("value", value, "must be a whole number")]
        if old is None:
            system = name in {"system-node-critical", "system-cluster-critical"}
            if name.startswith("system-") and not system:
                causes.append(
                    forbidden_value("metadata.name", "priority class names with 'system-' prefix are reserved")
                )
            if value > HIGHEST_USER_PRIORITY and not system:
                detail = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
                causes.append(forbidden_value("value", detail))
        else:
            if old.get("value") != value:
                causes.append(forbidden_value("value", "may not be changed in an update."))
            if old.get("preemptionPolicy") != obj.get("preemptionPolicy"):
                causes.append(invalid_value("preemptionPolicy", obj.get("preemptionPolicy"), "field is immutable"))
        return causes
