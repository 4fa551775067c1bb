"""Levers that change the gang itself: tolerate a taint, relax a level, lower the minimum, let it be preempted."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heapify, heapreplace
from typing import Any

import msgspec

from spinney.api import coscheduling, kai, volcano, workload_v1alpha2, workload_v1beta1
from spinney.api.affinity import Taint, Toleration
from spinney.api.core import Pod
from spinney.api.kai import PREEMPTIBLE
from spinney.api.labels import KAI_PREEMPTIBILITY
from spinney.api.podgang import PodGang
from spinney.api.struct import changed
from spinney.explain.amounts import listed
from spinney.kube.keys import key_of
from spinney.sim.remedies.change import Lever
from spinney.sim.remedies.situation import Situation, taint_word
from spinney.sim.snapshots.snapshot import ClusterSnapshot


def gang_levers(situation: Situation) -> Iterator[Lever[Any]]:
    """Yield the levers over the gang that could matter."""
    yield from _tolerate(situation)
    yield from _relax(situation)
    yield from _preemptible(situation)


def minimum_lever(situation: Situation) -> Iterator[Lever[Any]]:
    """Yield the lever that lets the gang start with fewer pods."""
    minimums = _minimums(situation.definition)
    before = sum(minimums.values())
    steps = sum(count - 1 for count in minimums.values() if count > 1)
    if not steps:
        return

    def text(picked: Sequence[int]) -> str:
        now = _lowered(minimums, len(picked))
        parts = [f"{name} {count}" for name, count in now.items() if minimums[name] != count]
        of = f" ({listed(parts)})" if len(minimums) > 1 else ""
        return f"let it start with {sum(now.values())} of {before} pods{of}"

    def lowered(it: Any, steps: int) -> Any:
        own = _minimums(it)
        if own.keys() == minimums.keys():
            return _with_minimums(it, _lowered(minimums, steps))
        same = sum(own.values()) == before  # a scheduler that knows one number, made from those of the parts
        return _with_minimums(it, _lowered(own, steps)) if same else it

    yield Lever(
        name="minimum",
        elements=range(steps),
        apply=lambda snapshot, picked: situation.redefined(snapshot, lambda it: lowered(it, len(picked))),
        text=text,
        ordered=True,
        likely=situation.short_of,
    )


def _lowered(minimums: dict[str, int], steps: int) -> dict[str, int]:
    """Return minimums of parts after ``steps`` times one less for the part that has the most then."""
    lowered = dict(minimums)
    largest = [(-count, number, name) for number, (name, count) in enumerate(minimums.items())]
    heapify(largest)
    for _ in range(steps):
        negated, number, name = largest[0]
        heapreplace(largest, (negated + 1, number, name))
        lowered[name] -= 1
    return lowered


def _tolerate(situation: Situation) -> Iterator[Lever[Any]]:
    def text(picked: Sequence[Taint]) -> str:
        noun = "taint" if len(picked) == 1 else "taints"
        return f"tolerate the {noun} {listed(list(map(taint_word, picked)))} in the pods"

    def apply(snapshot: ClusterSnapshot, picked: Sequence[Taint]) -> ClusterSnapshot:
        keys = {(record.namespace, record.name) for record in situation.waiting}
        return snapshot.with_objects(_tolerating(pod, picked) for pod in snapshot.pods if key_of(pod) in keys)

    if situation.untolerated_taints:
        yield Lever(name="tolerate", elements=situation.untolerated_taints, apply=apply, text=text)


def _tolerating(pod: Pod, taints: Iterable[Taint]) -> Any:
    more = (
        Toleration(key=each.key, operator="Equal" if each.value else "Exists", value=each.value, effect=each.effect)
        for each in taints
    )
    return changed(pod, spec={"tolerations": (*pod.spec.tolerations, *more)})


def _relax(situation: Situation) -> Iterator[Lever[Any]]:
    topology, depth = situation.topology, situation.required_depth
    if situation.definition is None or topology is None or depth is None:
        return
    keys = topology.levels

    def widened(level: str, steps: int) -> str:
        at = topology.depth(level)
        return level if at is None else keys[at - steps] if at >= steps else ""

    def text(picked: Sequence[int]) -> str:
        now, before = widened(keys[depth], len(picked)), topology.called(keys[depth])
        return f"require one {topology.called(now)} instead of one {before}" if now else f"do not require one {before}"

    yield Lever(
        name="relax",
        elements=range(depth + 1),
        apply=lambda snapshot, picked: situation.redefined(
            snapshot, lambda it: _with_levels(it, lambda level: widened(level, len(picked)))
        ),
        text=text,
        ordered=True,
    )


def _preemptible(situation: Situation) -> Iterator[Lever[Any]]:
    gang = situation.gang
    if gang is None or gang.preemptible or situation.definition is None:
        return

    def preemptible(it: Any) -> Any:
        if isinstance(it, kai.PodGroup):
            return changed(it, spec={"preemptibility": PREEMPTIBLE})
        return changed(it, metadata={"labels": {**it.metadata.labels, KAI_PREEMPTIBILITY: PREEMPTIBLE}})

    yield Lever(
        name="preemptible",
        elements=range(1),
        apply=lambda snapshot, _: situation.redefined(snapshot, preemptible),
        text=lambda _: "let it be preempted, so that it may go beyond the quota",
    )


# -- the objects that define gangs -------------------------------------------------------------------------------------


def _minimums(found: Any) -> dict[str, int]:
    """Return the minimums of a gang's parts by name; empty where they cannot be lowered one by one."""
    match found:
        case PodGang():
            return {group.name: group.min_replicas for group in found.spec.pod_groups}
        case kai.PodGroup() if found.spec.sub_groups:
            parents = {each.parent for each in found.spec.sub_groups}
            return {each.name: each.min_member or 0 for each in found.spec.sub_groups if each.name not in parents}
        case kai.PodGroup() | coscheduling.PodGroup() | volcano.PodGroup():
            return {"": found.spec.min_member or 1}
        case workload_v1alpha2.PodGroup() | workload_v1beta1.PodGroup():
            gang = found.spec.scheduling_policy.gang
            return {"": gang.min_count} if gang is not None else {}
        case _:
            return {}


def _with_minimums(found: Any, minimums: dict[str, int]) -> Any:
    match found:
        case PodGang():
            groups = tuple(
                msgspec.structs.replace(group, min_replicas=minimums[group.name]) for group in found.spec.pod_groups
            )
            return changed(found, spec={"pod_groups": groups})
        case kai.PodGroup() if found.spec.sub_groups:
            groups_ = tuple(
                msgspec.structs.replace(each, min_member=minimums[each.name]) if each.name in minimums else each
                for each in found.spec.sub_groups
            )
            return changed(found, spec={"sub_groups": groups_})
        case workload_v1alpha2.PodGroup() | workload_v1beta1.PodGroup():
            policy = found.spec.scheduling_policy
            assert policy.gang is not None, "only a gang policy has a minimum"
            policy = changed(policy, gang={"min_count": minimums[""]})
            return changed(found, spec={"scheduling_policy": policy})
        case _:
            return changed(found, spec={"min_member": minimums[""]})


def _with_levels(found: Any, widened: Callable[[str], str]) -> Any:
    """Return a gang's object with every required level replaced by ``widened`` of it; empty drops it."""
    match found:
        case PodGang():
            spec = found.spec
            packed = {
                "topology_constraint": _packed(spec.topology_constraint, widened),
                "topology_constraint_group_configs": tuple(
                    msgspec.structs.replace(each, topology_constraint=_packed(each.topology_constraint, widened))
                    for each in spec.topology_constraint_group_configs
                ),
                "pod_groups": tuple(
                    msgspec.structs.replace(each, topology_constraint=_packed(each.topology_constraint, widened))
                    for each in spec.pod_groups
                ),
            }
            return changed(found, spec=packed)
        case kai.PodGroup():
            levelled = {
                "topology_constraint": _levelled(found.spec.topology_constraint, widened),
                "sub_groups": tuple(
                    msgspec.structs.replace(each, topology_constraint=_levelled(each.topology_constraint, widened))
                    for each in found.spec.sub_groups
                ),
            }
            return changed(found, spec=levelled)
        case workload_v1alpha2.PodGroup() | workload_v1beta1.PodGroup():
            constraints = found.spec.scheduling_constraints
            if constraints is None:
                return found
            topology = tuple(
                msgspec.structs.replace(each, key=key) for each in constraints.topology if (key := widened(each.key))
            )
            constraints = msgspec.structs.replace(constraints, topology=topology) if topology else None
            return changed(found, spec={"scheduling_constraints": constraints})
        case _:
            return found


def _packed(constraint: Any, widened: Callable[[str], str]) -> Any:
    if constraint is None or constraint.pack_constraint is None or not constraint.pack_constraint.required:
        return constraint
    pack = constraint.pack_constraint
    required = widened(pack.required) or None
    return changed(constraint, pack_constraint={"required": required})


def _levelled(constraint: Any, widened: Callable[[str], str]) -> Any:
    if constraint is None or not constraint.required_topology_level:
        return constraint
    level = widened(constraint.required_topology_level) or None
    return msgspec.structs.replace(constraint, required_topology_level=level)
