"""Where every PodClique of a PodCliqueSet stands: its replica, its scaling group, its template, its gang.

A :class:`CliquePlace` is computed from the PodCliqueSet downwards and never parsed out of a name, so cliques whose
names overlap cannot be taken for one another.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from spinney.api import labels as marks
from spinney.api.grove import PodCliqueScalingGroupConfig, PodCliqueSet, PodCliqueTemplateSpec
from spinney.operator.desired import names
from spinney.operator.desired.hashes import TemplateHashes, template_hashes


@dataclass(frozen=True)
class GroupPlace:
    """Where one replica of a scaling group stands."""

    config: PodCliqueScalingGroupConfig
    scaling_group: str
    replica: int

    @property
    def stem(self) -> str:
        """Return the common prefix of the PodCliques of this replica."""
        return names.scaling_group_replica(self.scaling_group, self.replica)


@dataclass(frozen=True)
class CliquePlace:
    """Where one PodClique stands."""

    pcs: str
    replica: int
    template: PodCliqueTemplateSpec
    group: GroupPlace | None = None

    @cached_property
    def name(self) -> str:
        """Return the PodClique's name."""
        if self.group is None:
            return names.standalone_clique(self.pcs, self.replica, self.template.name)
        return names.member_clique(self.group.scaling_group, self.group.replica, self.template.name)

    @property
    def gang(self) -> str:
        """Return the gang that holds the PodClique's pods."""
        if self.group is None:
            return names.base_gang(self.pcs, self.replica)
        group, minimum = self.group, self.group.config.minimum
        return names.member_gang(self.pcs, self.replica, group.scaling_group, group.replica, minimum)

    @property
    def base_gang(self) -> str | None:
        """Return the gang that must be scheduled first; ``None`` inside that gang itself."""
        base = names.base_gang(self.pcs, self.replica)
        return None if self.group is None or self.group.replica < self.group.config.minimum else base

    @property
    def minimum(self) -> int:
        """Return how many pods of the clique its gang cannot do without."""
        return self.template.spec.minimum


class Layout:
    """The places of one PodCliqueSet. A read-only view on it that remembers what it worked out."""

    def __init__(self, pcs: PodCliqueSet) -> None:
        self.pcs = pcs
        self.name = pcs.metadata.name
        self._standalone: dict[int, list[CliquePlace]] = {}

    def of_version(self, pcs: PodCliqueSet) -> "Layout":
        """Return the layout of another version of the set; where only its status differs nothing is worked out anew."""
        other = Layout(pcs)
        if _laid_out(pcs) == _laid_out(self.pcs):
            vars(other).update({**vars(self), "pcs": pcs})
        return other

    @cached_property
    def templates(self) -> Mapping[str, PodCliqueTemplateSpec]:
        """Return the clique templates by name."""
        return {template.name: template for template in self.pcs.spec.template.cliques}

    @cached_property
    def group_configs(self) -> Mapping[str, PodCliqueScalingGroupConfig]:
        """Return the scaling group configurations by name, in order."""
        return {group.name: group for group in self.pcs.spec.template.pod_clique_scaling_groups}

    @cached_property
    def groups_of_cliques(self) -> Mapping[str, str]:
        """Return the scaling group of each clique that is in one."""
        return {clique: group.name for group in self.group_configs.values() for clique in group.clique_names}

    @cached_property
    def hashes(self) -> TemplateHashes:
        """Return the hashes of the templates in force."""
        return template_hashes(self.pcs)

    @property
    def replicas(self) -> int:
        """Return how many replicas the set is to have."""
        return self.pcs.spec.replicas or 0

    def standalone(self, i: int) -> list[CliquePlace]:
        """Return the PodCliques of a replica that are in no scaling group, in template order."""
        if i not in self._standalone:
            self._standalone[i] = [
                CliquePlace(self.name, i, template)
                for template in self.pcs.spec.template.cliques
                if template.name not in self.groups_of_cliques
            ]
        return self._standalone[i]

    def members(self, i: int, group: str, j: int) -> list[CliquePlace]:
        """Return the PodCliques of one scaling group replica, in the group's order."""
        config = self.group_configs[group]
        where = GroupPlace(config, names.scaling_group(self.name, i, group), j)
        return [CliquePlace(self.name, i, self.templates[clique], where) for clique in config.clique_names]

    def base(self, i: int) -> list[CliquePlace]:
        """Return the PodCliques of a replica's base gang: the standalone ones, then each group's minimum."""
        return self.standalone(i) + [
            place
            for name, config in self.group_configs.items()
            for j in range(config.minimum)
            for place in self.members(i, name, j)
        ]

    def place(self, clique_name: str, labels: Mapping[str, str]) -> CliquePlace | None:
        """Return the place of an existing PodClique; ``None`` when the set has no such template or group."""
        template = names.template_name(clique_name, labels)
        i = int(labels[marks.REPLICA_INDEX])
        group = labels.get(marks.SCALING_GROUP)
        if group is None:
            return next((place for place in self.standalone(i) if place.template.name == template), None)
        config = self.group_configs.get(group.removeprefix(f"{self.name}-{i}-"))
        if config is None:
            return None
        members = self.members(i, config.name, int(labels[marks.SCALING_GROUP_REPLICA_INDEX]))
        return next((place for place in members if place.template.name == template), None)


def _laid_out(pcs: PodCliqueSet) -> object:
    """Return all that a layout follows from."""
    return pcs.metadata.name, pcs.metadata.annotations, pcs.spec


def scheduler_name(pcs: PodCliqueSet) -> str | None:
    """Return the scheduler a set names; admission has seen to it that all its cliques agree."""
    named = (clique.spec.pod_spec.get("schedulerName") for clique in pcs.spec.template.cliques)
    return next((name for name in named if name), None)
