"""The same change at the workload that the grouper made a gang for: it makes the PodGang from the workload again.

Queue, preemptibility, minimum and topology of a whole gang are labels and annotations of the workload, which may change
at any time. Pod templates of most kinds may not. What only other fields of a workload can say is told in words:
snapshots hold no workloads.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from spinney.api.core import Pod
from spinney.api.labels import GROUPED, KAI_PREEMPTIBILITY
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.struct import JSON, to_json
from spinney.grouping.attributes import BATCH_MIN_MEMBER, MIN_MEMBER
from spinney.grouping.loading import built_in
from spinney.grouping.owners import group_kind
from spinney.grouping.rules import DEFAULT_RULE, Rule
from spinney.grouping.shapes import REQUIRED_LEVEL
from spinney.sim.remedies.at_sets import required_levels
from spinney.sim.remedies.change import Maker, Patch, maker_of, source_of
from spinney.sim.snapshots.snapshot import ClusterSnapshot, differing, identity

_JOB: Final = "batch/Job"
_ANEW: Final[Mapping[str, bool]] = {_JOB: True, "apps/StatefulSet": True, "apps/Deployment": False}
"""The kinds with one pod template, and whether they have to be created anew for another: that of a Job may not change,
and a StatefulSet does not replace pods that wait."""
_OF_ONE_JOB: Final = ("controller-uid", "batch.kubernetes.io/controller-uid")
"""The labels that Kubernetes puts on the template of a Job, and refuses on that of another."""
_ADDED: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_ADDED_SECONDS: Final = 300
"""The taints that the API server lets every pod tolerate for five minutes."""


def at_workloads(
    before: ClusterSnapshot, after: ClusterSnapshot
) -> tuple[ClusterSnapshot, tuple[Patch, ...], tuple[str, ...]]:
    """Return ``after`` with what is made from workloads as it was, patches of these, and words where there is none."""
    gangs = [each for each in before.of(POD_GANG, PodGang) if GROUPED in each.metadata.labels]
    grouped: dict[tuple[str | None, str], PodGang] = {
        (pod.namespace, pod.name): gang
        for gang in gangs
        for group in gang.spec.pod_groups
        for pod in group.pod_references
    }
    restored: list[Any] = []
    told: list[Patch | str] = []
    for old, new in changed_in(before, after, PodGang, Pod):
        if isinstance(old, Pod):
            gang = grouped.get(identity(old))
            found = [*_of_pod(old, new, source_of(gang) if gang is not None else None)]
        else:
            members = [pod for pod in before.pods if grouped.get(identity(pod)) is old]
            found = [*_of_gang(old, new, members)]
        restored += [old] if found else []
        told += [each for each in found if each not in told]
    words = tuple(each for each in told if isinstance(each, str))
    patches = tuple(each for each in told if isinstance(each, Patch))
    return after.with_objects(restored), patches, words


def changed_in(before: ClusterSnapshot, after: ClusterSnapshot, *kinds: type[Any]) -> list[tuple[Any, Any]]:
    """Return the objects of some kinds that two snapshots hold differently, as each of them does."""
    pairs = [(old, new) for _, _, old, new in differing(before, after)]
    return [(old, new) for old, new in pairs if isinstance(old, kinds) and new is not None]


def in_words(source: Maker | str, what: str) -> str:
    """Return where something has to be changed, without a command."""
    return f"change {what} in {source}, from which it is made"


def _of_gang(old: PodGang, new: PodGang, members: Sequence[Pod]) -> Iterator[Patch | str]:
    """Yield the labels and annotations of the workload that change its gang; words if these cannot say all of it."""
    if GROUPED not in old.metadata.labels:
        return
    workload = source_of(old)
    if workload is None:
        yield in_words("the labels and annotations of its pods", "this")
        return
    labels = {key: text for key, text in new.metadata.labels.items() if old.metadata.labels.get(key) != text}
    annotations: dict[str, str] = {}
    unsaid: list[str] = []
    if KAI_PREEMPTIBILITY in labels.keys() & old.metadata.labels.keys() and not _directly(workload, members):
        unsaid.append(f"label {KAI_PREEMPTIBILITY}")  # an owner between them may say it, and counts first
    whole, *parts = zip(required_levels(old), required_levels(new), strict=True)
    if whole[0] != whole[1]:
        annotations[REQUIRED_LEVEL] = whole[1] or ""  # empty counts as absent, also where an owner above has it
    if any(was != is_ for was, is_ in parts):
        unsaid.append(f"annotation {REQUIRED_LEVEL} of the pod templates")
    if old.spec.pod_groups != new.spec.pod_groups and _minimums(old) != _minimums(new):
        rule = built_in().get(group_kind(workload.api_version, workload.kind), {}) or DEFAULT_RULE
        if _counts_as_one(rule, old, new, members):
            annotations[_minimum_key(rule, old)] = str(sum(_minimums(new)))
        else:
            unsaid.append("the minimum of each part")
    metadata = {"labels": labels, "annotations": annotations}
    if unsaid:
        yield from (in_words(workload, each) for each in unsaid)
    elif labels or annotations:
        yield workload.patch(merge={"metadata": {key: value for key, value in metadata.items() if value}})


def _directly(workload: Maker, members: Sequence[Pod]) -> bool:
    """Tell whether no other owner is between a workload and its pods."""
    return all(source_of(pod) == workload for pod in members)


def _minimums(gang: PodGang) -> list[int]:
    return [group.min_replicas for group in gang.spec.pod_groups]


def _counts_as_one(rule: Rule, old: PodGang, new: PodGang, members: Sequence[Pod]) -> bool:
    """Tell whether one number says the new minimum: what is asked for in all is taken from the last role."""
    if rule.root or (rule.at_most is None and any(pod.status.phase == "Succeeded" for pod in members)):
        return False
    if not rule.roles:
        return len(old.spec.pod_groups) == 1
    if any(role.each.endswith("[*]") for role in rule.roles):
        return False  # how many roles there are, and which is the last, is said by the workload only
    names = [group.name for group in old.spec.pod_groups]
    roles = [role.name for role in rule.roles if not role.alone]
    return names[-1] == roles[-1] and set(names) <= set(roles) and _minimums(old)[:-1] == _minimums(new)[:-1]


def _minimum_key(rule: Rule, gang: PodGang) -> str:
    """Return the annotation that says the minimum: the one that is there, else the one that counts for every kind."""
    own = gang.metadata.annotations
    batch = f"annotation {BATCH_MIN_MEMBER}" in rule.override and BATCH_MIN_MEMBER in own
    return BATCH_MIN_MEMBER if batch and MIN_MEMBER not in own else MIN_MEMBER


def _of_pod(old: Pod, new: Pod, workload: Maker | None) -> Iterator[Patch | str]:
    """Yield the pod template that has the tolerations of a pod that waits; words if it is of another kind."""
    maker = maker_of(old)
    if maker is None or old.spec.node_name or old.spec.tolerations == new.spec.tolerations:
        return
    anew = _ANEW.get(group_kind(maker.api_version, maker.kind))
    if anew is None or workload not in (None, maker):
        yield in_words(workload or maker, "the tolerations of the pod templates")
        return
    tolerations = [
        to_json(each)
        for each in new.spec.tolerations
        if each.key not in _ADDED or each.toleration_seconds != _ADDED_SECONDS
    ]
    template: JSON = {"spec": {"tolerations": tolerations}}
    spec: JSON = {"template": template}
    if group_kind(maker.api_version, maker.kind) == _JOB:
        template["metadata"] = {"labels": dict.fromkeys(_OF_ONE_JOB)}
        spec["selector"] = None
    yield maker.patch(merge={"spec": spec}, recreate=anew)
