"""The rules of pods, put together for the registry."""

from collections.abc import Collection, Iterable
from datetime import datetime

from spinney.api.field_error import FieldError
from spinney.api.pod_rules.defaults import fill_pod_defaults, first_status
from spinney.api.struct import JSON
from spinney.server.kinds.kind import Behaviour
from spinney.server.pods.validation import validate_pod, validate_pod_update

_TIMES = ("lastProbeTime", "lastTransitionTime")  # which a condition always has, be it null
_GANG_FIELDS = ("schedulingGroup", "workloadRef")


class PodBehaviour(Behaviour):
    """Pods; ``gang_fields`` are the native gang fields this server keeps, others are dropped as Kubernetes does."""

    def __init__(self, gang_fields: Collection[str] = ("schedulingGroup",)) -> None:
        self._dropped = [name for name in _GANG_FIELDS if name not in gang_fields]

    def fill_defaults(self, obj: JSON) -> None:
        spec = obj.get("spec")
        if isinstance(spec, dict):
            for name in self._dropped:
                spec.pop(name, None)
            fill_pod_defaults(spec)
        for condition in (obj.get("status") or {}).get("conditions") or ():
            for name in _TIMES:
                condition.setdefault(name, None)

    def prepare_create(self, obj: JSON, now: datetime) -> None:
        spec = obj.get("spec") or {}
        if spec.get("terminationGracePeriodSeconds", 0) < 0:
            spec["terminationGracePeriodSeconds"] = 1
        obj["status"] = first_status(obj.get("spec") or {}, now)

    def prepare_update(self, obj: JSON, old: JSON, subresource: str) -> None:
        if subresource == "status" and "qosClass" in (old.get("status") or {}):
            obj.setdefault("status", {})["qosClass"] = old["status"]["qosClass"]

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> Iterable[FieldError]:
        if old is None:
            return validate_pod(obj)
        if subresource in {"", "resize", "ephemeralcontainers"}:
            return validate_pod_update(obj, old, subresource)
        return []
