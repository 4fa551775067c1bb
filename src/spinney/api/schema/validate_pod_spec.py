"""Rules for the pod spec of a clique, which is carried as JSON: only what Grove cares about is looked at."""

from typing import Any

from spinney.api.names import env_name_faults
from spinney.api.schema.field_error import FieldError, FieldPath, duplicate, invalid, required
from spinney.api.struct import JSON


def validate_pod_spec(pod_spec: JSON, path: FieldPath, *, creating: bool) -> list[FieldError]:
    """Check a pod spec; placement fields that the gang decides are refused when the object is created."""
    errors = []
    if creating:
        if pod_spec.get("topologySpreadConstraints"):
            errors.append(
                invalid(
                    path.child("topologySpreadConstraints"),
                    pod_spec["topologySpreadConstraints"],
                    "must not be set: use topologyConstraint",
                )
            )
        if pod_spec.get("nodeName"):
            errors.append(
                invalid(path.child("nodeName"), pod_spec["nodeName"], "must not be set: the scheduler places the gang")
            )
    for kind in ("initContainers", "containers"):
        for i, container in enumerate(_objects(pod_spec.get(kind))):
            errors += _environment(container, path.child(kind).index(i).child("env"))
    return errors


def scheduler_name(pod_spec: JSON) -> str:
    """Return the scheduler a pod spec names; empty when it leaves that to the default."""
    name = pod_spec.get("schedulerName")
    return name if isinstance(name, str) else ""


def _environment(container: JSON, path: FieldPath) -> list[FieldError]:
    errors = []
    seen: set[str] = set()
    for i, variable in enumerate(_objects(container.get("env"))):
        where = path.index(i).child("name")
        name = variable.get("name")
        if not isinstance(name, str) or not name:
            errors.append(required(where, "an environment variable needs a name"))
            continue
        errors += [invalid(where, name, fault) for fault in env_name_faults(name)]
        if name in seen:
            errors.append(duplicate(where, name))
        seen.add(name)
    return errors


def _objects(items: Any) -> list[JSON]:
    """Return the items of a JSON list as objects, an item that is none as an empty one, so that positions hold."""
    if not isinstance(items, list):
        return []
    return [item if isinstance(item, dict) else {} for item in items]
