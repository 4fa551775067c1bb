"""Validation of a ClusterTopologyBinding.

Grove names a fault of ``spec.schedulerTopologyBindings`` by what the field was called before. People who look for that
path, or programs that match it, find it in the message; the path is where the fault is.
"""

from collections.abc import Collection, Iterator
from typing import Final

from spinney.api.field_error import FieldError, FieldPath, duplicate, invalid, required
from spinney.api.names import qualified_name_faults
from spinney.api.schema.validate_metadata import validate_metadata
from spinney.api.schema.validate_topology import domain_faults
from spinney.api.topology_binding import ClusterTopologyBinding

_FORMER_PATH: Final = "spec.schedulerTopologyReferences"


def validate_topology_binding(
    binding: ClusterTopologyBinding, *, schedulers: Collection[str], topology_aware: Collection[str]
) -> list[FieldError]:
    """Return every fault of ``binding``, given the enabled schedulers and those of them that know topologies."""
    return [
        *validate_metadata(binding.metadata),
        *_levels(binding, FieldPath("spec.levels")),
        *_bindings(binding, FieldPath("spec.schedulerTopologyBindings"), schedulers, topology_aware),
    ]


def _levels(binding: ClusterTopologyBinding, path: FieldPath) -> Iterator[FieldError]:
    if not binding.spec.levels:
        yield required(path, "at least one level is needed")
        return
    domains: set[str] = set()
    keys: set[str] = set()
    for i, level in enumerate(binding.spec.levels):
        here = path.index(i)
        if misnamed := domain_faults(level.domain, here.child("domain")):
            yield from misnamed
        elif level.domain in domains:
            yield duplicate(here.child("domain"), level.domain)
        faults = qualified_name_faults(level.key)
        yield from (invalid(here.child("key"), level.key, fault) for fault in faults)
        if not faults and level.key in keys:
            yield duplicate(here.child("key"), level.key)
        domains.add(level.domain)
        keys.add(level.key)


def _bindings(
    binding: ClusterTopologyBinding, path: FieldPath, schedulers: Collection[str], topology_aware: Collection[str]
) -> Iterator[FieldError]:
    seen: set[str] = set()
    for i, each in enumerate(binding.spec.scheduler_topology_bindings):
        where, name = path.index(i).child("schedulerName"), each.scheduler_name
        formerly = f"(in Grove {_FORMER_PATH}[{i}].schedulerName)"
        if name in seen:
            yield duplicate(where, name, f"a scheduler is bound once {formerly}")
        elif name not in schedulers:
            enabled = ", ".join(schedulers)
            yield invalid(where, name, f"is not an enabled scheduler; enabled are: {enabled} {formerly}")
        elif name not in topology_aware:
            yield invalid(where, name, f"is enabled but manages no topology {formerly}")
        seen.add(name)
