"""The rules of a new pod, or of a template of pods: what its spec must have, and what it may not.

They are Kubernetes' own, and stand here once: the embedded server refuses pods by them, and the operator the sets whose
pods would be refused. ``tests/server/refusals.py`` holds them to a real API server. They take a spec whose
values have the types of their fields.
"""

from collections.abc import Iterator
from typing import Final

from spinney.api.field_error import FieldError, invalid, not_supported
from spinney.api.pod_rules.containers import container_faults
from spinney.api.pod_rules.placement import TOLERATION_OPERATORS, host_name_faults, placement_faults
from spinney.api.pod_rules.volumes import claim_faults, volume_faults
from spinney.api.struct import JSON

RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_CHOICES: Final = {
    "restartPolicy": RESTART_POLICIES,
    "dnsPolicy": ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"),
    "preemptionPolicy": ("PreemptLowerPriority", "Never"),
}
_LONGEST: Final = 2**31 - 1  # seconds


def pod_faults(
    spec: JSON, path: str = "spec", *, template: bool = False, operators: tuple[str, ...] = TOLERATION_OPERATORS
) -> Iterator[FieldError]:
    """Yield what is wrong with a pod spec that stands at ``path``; its tolerations may use ``operators``."""
    yield from container_faults(spec, path, template=template)
    for name, supported in _CHOICES.items():
        if spec.get(name) and spec[name] not in supported:
            yield not_supported(f"{path}.{name}", spec[name], supported)
    yield from deadline_faults(spec, path)
    yield from volume_faults(spec, path)
    yield from claim_faults(spec, path)
    yield from host_name_faults(spec, path)
    yield from placement_faults(spec, path, operators)


def deadline_faults(spec: JSON, path: str) -> Iterator[FieldError]:
    """Yield what is wrong with the time a pod has."""
    seconds = spec.get("activeDeadlineSeconds")
    if seconds is not None and not 1 <= seconds <= _LONGEST:
        yield invalid(f"{path}.activeDeadlineSeconds", seconds, f"must be between 1 and {_LONGEST}, inclusive")
