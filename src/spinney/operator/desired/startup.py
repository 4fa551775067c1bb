"""Start-up order: which PodCliques a PodClique's containers wait for.

Order holds within a gang only. Pods of a gang are all scheduled together; their containers wait, behind an init
container. So a PodClique of a scaled gang waits for its siblings of the same scaling group replica and nobody else.
"""

from spinney.api.grove import EXPLICIT, IN_ORDER
from spinney.operator.desired import names
from spinney.operator.desired.layout import CliquePlace, Layout


def starts_after(layout: Layout, place: CliquePlace) -> list[str]:
    """Return the names of the PodCliques that must have their minimum ready before this one's containers start."""
    parents = _parents(layout, place.template.name)
    if place.base_gang is not None:
        assert place.group is not None
        siblings = [parent for parent in parents if parent in place.group.config.clique_names]
        return [names.member_clique(place.group.scaling_group, place.group.replica, parent) for parent in siblings]
    return [name for parent in parents for name in _in_base_gang(layout, place.replica, parent)]


def required_ready(layout: Layout, place: CliquePlace) -> list[tuple[str, int]]:
    """Return what :func:`starts_after` names together with how many pods of each must be ready."""
    minimums = {
        name: layout.templates[parent].spec.minimum
        for parent in _parents(layout, place.template.name)
        for name in [*_in_base_gang(layout, place.replica, parent), *_beside(place, parent)]
    }
    return [(name, minimums[name]) for name in starts_after(layout, place)]


def _parents(layout: Layout, clique: str) -> list[str]:
    template = layout.pcs.spec.template
    if template.clique_startup_type == IN_ORDER:
        order = [each.name for each in template.cliques]
        position = order.index(clique)
        return [order[position - 1]] if position > 0 else []
    if template.clique_startup_type == EXPLICIT:
        return [parent for parent in layout.templates[clique].spec.starts_after if parent in layout.templates]
    return []


def _in_base_gang(layout: Layout, i: int, clique: str) -> list[str]:
    group = layout.groups_of_cliques.get(clique)
    if group is None:
        return [names.standalone_clique(layout.name, i, clique)]
    scaling_group = names.scaling_group(layout.name, i, group)
    return [names.member_clique(scaling_group, j, clique) for j in range(layout.group_configs[group].minimum)]


def _beside(place: CliquePlace, clique: str) -> list[str]:
    if place.group is None:
        return []
    return [names.member_clique(place.group.scaling_group, place.group.replica, clique)]
