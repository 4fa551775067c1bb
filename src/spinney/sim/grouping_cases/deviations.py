"""Where we depart from the pod grouper that the cases come from, by section of its behavioural specification.

A deviation has a condition on the *input* of a case and the keys of the answer that it may change. A difference in any
other key, or without the condition, is a failure. Nothing here knows a case by its id.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spinney.grouping.attributes import BATCH_MIN_MEMBER, READ_ANNOTATIONS, SEGMENT_SIZE
from spinney.grouping.terms import look_up, parse_path
from spinney.sim.grouping_cases.comparing import CaseDifference
from spinney.sim.grouping_cases.reading import GroupingCase


@dataclass(frozen=True)
class Reason:
    """The section of the specification that says why, and what it says."""

    section: str
    why: str


@dataclass(frozen=True)
class Deviation:
    """Something we do differently on purpose."""

    why: str
    keys: tuple[str, ...]
    """What it may change in an answer: keys of the expectation, or how they begin."""
    holds: Callable[[GroupingCase], bool]
    section: str = "10"
    """Where the specification leaves it open, unless it says otherwise."""


def inapplicable(case: GroupingCase) -> Reason | None:
    """Return why a question has no answer here, if it has none."""
    for reason, holds in _NOT_OURS:
        if holds(case):
            return reason
    return None


def on_purpose(case: GroupingCase, found: Sequence[CaseDifference]) -> tuple[Reason, ...]:
    """Return why an answer differs, if every difference is meant."""
    reasons: dict[Reason, None] = {}
    for difference in found:
        each = next(
            (
                deviation
                for deviation in DEVIATIONS
                if any(difference.key == key or difference.key.startswith(f"{key}.") for key in deviation.keys)
                and deviation.holds(case)
            ),
            None,
        )
        if each is None:
            return ()
        reasons[Reason(each.section, each.why)] = None
    return tuple(reasons)


# -- questions that are not about us -----------------------------------------------------------------------------------

_OF_POD_GROUPS: Final = frozenset(
    {
        "write_pod_group",
        "keep_foreign_fields",
        "map_needs_no_write",
        "group_needs_no_write",
        "map_merge",
        "sub_group_of_pod",
    }
)

_NOT_OURS: Final[Sequence[tuple[Reason, Callable[[GroupingCase], bool]]]] = (
    (
        Reason("4.8", "Grove's pods are the operator's; the grouper leaves them alone"),
        lambda case: case.rule == "grove" or case.check in ("pod_gang_entry", "pod_reference"),
    ),
    (
        Reason("9, 12", "rules are data without jq; there are no Karta objects"),
        lambda case: case.rule == "karta" or case.check == "generic_rule_lookup",
    ),
    (
        Reason("12", "RunaiJob has no rule: its group's name is cut out of the pod's name"),
        lambda case: case.rule == "runaijob",
    ),
    (
        Reason("4.9", "groups of older shapes are an upgrade path of the other grouper"),
        lambda case: case.check == "use_sub_groups" or _has_older_group(case),
    ),
    (
        Reason("1", "a pass is the controller's, and is tried on a cluster; its conditions are asked one by one"),
        lambda case: case.check == "reconcile",
    ),
    (
        Reason("12", "the gang is a PodGang; a backend writes PodGroups, each in its scheduler's own way"),
        lambda case: case.check in _OF_POD_GROUPS,
    ),
)


def _has_older_group(case: GroupingCase) -> bool:
    groups = case.of_kind("PodGroup")
    if case.rule == "knative":
        annotations = [pod["metadata"].get("annotations") or {} for pod in case.of_kind("Pod")]
        named = {each["pod-group-name"] for each in annotations if "pod-group-name" in each}
        owned_by_pod = any(
            each.get("kind") == "Pod" for group in groups for each in group["metadata"].get("ownerReferences") or ()
        )
        return len(named) > 1 or owned_by_pod
    if case.rule == "jobset" or case.rule.startswith("ray"):
        return any(not (group.get("spec") or {}).get("subGroups") for group in groups)
    return bool(case.settings.get("search_legacy_groups") and groups)


# -- deviations --------------------------------------------------------------------------------------------------------


def _at(case: GroupingCase, path: str) -> list[Any]:
    """Return what is at a path of the top owner, or of the RayCluster that stands in for it."""
    steps = parse_path(path).steps
    objects = [case.raw.get("top_owner") or {}, *case.of_kind("RayCluster")]
    return [value for each in objects for value in look_up(each, steps)]


def _unread_annotations(case: GroupingCase) -> bool:
    objects = [case.raw.get("top_owner") or {}, *(case.raw.get("owners") or ())]
    keys = {key for each in objects for key in (each.get("metadata") or {}).get("annotations") or {}}
    return bool(keys - READ_ANNOTATIONS)


def _annotation(case: GroupingCase, key: str) -> str | None:
    found: str | None = ((case.raw.get("top_owner") or {}).get("metadata") or {}).get("annotations", {}).get(key)
    return found


def _segment_sizes(case: GroupingCase) -> Iterator[str]:
    places = ("spec.pytorchReplicaSpecs.Worker.template", "spec.leaderWorkerTemplate.workerTemplate")
    for place in places:
        for template in _at(case, place):
            yield ((template.get("metadata") or {}).get("annotations") or {}).get(SEGMENT_SIZE, "")
    yield case.pod.metadata.annotations.get(SEGMENT_SIZE, "")
    yield from map(str, _at(case, "spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize"))


def _odd_segment_size(case: GroupingCase) -> bool:
    counts = (*_at(case, "spec.pytorchReplicaSpecs.Worker.replicas"), *_at(case, "spec.leaderWorkerTemplate.size"))
    pods = sum(each for each in counts if isinstance(each, int))
    sizes = [size for size in _segment_sizes(case) if size]
    return any(not size.isdecimal() or not 1 < int(size) <= pods for size in sizes)


def _empty_label(case: GroupingCase) -> bool:
    objects = [case.raw.get("top_owner") or {}, *(case.raw.get("owners") or ()), case.raw.get("pod") or {}]
    return any(value == "" for each in objects for value in ((each.get("metadata") or {}).get("labels") or {}).values())


def _role_without_count(case: GroupingCase) -> bool:
    specs = [
        each for key in ("tf", "xgb", "jax", "mpi", "pytorch", "x") for each in _at(case, f"spec.{key}ReplicaSpecs")
    ]
    roles = [role for each in specs if isinstance(each, dict) for role in each.values()]
    return any(not role or (isinstance(role, dict) and not role.get("replicas")) for role in roles)


DEVIATIONS: Final = (
    Deviation(
        "of an owner's annotations only those that are read are carried on",
        ("annotations_count", "annotations"),
        _unread_annotations,
    ),
    Deviation(
        "a suspended Ray worker group is one with suspend: true, KubeRay's field",
        ("min_member", "sub_groups", "sub_group_count"),
        lambda case: bool(_at(case, "spec.workerGroupSpecs[*].suspended")),
    ),
    Deviation(
        "a floor above the replicas of a role is reported, not refused",
        ("error",),
        lambda case: any(
            (each.get("minReplicas") or 0) > (each.get("replicas") or 0)
            for each in _at(case, "spec.workerGroupSpecs[*]")
        ),
        section="12",
    ),
    Deviation(
        "replicated jobs that start later are needed once a pod of theirs exists",
        ("min_sub_group", "sub_groups", "sub_group_count"),
        lambda case: (
            bool(_at(case, "spec.replicatedJobs[*].dependsOn"))
            or "InOrder" in _at(case, "spec.startupPolicy.startupPolicyOrder")
        ),
    ),
    Deviation(
        "a replicated job needs no more pods than its completions, and none with 0 replicas",
        ("min_sub_group", "sub_groups", "sub_group_count", "error"),
        lambda case: (
            bool(_at(case, "spec.replicatedJobs[*].template.spec.completions"))
            or 0 in _at(case, "spec.replicatedJobs[*].replicas")
        ),
    ),
    Deviation(
        "with LeaderReady workers are needed once the first of them exists",
        ("min_member", "sub_groups", "sub_group_count"),
        lambda case: "LeaderReady" in _at(case, "spec.startupPolicy"),
    ),
    Deviation(
        "a launcher that is made later is taken off the sum, not off an explicit minAvailable",
        ("min_member",),
        lambda case: (
            "WaitForWorkersReady" in _at(case, "spec.launcherCreationPolicy")
            and bool(_at(case, "spec.runPolicy.schedulingPolicy.minAvailable"))
        ),
    ),
    Deviation(
        "a minimum in an annotation is a whole number of at least 1",
        ("error", "min_member"),
        lambda case: (text := _annotation(case, BATCH_MIN_MEMBER)) is not None and not text.strip("0").isdecimal(),
    ),
    Deviation(
        "a role without replicas has 1, as its operator takes it; one with 0 adds nothing unless it is required",
        ("error", "error_mentions", "min_member"),
        _role_without_count,
    ),
    Deviation(
        "a segment has more than one pod and at most all of them",
        ("error", "sub_groups", "sub_group_count"),
        _odd_segment_size,
    ),
    Deviation(
        "labels of the whole chain come before the pod's, and what is explicit before defaults of kinds",
        ("priority_class", "preemptibility", "preemption_delay"),
        lambda case: len(case.raw.get("owners") or ()) > 1 or case.rule in ("skip-top-owner", "cronjob"),
    ),
    Deviation(
        "a priority class that does not exist is passed over and reported, whichever object names it",
        ("priority_class",),
        lambda case: case.rule.startswith("ray"),
    ),
    Deviation("an empty label counts as absent", ("queue", "preemptibility", "priority_class"), _empty_label),
    Deviation(
        "of several owner references the controller's counts; it is never an error",
        ("error",),
        lambda case: any(
            len((each.get("metadata") or {}).get("ownerReferences") or ()) > 1
            for each in (case.raw.get("pod") or {}, *(case.raw.get("cluster") or ()), *(case.raw.get("owners") or ()))
        ),
    ),
    Deviation(
        "a Job made by a CronJob keeps its own minimum and inherits what the CronJob says",
        ("min_member", "labels", "labels_count", "annotations", "queue", "priority_class"),
        lambda case: case.rule == "cronjob",
    ),
    Deviation(
        "a kind has its rule in every version",
        ("rule",),
        lambda case: case.check == "registry" and case.expect.get("rule") == "default",
    ),
    Deviation(
        "a kind without a rule above one that has one is looked through",
        ("owner", "name", "min_member", "labels", "labels_count", "priority_class"),
        lambda case: case.check == "whole",
    ),
    Deviation(
        "Spark applications and PaddleJobs have rules, and executors are one gang",
        ("rule", "min_member", "sub_groups", "sub_group_count"),
        lambda case: str((case.raw.get("top_owner") or {}).get("kind")) in ("SparkApplication", "PaddleJob"),
    ),
)
