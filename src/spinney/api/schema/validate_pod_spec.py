"""Rules for the pod spec of a clique, which is carried as JSON: Grove's own, and those the API server has for pods."""

from collections.abc import Iterator
from typing import Final

from spinney.api.builtin_fields.misfits import fitting
from spinney.api.builtin_fields.table import field_table
from spinney.api.field_error import FieldError, FieldPath, duplicate, invalid
from spinney.api.pod_rules.placement import COMPARING_OPERATORS, TOLERATION_OPERATORS
from spinney.api.pod_rules.pods import pod_faults
from spinney.api.schema.validate_carried import NEWEST
from spinney.api.struct import JSON, objects

RESTART_ALWAYS: Final = "Always"
_PLACED: Final = {
    "topologySpreadConstraints": "use topologyConstraint",
    "nodeName": "the scheduler places the gang",
}
_OPERATORS: Final = (*TOLERATION_OPERATORS, *COMPARING_OPERATORS)  # the cluster may know all of them


def validate_pod_spec(pod_spec: JSON, path: FieldPath, *, former: JSON | None) -> Iterator[FieldError]:
    """Check a pod spec, as created or as an update of ``former``.

    Placement fields that the gang decides are refused on creation. A spec that an update leaves alone is only held to
    Grove's own rules, so that one from before the others can still be scaled.
    """
    yield from _environment(pod_spec, path)
    if former is None:
        yield from _placement(pod_spec, path)
        pod_spec = {name: value for name, value in pod_spec.items() if name not in _PLACED}
    if pod_spec != former:
        told: dict[str, FieldError] = {}  # of each field the first fault: one is enough to find it
        for fault in pod_faults(_typed(pod_spec), str(path), operators=_OPERATORS):
            told.setdefault(fault.path, fault)
        yield from told.values()


def pod_spec_warnings(pod_spec: JSON, path: FieldPath) -> Iterator[str]:
    """Return what is accepted and probably not meant: containers that stay down once they end, gates without effect."""
    policy = pod_spec.get("restartPolicy")
    if policy not in (None, "", RESTART_ALWAYS):
        where = path.child("restartPolicy")
        yield f"{where}: {policy!r} is kept: a pod that ends is lost to its gang, not restarted"
    if pod_spec.get("schedulingGates"):
        where = path.child("schedulingGates")
        yield f"{where} has no effect: pods are created with the gate of their gang and no other"


def scheduler_name(pod_spec: JSON) -> str:
    """Return the scheduler a pod spec names; empty when it leaves that to the default."""
    name = pod_spec.get("schedulerName")
    return name if isinstance(name, str) else ""


def _placement(pod_spec: JSON, path: FieldPath) -> Iterator[FieldError]:
    for name, why in _PLACED.items():
        if pod_spec.get(name):
            yield invalid(path.child(name), pod_spec[name], f"must not be set: {why}")


def _environment(pod_spec: JSON, path: FieldPath) -> Iterator[FieldError]:
    """Yield variables that a container has twice, which Kubernetes allows and Grove does not."""
    for kind in ("initContainers", "containers"):
        for i, container in enumerate(objects(pod_spec.get(kind))):
            seen: set[str] = set()
            for k, name in enumerate(each.get("name") for each in objects(container.get("env"))):
                if name in seen:
                    yield duplicate(path.child(kind).index(i).child("env").index(k).child("name"), name)
                if isinstance(name, str) and name:
                    seen.add(name)


def _typed(pod_spec: JSON) -> JSON:
    """Return a pod spec as the API server reads it, without values of the wrong type: those are told as such."""
    table = field_table(NEWEST)
    pod = table.kind("v1", "Pod")
    assert pod is not None, "the table of fields has Pod"
    return fitting(table, pod.by_name["spec"].type, pod_spec) or {}
