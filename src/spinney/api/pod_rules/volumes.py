"""The rules of what a pod brings for its containers: volumes and claims for devices."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from spinney.api.field_error import FieldError, duplicate, forbidden, invalid, required
from spinney.api.names import dns_label_faults, dns_subdomain_faults
from spinney.api.struct import JSON, objects

_NAMED_BY: Final[Mapping[str, str]] = {  # the field without which a source says nothing
    "configMap": "name",
    "secret": "secretName",
    "hostPath": "path",
    "persistentVolumeClaim": "claimName",
}
_name_faults = lru_cache(maxsize=4096)(dns_label_faults)
_CLAIM_SOURCES: Final = ("resourceClaimName", "resourceClaimTemplateName")


def volume_faults(spec: JSON, path: str) -> Iterator[FieldError]:
    """Yield what is wrong with the volumes of a pod spec at ``path``."""
    seen: set[str] = set()
    for index, volume in enumerate(objects(spec.get("volumes"))):
        where = f"{path}.volumes[{index}]"
        yield from _named(f"{where}.name", volume.get("name"), seen)
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
        yield from _named(f"{where}.name", claim.get("name"), seen)
        given = [field for field in _CLAIM_SOURCES if claim.get(field) is not None]
        if len(given) != 1:
            detail = f"must specify exactly one of {' and '.join(_CLAIM_SOURCES)}"
            yield invalid(where, claim, detail)
        for field in given:
            faults = dns_subdomain_faults(claim[field])
            yield from (invalid(f"{where}.{field}", claim[field], fault) for fault in faults)


def _named(path: str, name: str | None, seen: set[str]) -> Iterator[FieldError]:
    if not name:
        yield required(path)
    elif faults := _name_faults(name):
        yield from (invalid(path, name, fault) for fault in faults)
    elif name in seen:
        yield duplicate(path, name)
    else:
        seen.add(name)
