"""The same change at the PodCliqueSet: what a set owns is made from it, so a change of a PodGang would not last.

Labels of a set may change at any time. Minimums and topology constraints may not, so the set has to be created anew.
Snapshots hold no commands and no environments, so such a change is told as operations on the set, not as a whole set.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from spinney.api.grove import CLUSTER_TOPOLOGY_BINDING, POD_CLIQUE_SET, ClusterTopologyBinding, PodCliqueSet
from spinney.api.labels import PART_OF
from spinney.api.podgang import PodGang
from spinney.api.struct import JSON
from spinney.api.topology_constraint import TopologyConstraint
from spinney.sim.remedies.change import Patch, RemedyStep
from spinney.sim.snapshots.snapshot import ClusterSnapshot, differing

OF_GANGS: Final = frozenset({"minimum", "relax", "queue", "preemptible"})
"""The levers that change the object of a gang."""


def at_sets(before: ClusterSnapshot, after: ClusterSnapshot) -> tuple[ClusterSnapshot, tuple[Patch, ...]]:
    """Return ``after`` with the PodGangs of sets as they were, and the patches of the sets that change them so."""
    sets = {(each.metadata.namespace, each.metadata.name): each for each in before.of(POD_CLIQUE_SET, PodCliqueSet)}
    found: list[Patch] = []
    for _, (namespace, _), old, new in differing(before, after):
        pcs = sets.get((namespace, old.metadata.labels.get(PART_OF, ""))) if isinstance(old, PodGang) else None
        if pcs is None or not isinstance(new, PodGang):
            continue
        after = after.with_objects([old])
        found += _labelled(pcs, old, new)
        found += _recreated(pcs, [*_minimums(pcs, old, new), *_levels(before, pcs, old, new)])
    return after, tuple(found)


def with_commands(steps: Sequence[RemedyStep], patches: Sequence[Patch]) -> tuple[RemedyStep, ...]:
    """Return steps with the commands that make them at sets; they follow the last step that is made there."""
    last = max((number for number, step in enumerate(steps) if step.lever in OF_GANGS), default=None)
    commands = [_command(each) for each in patches if each.kind == POD_CLIQUE_SET.kind]
    if last is None or not commands:
        return tuple(steps)
    anew = [f"PodCliqueSet {each.name} has to be created anew for that" for each in patches if each.operations]
    told = msgspec.structs.replace(
        steps[last], text="; ".join([steps[last].text, *anew]), command="\n".join(filter(None, commands))
    )
    return (*steps[:last], told, *steps[last + 1 :])


def _command(patch: Patch) -> str:
    where = f"podcliqueset {patch.name} -n {patch.namespace}"
    if patch.merge is not None:
        return f"kubectl patch {where} --type merge -p '{_compact(patch.merge)}'"
    change = f"kubectl patch --local -f - --type json -p '{_compact(patch.operations)}' -o json"
    return f"kubectl get {where} -o json | {change} | kubectl replace --force -f -"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _patch(pcs: PodCliqueSet, **what: Any) -> Patch:
    metadata, kind = pcs.metadata, POD_CLIQUE_SET
    return Patch(api_version=kind.api_version, kind=kind.kind, name=metadata.name, namespace=metadata.namespace, **what)


def _labelled(pcs: PodCliqueSet, old: PodGang, new: PodGang) -> list[Patch]:
    labels = {key: text for key, text in new.metadata.labels.items() if old.metadata.labels.get(key) != text}
    return [_patch(pcs, merge={"metadata": {"labels": labels}})] if labels else []


def _recreated(pcs: PodCliqueSet, operations: Sequence[JSON]) -> list[Patch]:
    return [_patch(pcs, operations=tuple(operations), recreate=True)] if operations else []


def _minimums(pcs: PodCliqueSet, old: PodGang, new: PodGang) -> Iterator[JSON]:
    """Yield the minimums of cliques; of one that is in the gang several times, the lowest."""
    names = [clique.name for clique in pcs.spec.template.cliques]
    lowered: dict[str, int] = {}
    for before, after in zip(old.spec.pod_groups, new.spec.pod_groups, strict=True):
        if before.min_replicas != after.min_replicas:
            name = max((each for each in names if before.name.endswith(f"-{each}")), key=len)
            lowered[name] = min(after.min_replicas, lowered.get(name, after.min_replicas))
    for name, count in lowered.items():
        yield _replaced(f"/spec/template/cliques/{names.index(name)}/spec/minAvailable", count)


def _levels(snapshot: ClusterSnapshot, pcs: PodCliqueSet, old: PodGang, new: PodGang) -> Iterator[JSON]:
    """Yield the topology constraints of the set, where a node label that they stand for is another one."""
    relaxed = {
        before: after
        for before, after in zip(_required(old), _required(new), strict=True)
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


def _required(gang: PodGang) -> list[str | None]:
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
