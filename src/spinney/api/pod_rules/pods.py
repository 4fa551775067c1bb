"""The rules of a new pod, or of a template of pods: what its spec must have, and what it may not.

They are Kubernetes' own, and stand here once: the embedded server refuses pods by them, and the operator the sets whose
pods would be refused. ``tests/server/refusals.py`` holds them to a real API server. They take a spec whose
values have the types of their fields.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from spinney.api.field_error import FieldError, forbidden, invalid, not_supported, required
from spinney.api.names import dns_subdomain_faults
from spinney.api.pod_rules.containers import container_faults, own_name_faults
from spinney.api.pod_rules.placement import TOLERATION_OPERATORS, host_name_faults, placement_faults
from spinney.api.struct import JSON, objects

_NAMED_BY: Final[Mapping[str, str]] = {  # the field without which a source says nothing
    "configMap": "name",
    "secret": "secretName",
    "hostPath": "path",
    "persistentVolumeClaim": "claimName",
}
_CLAIM_SOURCES: Final = ("resourceClaimName", "resourceClaimTemplateName")


def volume_faults(spec: JSON, path: str) -> Iterator[FieldError]:
    """Yield what is wrong with the volumes of a pod spec at ``path``."""
    seen: set[str] = set()
    for index, volume in enumerate(objects(spec.get("volumes"))):
        where = f"{path}.volumes[{index}]"
        yield from own_name_faults(f"{where}.name", volume.get("name"), seen)
        sources = sorted(name for name in volume if name != "name")
        for name in sources[1:]:
            yield forbidden(f"{where}.{name}", "may not specify more than 1 volume type")
        for name in sources[:1]:
            needed = _NAMED_BY.get(name)
            if needed and not (volume[name] or {}).get(needed):
                yield required(f"{where}.{name}.{needed}")


def claim_faults(spec: JSON, path: str) -> Iterator[FieldError]:
    """Yield what is wrong with the claims for devices of a pod spec at ``path``."""
    seen: set[str] = set()
    for index, claim in enumerate(objects(spec.get("resourceClaims"))):
        where = f"{path}.resourceClaims[{index}]"
        yield from own_name_faults(f"{where}.name", claim.get("name"), seen)
        given = [field for field in _CLAIM_SOURCES if claim.get(field) is not None]
        if len(given) != 1:
            detail = f"must specify exactly one of {' and '.join(_CLAIM_SOURCES)}"
            yield invalid(where, claim, detail)
        for field in given:
            faults = dns_subdomain_faults(claim[field])
            yield from (invalid(f"{where}.{field}", claim[field], fault) for fault in faults)


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
