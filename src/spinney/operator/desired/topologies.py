"""Topology constraints: from the domains a user names (``rack``) to the node labels a scheduler reads.

A required domain that cannot be translated, because the ClusterTopologyBinding or the level is missing, is *held*: its
gang's pods stay gated and the reason is shown. Running them anywhere would silently break the one thing that was
required. A preferred domain that cannot be translated is dropped; preference is all it was.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from spinney.api.grove import PodCliqueSet
from spinney.api.podgang import GangTopologyConstraint, TopologyPackConstraint
from spinney.api.topology_binding import ClusterTopologyBinding
from spinney.api.topology_constraint import TopologyConstraint


@dataclass(frozen=True)
class Untranslatable:
    """A required domain for which no node label is known."""

    domain: str
    reason: str


@dataclass(frozen=True)
class SetTopology:
    """The topology in force for one PodCliqueSet: the name of its binding and, if that exists, its levels."""

    enabled: bool = False
    name: str | None = None
    binding: ClusterTopologyBinding | None = None

    def key(self, domain: str) -> str | None:
        """Return the node label of a domain, broad levels first."""
        levels = self.binding.spec.levels if self.binding is not None else ()
        return next((level.key for level in levels if level.domain == domain), None)

    def translate(
        self, constraint: TopologyConstraint | None
    ) -> tuple[GangTopologyConstraint | None, Untranslatable | None]:
        """Return the constraint in node labels, and the required domain that could not be translated."""
        if not self.enabled or constraint is None:
            return None, None
        required, preferred = constraint.required, constraint.preferred
        required_key = self.key(required) if required else None
        preferred_key = self.key(preferred) if preferred else None
        held = Untranslatable(required, self._why(required)) if required and required_key is None else None
        if required_key is None and preferred_key is None:
            return None, held
        return GangTopologyConstraint(
            pack_constraint=TopologyPackConstraint(required=required_key, preferred=preferred_key)
        ), held

    def _why(self, domain: str) -> str:
        if self.name is None:
            return f"domain {domain!r} is required, and no level of the PodCliqueSet names a topology"
        if self.binding is None:
            return f"domain {domain!r} is required, and ClusterTopologyBinding {self.name!r} does not exist"
        known = ", ".join(level.domain for level in self.binding.spec.levels)
        return f"domain {domain!r} is required, and ClusterTopologyBinding {self.name!r} only has {known}"


def constraints(pcs: PodCliqueSet) -> Iterator[TopologyConstraint]:
    """Yield every constraint of a PodCliqueSet: its own, its scaling groups', its cliques'."""
    template = pcs.spec.template
    of_groups = [group.topology_constraint for group in template.pod_clique_scaling_groups]
    of_cliques = [clique.topology_constraint for clique in template.cliques]
    yield from (each for each in (template.topology_constraint, *of_groups, *of_cliques) if each is not None)


def topology_name(pcs: PodCliqueSet) -> str | None:
    """Return the one topology a PodCliqueSet uses; admission has seen to it that there is only one."""
    return next((each.topology_name for each in constraints(pcs) if each.topology_name), None)


def domains(pcs: PodCliqueSet) -> list[str]:
    """Return every domain the PodCliqueSet speaks of, in order of first mention."""
    found: dict[str, None] = {}
    for constraint in constraints(pcs):
        for domain in (constraint.required, constraint.preferred):
            if domain:
                found.setdefault(domain)
    return list(found)
