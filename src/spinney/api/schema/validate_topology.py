"""Rules for the topology constraints of a PodCliqueSet.

A constraint may stand on the set, on a scaling group and on a clique. Each is looked at with the topology name it
inherits, and compared with the constraint that encloses it: what is inside may be packed as tightly as what is around
it or tighter, never looser.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from spinney.api.field_error import FieldError, FieldPath, forbidden, invalid, required
from spinney.api.grove import PodCliqueSetTemplateSpec
from spinney.api.topology_binding import ClusterTopologyBinding
from spinney.api.topology_constraint import DOMAIN_PATTERN, TopologyConstraint

_DOMAIN: Final = re.compile(DOMAIN_PATTERN)
_MAX_DOMAIN: Final = 63


@dataclass(frozen=True, slots=True)
class PlacedConstraint:
    """A constraint, where it stands, what encloses it and the topology name it inherits."""

    key: tuple[str, str]  # level and name, which an update cannot change
    path: FieldPath
    constraint: TopologyConstraint
    around: tuple["PlacedConstraint", ...]

    @property
    def topology_name(self) -> str | None:
        """Return the own topology name, else that of the nearest constraint around."""
        if self.constraint.topology_name:
            return self.constraint.topology_name
        return next((outer.topology_name for outer in self.around if outer.topology_name), None)

    @property
    def required_path(self) -> FieldPath:
        """Return the path of the required domain, in the spelling used."""
        pack = self.constraint.pack
        return self.path.child("pack", "required") if pack and pack.required else self.path.child("packDomain")


def constraints(template: PodCliqueSetTemplateSpec, path: FieldPath) -> list[PlacedConstraint]:
    """Return every topology constraint of a set, outer ones first."""
    return list(_placed(template, path))


def validate_shape(placed: Sequence[PlacedConstraint], *, creating: bool) -> Iterator[FieldError]:
    """Check what holds for a constraint on its own; the CRD's rules say the same where CEL is evaluated."""
    for each in placed:
        pack, domain, path = each.constraint.pack, each.constraint.pack_domain, each.path
        if pack is None and domain is None:
            yield required(path.child("pack"), "a topology constraint must say how to pack")
        if pack is not None and pack.required is None and pack.preferred is None:
            yield required(path.child("pack"), "pack must set required or preferred")
        if domain is not None and creating:
            yield forbidden(path.child("packDomain"), "packDomain is deprecated: set pack.required")
        elif domain is not None and pack is not None and pack.required is not None:
            yield invalid(path.child("packDomain"), domain, "must not be set together with pack.required")
        for where, name in _domains(each):
            yield from domain_faults(name, where)


def domain_faults(name: str, path: FieldPath) -> list[FieldError]:
    """Check the name of a topology domain."""
    if len(name) <= _MAX_DOMAIN and _DOMAIN.fullmatch(name):
        return []
    return [invalid(path, name, f"must match {DOMAIN_PATTERN} and have 1 to {_MAX_DOMAIN} characters")]


def validate_domains(
    placed: Sequence[PlacedConstraint], bindings: Mapping[str, ClusterTopologyBinding]
) -> Iterator[FieldError]:
    """Check constraints against the topology they name: it exists, has the domains, and inner packs no looser."""
    named: list[PlacedConstraint] = []
    for each in placed:
        where = each.path.child("topologyName")
        name = each.topology_name
        if name is None:
            yield required(where, "name the ClusterTopologyBinding here or on a level around")
            continue
        first = named[0].topology_name if named else name
        if name != first:
            yield invalid(where, name, f"must be {first!r}, the topology of the rest of this PodCliqueSet")
        elif name not in bindings:
            yield invalid(where, name, "no such ClusterTopologyBinding")
        named.append(each)
    for each in named:
        binding = bindings.get(each.topology_name or "")
        if binding is not None:
            order = {level.domain: i for i, level in enumerate(binding.spec.levels)}
            yield from _unknown_domains(each, order)
            yield from _looser(each, order)


def topology_warnings(
    placed: Sequence[PlacedConstraint], bindings: Mapping[str, ClusterTopologyBinding]
) -> Iterator[str]:
    """Return what is allowed but probably not meant."""
    for each in placed:
        if each.constraint.pack_domain is not None:
            yield f"{each.path.child('packDomain')} is deprecated: use pack.required"
        binding = bindings.get(each.topology_name or "")
        wanted, preferred = each.constraint.required, each.constraint.preferred
        if binding is None or wanted is None or preferred is None:
            continue
        order = [level.domain for level in binding.spec.levels]
        if wanted in order and preferred in order and order.index(preferred) < order.index(wanted):
            where = each.path.child("pack", "preferred")
            yield f"{where}: {preferred!r} is broader than the required {wanted!r} and has no effect"


def validate_topology_update(new: Sequence[PlacedConstraint], old: Sequence[PlacedConstraint]) -> Iterator[FieldError]:
    """Check that constraints stay as they are, but for two repairs of constraints written with ``packDomain``.

    It may be respelled as the identical ``pack.required``, and a missing topology name may be added to it.
    """
    before = {each.key: each for each in old}
    for each in new:
        earlier = before.pop(each.key, None)
        if earlier is None:
            yield forbidden(each.path, "a topology constraint cannot be added to an existing PodCliqueSet")
        elif _meaning(each) != _meaning(earlier):
            yield forbidden(each.path, "a topology constraint cannot be changed")
        elif each.constraint.topology_name != earlier.constraint.topology_name and not _repairs(each, earlier):
            yield forbidden(each.path.child("topologyName"), "the topology cannot be changed")
    yield from (
        forbidden(gone.path, "a topology constraint cannot be removed from an existing PodCliqueSet")
        for gone in before.values()
    )


def repaired(new: Sequence[PlacedConstraint], old: Sequence[PlacedConstraint]) -> bool:
    """Tell whether an update adds a missing topology name, so that domains must be checked as on creation."""
    before = {each.key: each for each in old}
    return any(each.key in before and _repairs(each, before[each.key]) for each in new)


def _placed(template: PodCliqueSetTemplateSpec, path: FieldPath) -> Iterator[PlacedConstraint]:
    whole: tuple[PlacedConstraint, ...] = ()
    if template.topology_constraint is not None:
        whole = (PlacedConstraint(("set", ""), path.child("topologyConstraint"), template.topology_constraint, ()),)
        yield from whole
    around: dict[str, tuple[PlacedConstraint, ...]] = {}
    for i, group in enumerate(template.pod_clique_scaling_groups):
        outer = whole
        if group.topology_constraint is not None:
            where = path.child("podCliqueScalingGroups").index(i).child("topologyConstraint")
            inner = PlacedConstraint(("group", group.name), where, group.topology_constraint, whole)
            yield inner
            outer = (inner, *whole)
        around.update(dict.fromkeys(group.clique_names, outer))
    for i, clique in enumerate(template.cliques):
        if clique.topology_constraint is not None:
            where = path.child("cliques").index(i).child("topologyConstraint")
            yield PlacedConstraint(
                ("clique", clique.name), where, clique.topology_constraint, around.get(clique.name, whole)
            )


def _domains(each: PlacedConstraint) -> list[tuple[FieldPath, str]]:
    pack = each.constraint.pack
    found = [
        (each.path.child("pack", "required"), pack.required if pack else None),
        (each.path.child("pack", "preferred"), pack.preferred if pack else None),
        (each.path.child("packDomain"), each.constraint.pack_domain),
    ]
    return [(path, name) for path, name in found if name is not None]


def _unknown_domains(each: PlacedConstraint, order: Mapping[str, int]) -> list[FieldError]:
    listed = ", ".join(order)
    return [
        invalid(path, name, f"no such domain in {each.topology_name!r}; it has, broad to narrow: {listed}")
        for path, name in _domains(each)
        if name not in order
    ]


def _looser(each: PlacedConstraint, order: Mapping[str, int]) -> Iterator[FieldError]:
    """Compare with every constraint around, for required and preferred domains separately."""
    kinds: list[tuple[Callable[[TopologyConstraint], str | None], FieldPath]] = [
        (lambda constraint: constraint.required, each.required_path),
        (lambda constraint: constraint.preferred, each.path.child("pack", "preferred")),
    ]
    for domain_of, path in kinds:
        inner = domain_of(each.constraint)
        for outer in each.around:
            enclosing = domain_of(outer.constraint)
            if inner is None or enclosing is None or inner not in order or enclosing not in order:
                continue
            if order[enclosing] > order[inner]:
                yield invalid(path, inner, f"must not be broader than {enclosing!r} at {outer.path}")


def _meaning(each: PlacedConstraint) -> tuple[str | None, str | None]:
    return each.constraint.required, each.constraint.preferred


def _repairs(new: PlacedConstraint, old: PlacedConstraint) -> bool:
    return (
        old.constraint.pack_domain is not None
        and not old.constraint.topology_name
        and bool(new.constraint.topology_name)
    )
