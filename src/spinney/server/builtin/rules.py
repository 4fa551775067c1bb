"""What is special about the smaller built-in kinds: their defaults, first states and fixed fields."""

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from spinney.api.field_error import FieldError, forbidden, immutable, invalid, not_supported, required
from spinney.api.pod_rules.defaults import fill_template_defaults
from spinney.api.selectors import LabelSelector
from spinney.api.struct import JSON, convert, fill
from spinney.server.builtin.storage import fill_claim_defaults
from spinney.server.kinds.kind import Behaviour
from spinney.server.pods.validation import validate_template

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

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> Iterator[FieldError]:
        if old is None:
            return
        yield from immutable_content(obj, old)
        yield from immutable("type", obj.get("type"), old.get("type"))


class ConfigMapBehaviour(Behaviour):
    """A config map that says it is immutable is, and stays so."""

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> Iterable[FieldError]:
        return [] if old is None else immutable_content(obj, old)


def immutable_content(obj: JSON, old: JSON) -> Iterator[FieldError]:
    """Return what changed of a config map or secret that may not change any more."""
    if not old.get("immutable"):
        return
    if not obj.get("immutable"):
        yield forbidden("immutable", "field is immutable when `immutable` is set")
    changed = [name for name in ("data", "binaryData") if (obj.get(name) or {}) != (old.get(name) or {})]
    yield from (forbidden(name, "field is immutable when `immutable` is set") for name in changed)


class LeaseBehaviour(Behaviour):
    """A lease lasts for some time."""

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> Iterable[FieldError]:
        seconds = (obj.get("spec") or {}).get("leaseDurationSeconds")
        if seconds is None or seconds > 0:
            return []
        return [invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")]


class NodeBehaviour(Behaviour):
    """A node that does not say what can be allocated offers its whole capacity."""

    def fill_defaults(self, obj: JSON) -> None:
        status = obj.get("status")
        if isinstance(status, dict) and status.get("capacity") and not status.get("allocatable"):
            status["allocatable"] = {**status["capacity"]}


class FirstStatus(Behaviour):
    """An object that begins its life with a status, which a controller or driver then keeps."""

    def __init__(self, **status: object) -> None:
        self._status = status

    def prepare_create(self, obj: JSON, now: datetime) -> None:
        obj["status"] = {**self._status}


class BudgetBehaviour(FirstStatus):
    """Disruption budgets: a number of pods or a share of them, which evictions go by until a controller counts."""

    def __init__(self) -> None:
        super().__init__(currentHealthy=0, desiredHealthy=0, disruptionsAllowed=0, expectedPods=0)

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> Iterator[FieldError]:
        spec = obj.get("spec") or {}
        if "minAvailable" in spec and "maxUnavailable" in spec:
            yield invalid("spec", spec, "minAvailable and maxUnavailable must not be set both")
        for name in ("minAvailable", "maxUnavailable"):
            if name in spec:
                yield from _faulty_share(f"spec.{name}", spec[name])
        policy = spec.get("unhealthyPodEvictionPolicy")
        if policy is not None and policy not in _UNHEALTHY:
            yield not_supported("spec.unhealthyPodEvictionPolicy", policy, _UNHEALTHY)


_UNHEALTHY = ("AlwaysAllow", "IfHealthyBudget")
_SHARE = re.compile("[0-9]{1,9}%", re.ASCII)


def _faulty_share(path: str, value: int | str) -> Iterator[FieldError]:
    if isinstance(value, int):
        if value < 0:
            yield invalid(path, value, "must be greater than or equal to 0")
    elif not _SHARE.fullmatch(value):
        yield invalid(path, value, "must be a number of pods, or a percentage such as 50%")
    elif int(value[:-1]) > 100:
        yield invalid(path, value, "must not be greater than 100%")


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
            fill(spec.setdefault("persistentVolumeClaimRetentionPolicy", {}), whenDeleted="Retain", whenScaled="Retain")
            for claim in spec.get("volumeClaimTemplates") or ():
                claim |= {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": {"phase": "Pending"}}
                fill_claim_defaults(claim)
        elif kind == "ReplicationController":
            self._fill_from_labels(obj, spec)
        _fill_template(spec)

    @staticmethod
    def _fill_from_labels(obj: JSON, spec: JSON) -> None:
        """A replication controller without labels or selector takes those of its pods."""
        labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
        if labels:
            spec["selector"] = spec.get("selector") or {**labels}
            obj["metadata"]["labels"] = obj["metadata"].get("labels") or {**labels}

    def prepare_create(self, obj: JSON, now: datetime) -> None:
        kind = obj.get("kind", "")
        obj["status"] = dict.fromkeys(_FIRST_COUNTS.get(kind, ()), 0)
        if kind == "DaemonSet":
            annotations = obj["metadata"].get("annotations") or {}
            obj["metadata"]["annotations"] = {**annotations, _TEMPLATE_GENERATION: "1"}

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> Iterator[FieldError]:
        spec = obj.get("spec") or {}
        if obj.get("kind") != "ReplicationController":
            selector = spec.get("selector")
            if not selector:
                yield required("spec.selector")
            template = spec.get("template") or {}
            labels = (template.get("metadata") or {}).get("labels") or {}
            if not selector or not convert(LabelSelector, selector).matches(labels):
                detail = "`selector` does not match template `labels`"
                yield invalid("spec.template.metadata.labels", labels or None, detail)
        replicas = spec.get("replicas", 0)
        if not isinstance(replicas, int) or replicas < 0:
            yield invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        yield from validate_template(spec.get("template"), "spec.template", "Always")


_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_FIRST_COUNTS: Mapping[str, tuple[str, ...]] = {  # what a status says from the start
    "StatefulSet": ("replicas", "availableReplicas"),
    "DaemonSet": ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"),
    "ReplicaSet": ("replicas",),
    "ReplicationController": ("replicas",),
}
_ROLLING: Mapping[str, tuple[str, JSON]] = {  # where each kind says how it is rolled out, and what goes without saying
    "Deployment": ("strategy", {"maxUnavailable": "25%", "maxSurge": "25%"}),
    "StatefulSet": ("updateStrategy", {"partition": 0, "maxUnavailable": 1}),
    "DaemonSet": ("updateStrategy", {"maxUnavailable": 1, "maxSurge": 0}),
}


class JobBehaviour(Behaviour):
    """Jobs are stored, not run; each selects the pods that carry its uid, unless it says that it selects by itself."""

    def prepare_create(self, obj: JSON, now: datetime) -> None:
        spec, metadata = obj["spec"], obj["metadata"]
        if spec.get("manualSelector") or not isinstance(spec.get("template"), dict):
            return
        spec["manualSelector"] = False
        template = spec["template"].setdefault("metadata", {})
        identity = {"controller-uid": metadata["uid"], "job-name": metadata["name"]}
        identity |= {f"batch.kubernetes.io/{name}": value for name, value in identity.items()}
        template["labels"] = {**(template.get("labels") or {}), **identity}
        if not metadata.get("labels"):
            metadata["labels"] = {**template["labels"]}
        uid = "batch.kubernetes.io/controller-uid"
        spec["selector"] = {"matchLabels": {uid: metadata["uid"]}}

    def fill_defaults(self, obj: JSON) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("suspend", False)
        if "completions" not in spec and "parallelism" not in spec:
            spec["completions"] = spec["parallelism"] = 1
        failing = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
        limit = 6 if spec.get("backoffLimitPerIndex") is None else 2**31 - 1
        fill(spec, parallelism=1, backoffLimit=limit, completionMode="NonIndexed", podReplacementPolicy=failing)
        _fill_template(spec)

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> Iterable[FieldError]:
        return validate_template((obj.get("spec") or {}).get("template"), "spec.template", *_ENDING)


class CronJobBehaviour(Behaviour):
    """Cron jobs are stored, not run: nobody creates their jobs here unless kube-controller-manager does."""

    def fill_defaults(self, obj: JSON) -> None:
        spec = obj.setdefault("spec", {})
        fill(spec, concurrencyPolicy="Allow", suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
        job = (spec.get("jobTemplate") or {}).get("spec")
        if isinstance(job, dict):
            _fill_template(job)

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> Iterator[FieldError]:
        spec = obj.get("spec") or {}
        schedule = spec.get("schedule", "")
        if not schedule:
            yield required("spec.schedule")
        elif not _SCHEDULE.fullmatch(schedule):
            fields = schedule.split()
            detail = f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
            yield invalid("spec.schedule", schedule, detail)
        if spec.get("concurrencyPolicy") not in _CONCURRENCY:
            yield not_supported("spec.concurrencyPolicy", spec.get("concurrencyPolicy"), sorted(_CONCURRENCY))
        job = (spec.get("jobTemplate") or {}).get("spec") or {}
        yield from validate_template(job.get("template"), "spec.jobTemplate.spec.template", *_ENDING)


_ENDING = ("OnFailure", "Never")  # how pods may be restarted that are to end


_CONCURRENCY = ("Allow", "Forbid", "Replace")
_SCHEDULE = re.compile(r"@(yearly|annually|monthly|weekly|daily|midnight|hourly|every \S+)|\S+( +\S+){4}")


def _fill_template(spec: JSON) -> None:
    template = spec.get("template")
    pod_spec = template.get("spec") if isinstance(template, dict) else None
    if isinstance(pod_spec, dict):
        fill_template_defaults(pod_spec)


class PodTemplateBehaviour(Behaviour):
    """A pod template has the defaults of a pod."""

    def fill_defaults(self, obj: JSON) -> None:
        _fill_template(obj)


class PriorityClassBehaviour(Behaviour):
    """The value of a priority class never changes, and users' values stay below the system's."""

    def fill_defaults(self, obj: JSON) -> None:
        fill(obj, preemptionPolicy="PreemptLowerPriority", value=0)
        if not obj.get("globalDefault"):
            obj.pop("globalDefault", None)

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> Iterator[FieldError]:
        name, value = obj["metadata"].get("name", ""), obj["value"]
        if not isinstance(value, int) or isinstance(value, bool):
            yield invalid("value", value, "must be a whole number")
            return
        if old is None:
            system = name in {"system-node-critical", "system-cluster-critical"}
            if name.startswith("system-") and not system:
                yield forbidden("metadata.name", "priority class names with 'system-' prefix are reserved")
            if value > HIGHEST_USER_PRIORITY and not system:
                detail = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
                yield forbidden("value", detail)
        else:
            if old.get("value") != value:
                yield forbidden("value", "may not be changed in an update.")
            yield from immutable("preemptionPolicy", obj.get("preemptionPolicy"), old.get("preemptionPolicy"))


_RENAMED = (
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
)


class EventBehaviour(Behaviour):
    """An event is in the namespace of what it is about, and says who reports it even if that is nobody."""

    def fill_defaults(self, obj: JSON) -> None:
        fill(obj, reportingComponent="", reportingInstance="")

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> list[FieldError]:
        about = (obj.get("involvedObject") or {}).get("namespace")
        if old is not None or not about or about == obj["metadata"].get("namespace"):
            return []
        return [invalid("involvedObject.namespace", about, "does not match event.namespace")]


def core_event(event: JSON) -> JSON:
    """Return an ``events.k8s.io/v1`` event as a core event."""
    return _renamed(event, {grouped: core for core, grouped in _RENAMED}, "v1")


def grouped_event(event: JSON) -> JSON:
    """Return a core event as an ``events.k8s.io/v1`` event."""
    return _renamed(event, dict(_RENAMED), "events.k8s.io/v1")


def _renamed(event: JSON, names: dict[str, str], api_version: str) -> JSON:
    renamed = {names.get(name, name): value for name, value in event.items()}
    renamed["apiVersion"] = api_version
    return renamed
