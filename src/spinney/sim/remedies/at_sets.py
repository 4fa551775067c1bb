"""The same change at the PodCliqueSet: what a set owns is made from it, so a change of a PodGang would not last.

Labels of a set and its pods' tolerations may change at any time. Minimums and topology constraints may not, so the set
has to be created anew for these.
Snapshots hold no commands and no environments, so such a change is told as operations on the set, not as a whole set.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spinney.api.core import Pod
from spinney.api.grove import POD_CLIQUE_SET, PodCliqueSet
from spinney.api.labels import GROUPED, PART_OF, POD_CLIQUE
from spinney.api.podgang import PodGang
from spinney.api.struct import JSON, to_json
from spinney.api.topology_binding import CLUSTER_TOPOLOGY_BINDING, ClusterTopologyBinding
from spinney.api.topology_constraint import TopologyConstraint
from spinney.sim.remedies.change import Maker, Patch
from spinney.sim.snapshots.snapshot import ClusterSnapshot, differing

_Changed = tuple[Any, Any]
"""A PodGang or a pod that waits, as it is and as it would be."""


def at_sets(before: ClusterSnapshot, after: ClusterSnapshot) -> tuple[ClusterSnapshot, tuple[Patch, ...]]:
    """Return ``after`` with PodGangs and pods of sets as they were, and the patches of the sets that change them so."""
    sets = {(each.metadata.namespace, each.metadata.name): each for each in before.of(POD_CLIQUE_SET, PodCliqueSet)}
    owned: dict[tuple[str | None, str], list[_Changed]] = {}
    for _, (namespace, _), old, new in differing(before, after):
        if not isinstance(old, PodGang | Pod) or new is None or GROUPED in old.metadata.labels:
            continue
        if not (isinstance(old, Pod) and old.spec.node_name):
            owned.setdefault((namespace, old.metadata.labels.get(PART_OF, "")), []).append((old, new))
    owned = {key: changed for key, changed in owned.items() if key in sets}
    patches = [patch for key, changed in owned.items() for patch in _patches(before, sets[key], changed)]
    return after.with_objects(old for changed in owned.values() for old, _ in changed), tuple(patches)


def _patches(snapshot: ClusterSnapshot, pcs: PodCliqueSet, changed: Sequence[_Changed]) -> Iterator[Patch]:
    """Yield what changes a set so that what it owns changes as told."""
    maker = Maker(pcs.metadata.namespace, POD_CLIQUE_SET.api_version, POD_CLIQUE_SET.kind, pcs.metadata.name)
    labels: dict[str, str] = {}
    free: list[JSON] = []
    fixed: list[JSON] = []
    for old, new in changed:
        if isinstance(old, Pod):
            free += [each for each in _tolerations(pcs, old, new) if each not in free]
            continue
        labels |= {key: text for key, text in new.metadata.labels.items() if old.metadata.labels.get(key) != text}
        fixed += [*_minimums(pcs, old, new), *_levels(snapshot, pcs, old, new)]
    if labels:
        yield maker.patch(merge={"metadata": {"labels": labels}})
    if free or fixed:
        yield maker.patch(operations=(*free, *fixed), recreate=bool(fixed))


def _tolerations(pcs: PodCliqueSet, old: Pod, new: Pod) -> Iterator[JSON]:
    """Yield the tolerations that the clique of a pod lacks."""
    more = [to_json(each) for each in new.spec.tolerations if each not in old.spec.tolerations]
    number = _clique(pcs, old.metadata.labels.get(POD_CLIQUE, ""))
    path = f"/spec/template/cliques/{number}/spec/podSpec/tolerations"
    if not more:
        return
    if pcs.spec.template.cliques[number].spec.pod_spec.get("tolerations"):
        yield from ({"op": "add", "path": f"{path}/-", "value": each} for each in more)
    else:
        yield {"op": "add", "path": path, "value": more}


def _clique(pcs: PodCliqueSet, name: str) -> int:
    """Return which clique of the template a PodClique is of, by its name."""
    names = [clique.name for clique in pcs.spec.template.cliques]
    return names.index(max((each for each in names if name.endswith(f"-{each}")), key=len))


def _minimums(pcs: PodCliqueSet, old: PodGang, new: PodGang) -> Iterator[JSON]:
    """Yield the minimums of cliques; of one that is in the gang several times, the lowest."""
    lowered: dict[int, int] = {}
    for before, after in zip(old.spec.pod_groups, new.spec.pod_groups, strict=True):
        if before.min_replicas != after.min_replicas:
            number = _clique(pcs, before.name)
            lowered[number] = min(after.min_replicas, lowered.get(number, after.min_replicas))
    for number, count in lowered.items():
        yield _replaced(f"/spec/template/cliques/{number}/spec/minAvailable", count)


def _levels(snapshot: ClusterSnapshot, pcs: PodCliqueSet, old: PodGang, new: PodGang) -> Iterator[JSON]:
    """Yield the topology constraints of the set, where a node label that they stand for is another one."""
    relaxed = {
        before: after
        for before, after in zip(required_levels(old), required_levels(new), strict=True)
        if before is not None and before != after
    }
    template = pcs.spec.template
    placed = [("/spec/template", template.topology_constraint)]
    placed += [
        (f"/spec/template/podCliqueScalingGroups/{number}", each.topology_constraint)
        for number, each in enumerate(template.pod_clique_scaling_groups)
    ]
    placed += [
        (f"/spec/template/cliques/{number}", each.topology_constraint) for number, each in enumerate(template.cliques)
    ]
    name = next((each.topology_name for _, each in placed if each is not None and each.topology_name), None)
    bindings = snapshot.of(CLUSTER_TOPOLOGY_BINDING, ClusterTopologyBinding)
    binding = next((each for each in bindings if each.metadata.name == name), None)
    keys = {level.domain: level.key for level in binding.spec.levels} if binding is not None else {}
    for path, constraint in placed:
        key = keys.get(constraint.required or "") if constraint is not None else None
        if constraint is not None and key in relaxed:
            yield _constraint(f"{path}/topologyConstraint", constraint, keys, relaxed[key])


def _constraint(path: str, constraint: TopologyConstraint, keys: Mapping[str, str], key: str | None) -> JSON:
    """Return the operation that has a constraint require the domain of ``key``, or none."""
    field = "packDomain" if constraint.pack_domain is not None else "pack/required"
    domain = next((domain for domain, label in keys.items() if label == key), None)
    if domain is not None:
        return _replaced(f"{path}/{field}", domain)
    return {"op": "remove", "path": f"{path}/{field}" if constraint.preferred else path}


def required_levels(gang: PodGang) -> list[str | None]:
    """Return the node labels that the parts of a gang require, in one order."""
    spec = gang.spec
    constraints = [
        spec.topology_constraint,
        *(each.topology_constraint for each in spec.topology_constraint_group_configs),
        *(each.topology_constraint for each in spec.pod_groups),
    ]
    packs = [each.pack_constraint if each is not None else None for each in constraints]
    return [pack.required if pack is not None else None for pack in packs]


def _replaced(path: str, value: object) -> JSON:
    return {"op": "replace", "path": path, "value": value}
