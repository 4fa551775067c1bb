"""Rules for the pod spec of a clique, which is carried as JSON: Grove's own, and those the API server has for pods."""

from collections.abc import Iterator
from typing import Any, Final

from spinney.api.names import dns_label_faults
from spinney.api.schema.field_error import FieldError, FieldPath, forbidden, invalid
from spinney.api.schema.validate_containers import (
    not_a_list,
    objects,
    one_of,
    unique_name,
    validate_containers,
    validate_environment,
)
from spinney.api.struct import JSON

RESTART_ALWAYS: Final = "Always"
_CHOICES: Final = (
    ("restartPolicy", (RESTART_ALWAYS, "OnFailure", "Never")),
    ("dnsPolicy", ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")),
    ("preemptionPolicy", ("PreemptLowerPriority", "Never")),
)
_OPERATORS: Final = ("Equal", "Exists", "Lt", "Gt")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_LONGEST: Final = 2**31 - 1  # seconds


def validate_pod_spec(pod_spec: JSON, path: FieldPath, *, former: JSON | None) -> list[FieldError]:
    """Check a pod spec, as created or as an update of ``former``.

    Placement fields that the gang decides are refused on creation. A spec that an update leaves alone is only held to
    Grove's own rules, so that one from before the others can still be scaled.
    """
    errors = [] if former is not None else list(_placement(pod_spec, path))
    if pod_spec == former:
        for kind in ("initContainers", "containers"):
            for i, container in enumerate(objects(pod_spec.get(kind))):
                errors += validate_environment(container, path.child(kind).index(i).child("env"))
        return errors
    return errors + list(_as_a_pod(pod_spec, path))


def pod_spec_warnings(pod_spec: JSON, path: FieldPath) -> list[str]:
    """Return what is accepted and probably not meant: containers that stay down once they end, gates without effect."""
    warnings = []
    policy = pod_spec.get("restartPolicy")
    if policy not in (None, "", RESTART_ALWAYS):
        where = path.child("restartPolicy")
        warnings.append(f"{where}: {policy!r} is kept: a pod that ends is lost to its gang, not restarted")
    if pod_spec.get("schedulingGates"):
        where = path.child("schedulingGates")
        warnings.append(f"{where} has no effect: pods are created with the gate of their gang and no other")
    return warnings


def scheduler_name(pod_spec: JSON) -> str:
    """Return the scheduler a pod spec names; empty when it leaves that to the default."""
    name = pod_spec.get("schedulerName")
    return name if isinstance(name, str) else ""


def _placement(pod_spec: JSON, path: FieldPath) -> Iterator[FieldError]:
    spread, node = pod_spec.get("topologySpreadConstraints"), pod_spec.get("nodeName")
    if spread:
        yield invalid(path.child("topologySpreadConstraints"), spread, "must not be set: use topologyConstraint")
    if node:
        yield invalid(path.child("nodeName"), node, "must not be set: the scheduler places the gang")


def _as_a_pod(pod_spec: JSON, path: FieldPath) -> Iterator[FieldError]:
    yield from not_a_list(pod_spec.get("volumes"), path.child("volumes"))
    volumes: set[str] = set()
    for i, volume in enumerate(objects(pod_spec.get("volumes"))):
        yield from unique_name(volume, path.child("volumes").index(i).child("name"), volumes, dns_label_faults)
    yield from validate_containers(pod_spec, path, volumes=sorted(volumes))
    for name, supported in _CHOICES:
        yield from one_of(pod_spec.get(name), path.child(name), supported)
    scheduler = pod_spec.get("schedulerName")
    if scheduler is not None and not isinstance(scheduler, str):
        yield invalid(path.child("schedulerName"), scheduler, "must be text")
    deadline = pod_spec.get("activeDeadlineSeconds")
    if deadline is not None and not (_is_whole(deadline) and 1 <= deadline <= _LONGEST):
        yield invalid(path.child("activeDeadlineSeconds"), deadline, f"must be a number from 1 to {_LONGEST}")
    grace = pod_spec.get("terminationGracePeriodSeconds")
    if grace is not None and not _is_whole(grace):
        yield invalid(path.child("terminationGracePeriodSeconds"), grace, "must be a whole number of seconds")
    if pod_spec.get("ephemeralContainers"):
        yield forbidden(path.child("ephemeralContainers"), "a pod is not created with ephemeral containers")
    yield from _tolerations(pod_spec, path.child("tolerations"))


def _tolerations(pod_spec: JSON, path: FieldPath) -> Iterator[FieldError]:
    yield from not_a_list(pod_spec.get("tolerations"), path)
    for i, toleration in enumerate(objects(pod_spec.get("tolerations"))):
        here, operator = path.index(i), toleration.get("operator")
        yield from one_of(operator, here.child("operator"), _OPERATORS)
        yield from one_of(toleration.get("effect"), here.child("effect"), _EFFECTS)
        if not toleration.get("key") and operator != "Exists":
            yield invalid(here.child("operator"), operator, "must be Exists where no key is named")
        if operator == "Exists" and toleration.get("value"):
            yield invalid(here.child("operator"), toleration["value"], "a value must not be set with Exists")
        if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
            yield invalid(here.child("effect"), toleration.get("effect"), "must be NoExecute for tolerationSeconds")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
