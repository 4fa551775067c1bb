"""The rules of a pod that are enforced: what a spec must have, and what may change once the pod exists."""

from collections.abc import Iterator
from typing import Any

from spinney.api.field_error import FieldError, forbidden, invalid, not_supported, required, shown
from spinney.api.pod_rules.pods import RESTART_POLICIES, deadline_faults, pod_faults
from spinney.api.struct import JSON

_IMMUTABLE = (
    "pod updates may only change `spec.containers[*].image`, `spec.initContainers[*].image`,"
    " `spec.activeDeadlineSeconds`, `spec.tolerations` (only additions) and remove `spec.schedulingGates`"
)


def validate_pod(pod: JSON) -> list[FieldError]:
    """Return what is wrong with a new pod."""
    return list(pod_faults(pod.get("spec") or {}))


def validate_template(template: Any, path: str, *policies: str) -> Iterator[FieldError]:
    """Return what is wrong with a template of pods at ``path``; its pods may be restarted by some ``policies`` only."""
    given = template if isinstance(template, dict) else {}
    yield from pod_faults(given.get("spec") or {}, f"{path}.spec", template=True)
    policy = (given.get("spec") or {}).get("restartPolicy") or "Always"
    if policy in RESTART_POLICIES and policy not in policies:
        field = f"{path}.spec.restartPolicy"
        if "Always" in policies:
            yield not_supported(field, policy, policies)
        else:
            yield required(field, f"valid values: {', '.join(map(shown, policies))}")


def _deadline_causes(spec: JSON, old: JSON) -> list[FieldError]:
    """Return what is wrong with the time a pod has; it may only become shorter."""
    if faults := list(deadline_faults(spec, "spec")):
        return faults
    field, seconds, before = (
        "spec.activeDeadlineSeconds",
        spec.get("activeDeadlineSeconds"),
        old.get("activeDeadlineSeconds"),
    )
    if before is None or seconds == before:
        return []
    if seconds is None:
        return [invalid(field, seconds, "must not update from a positive integer to nil value")]
    return [] if seconds < before else [invalid(field, seconds, "must be less than or equal to previous value")]


def validate_pod_update(pod: JSON, old: JSON, subresource: str) -> Iterator[FieldError]:
    """Return what an update changes that it may not."""
    new_spec, old_spec = pod.get("spec") or {}, old.get("spec") or {}
    if new_spec == old_spec:
        return
    for field in ("containers", "initContainers"):
        if subresource != "ephemeralcontainers" and len(new_spec.get(field) or ()) != len(old_spec.get(field) or ()):
            yield forbidden(f"spec.{field}", "pod updates may not add or remove containers")
            return
    yield from _deadline_causes(new_spec, old_spec)
    old_gates = [gate.get("name") for gate in old_spec.get("schedulingGates") or ()]
    for index, gate in enumerate(new_spec.get("schedulingGates") or ()):
        if gate.get("name") not in old_gates:
            detail = f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            yield forbidden(f"spec.schedulingGates[{index}].name", detail)
    new_tolerations = new_spec.get("tolerations") or []
    for toleration in old_spec.get("tolerations") or ():
        if toleration not in new_tolerations:
            yield forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")
            break
    if _fixed_part(new_spec, subresource, gated=bool(old_gates)) != _fixed_part(
        old_spec, subresource, gated=bool(old_gates)
    ):
        yield forbidden("spec", _IMMUTABLE)


def _fixed_part(spec: JSON, subresource: str, *, gated: bool) -> JSON:
    """Return the part of a pod spec that may not change."""
    free = {"activeDeadlineSeconds", "tolerations", "schedulingGates"}
    if subresource == "ephemeralcontainers":
        free |= {"ephemeralContainers"}
    if gated:
        free |= {"nodeSelector", "affinity"}
    fixed = {name: value for name, value in spec.items() if name not in free}
    if fixed.get("terminationGracePeriodSeconds", 0) < 0:
        fixed["terminationGracePeriodSeconds"] = 1
    open_fields = {"image", "resources", "resizePolicy"} if subresource == "resize" else {"image"}
    for containers in ("containers", "initContainers"):
        if containers in fixed:
            fixed[containers] = [
                {name: value for name, value in container.items() if name not in open_fields}
                for container in fixed[containers] or ()
            ]
    return fixed
