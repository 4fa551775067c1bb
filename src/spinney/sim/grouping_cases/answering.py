"""What our rules answer to the question of a case, as plain data."""

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

import msgspec

from spinney.api import labels as marks
from spinney.api.core import Pod
from spinney.api.labels import KAI_PREEMPTION_DELAY
from spinney.api.meta import OwnerReference
from spinney.api.struct import JSON
from spinney.gangs.tree import TopologyConstraintInfo
from spinney.grouping import attributes, selecting
from spinney.grouping.attributes import Conventions
from spinney.grouping.describing import Chosen, Grouping, apply, choose, describe, top_owner_metadata
from spinney.grouping.loading import built_in
from spinney.grouping.owners import Owner, climb, group_kind, inheriting, missing, pod_as_owner
from spinney.grouping.rules import DEFAULT_RULE, POD_KIND, Rule, RuleSet
from spinney.grouping.shapes import SubGroupShape
from spinney.grouping.terms import RuleRefused
from spinney.grouping.world import InvalidDefaults, KindDefault, World, kind_defaults, parse_defaults
from spinney.sim.grouping_cases.reading import GroupingCase, as_owner, as_pod

RULE_KINDS: Final[Mapping[str, str]] = {
    "job": "batch/Job",
    "cronjob": "batch/CronJob",
    "deployment": "apps/Deployment",
    "jobset": "jobset.x-k8s.io/JobSet",
    "leaderworkerset": "leaderworkerset.x-k8s.io/LeaderWorkerSet",
    "raycluster": "ray.io/RayCluster",
    "rayjob": "ray.io/RayJob",
    "rayservice": "ray.io/RayService",
    "pytorch": "kubeflow.org/PyTorchJob",
    "tensorflow": "kubeflow.org/TFJob",
    "xgboost": "kubeflow.org/XGBoostJob",
    "jax": "kubeflow.org/JAXJob",
    "mpi": "kubeflow.org/MPIJob",
    "notebook": "kubeflow.org/Notebook",
    "knative": "serving.knative.dev/Service",
    "aml": "amlarc.azureml.com/AmlJob",
    "spotrequest": "egx.nvidia.io/SPOTRequest",
}
"""The kind whose rule of ours a rule of the format is."""

_KNATIVE_POD_BY_POD: Final = Rule(kind=RULE_KINDS["knative"], one_per="pod", priority="inference")


class Unanswerable(Exception):
    """We have nothing that the question is about."""


def answer(case: GroupingCase) -> JSON:
    """Return our answer to a case; raises :class:`Unanswerable` where we have none."""
    question = _QUESTIONS.get(case.check)
    if question is None:
        raise Unanswerable(case.check)
    return question(case)


# -- groups ------------------------------------------------------------------------------------------------------------


def _group(case: GroupingCase) -> JSON:
    return _or_error(case, lambda: apply(_chosen(case), case.pod, conventions(case), world(case)))


def _whole(case: GroupingCase) -> JSON:
    pod = case.pod
    source = case.raw.get("owners_taken_from_pod")
    climber = (
        next(as_pod(each) for each in case.of_kind("Pod") if each["metadata"]["name"] == source) if source else pod
    )

    def grouping() -> Grouping:
        chain = climb(climber, lambda reference, namespace: _find(case, reference, namespace))
        if not chain and source:
            chain = (pod_as_owner(climber),)
        return describe(pod, chain, built_in(), conventions(case), world(case))

    return _or_error(case, grouping)


def _sub_groups(case: GroupingCase) -> JSON:
    raw = msgspec.json.decode(msgspec.json.encode(case.raw))
    raw["top_owner"]["spec"]["leaderWorkerTemplate"]["size"] = case.arguments["size"]
    return _group(GroupingCase(case.id, case.check, raw))


def _or_error(case: GroupingCase, grouping: Callable[[], Grouping]) -> JSON:
    try:
        return as_answer(grouping(), case.pod)
    except RuleRefused as error:
        return {"error": True, "message": str(error)}


def _chosen(case: GroupingCase) -> Chosen:
    pod, rule, chain = case.pod, case.rule, _chain(case)
    if rule == "skip-top-owner":
        skipped = chain[-1].group_kind
        return choose(pod, chain, RuleSet.of([Rule(kind=skipped, through=True), Rule(kind=POD_KIND)]))
    if rule == "cronjob":
        below = climb(pod, lambda reference, namespace: _find(case, reference, namespace))
        return choose(pod, (*below, *chain), built_in())
    if rule in ("pod", "spark"):
        return choose(pod, (), built_in())
    found = rule_of(case)
    if found is None:
        raise Unanswerable(rule)
    top = chain[-1] if chain else pod_as_owner(pod)
    return Chosen(found, inheriting(top, ()), chain)


def rule_of(case: GroupingCase) -> Rule | None:
    """Return our rule for the rule that a case names."""
    if case.rule == "default":
        return DEFAULT_RULE
    if case.rule == "knative" and not case.settings.get("knative_gang"):
        return _KNATIVE_POD_BY_POD
    if case.rule == "kubeflow-common":
        specs = case.arguments["replica_specs"]
        return Rule(
            kind="kubeflow.org/Any",
            override=("spec.runPolicy.schedulingPolicy.minAvailable",),
            required=tuple(f"spec.{specs}.{role}" for role in case.arguments["mandatory"]),
            floor=f"sum(spec.{specs}[*].replicas else 1)",
        )
    kind = RULE_KINDS.get(case.rule)
    return built_in().rules[kind] if kind is not None else None


def _chain(case: GroupingCase) -> tuple[Owner, ...]:
    """Return the owners of a case, nearest first; the top owner stands in whole for its entry."""
    chain = [as_owner(each) for each in case.raw.get("owners") or ()]
    top = case.top_owner
    if top is None:
        return tuple(chain)
    last = chain[-1] if chain else None
    if last is not None and (last.kind, last.metadata.name) == (top.kind, top.metadata.name):
        chain.pop()
    return (*chain, top)


def as_answer(grouping: Grouping, pod: Pod) -> JSON:
    """Return a grouping as the format describes groups."""
    gang, found = grouping.gang, grouping.gang.attributes
    owner = gang.owner
    return {
        "error": False,
        "name": gang.name,
        "namespace": gang.namespace,
        "owner": {
            "apiVersion": owner.api_version,
            "kind": owner.kind,
            "name": owner.metadata.name,
            "uid": owner.metadata.uid or "",
        },
        "labels": dict(found.labels),
        "annotations": {**found.annotations, marks.TOP_OWNER: top_owner_metadata(owner)},
        "queue": found.queue,
        "priority_class": found.priority_class,
        "preemptibility": found.preemptibility,
        "preemption_delay": None if found.preemption_delay is None else found.preemption_delay.total_seconds(),
        "min_member": gang.shape.min_member or 0,
        "min_sub_group": gang.shape.min_sub_group,
        "topology": _topology(found.topology) or {"name": "", "required": "", "preferred": ""},
        "sub_groups": [_sub_group(each, grouping, pod) for each in gang.shape.sub_groups],
        "alone": grouping.alone,
        "problems": list(gang.problems),
    }


def _sub_group(group: SubGroupShape, grouping: Grouping, pod: Pod) -> JSON:
    return {
        "name": group.name,
        "min_member": group.min_member or 0,
        "min_sub_group": group.min_sub_group,
        "parent": group.parent,
        "topology": _topology(group.topology),
        "pods": [pod.metadata.name] if grouping.sub_group == group.name else [],
        "counts": group.counts,
    }


def _topology(constraint: TopologyConstraintInfo | None) -> JSON | None:
    if constraint is None:
        return None
    return {"name": constraint.topology, "required": constraint.required, "preferred": constraint.preferred}


# -- parts of a group --------------------------------------------------------------------------------------------------


def _priority_class(case: GroupingCase) -> JSON:
    rule = Rule(kind="any/Any", priority=str(case.arguments.get("fallback") or ""))
    name, problems = attributes.priority_class(_chain(case), case.pod, rule, world(case))
    return {"priority_class": name, "problems": list(problems)}


def _preemption_delay(case: GroupingCase) -> JSON:
    found = attributes.duration(KAI_PREEMPTION_DELAY, _chain(case), case.pod, least=timedelta())
    return {"preemption_delay": None if found is None else found.total_seconds()}


def _default_for_kind(case: GroupingCase) -> JSON:
    entries = [msgspec.convert(each, type=KindDefault) for each in case.arguments["defaults"].values()]
    wanted = case.arguments["group_kind"]
    owner = Owner(api_version=f"{wanted['group']}/v1" if wanted["group"] else "v1", kind=wanted["kind"])
    found = World(kind_defaults=kind_defaults(entries)).default_for(owner)
    return {
        "priority_class": found.priority_name if found is not None else "",
        "preemptibility": found.preemptibility if found is not None else "",
    }


def _defaults_config_map(case: GroupingCase) -> JSON:
    found = case.arguments.get("config_map")
    try:
        defaults = parse_defaults(found.get("data") if found else None)
    except InvalidDefaults as error:
        return {"error": True, "message": str(error)}
    return {"error": False, "defaults": [msgspec.to_builtins(each) for each in defaults.values()]}


def _launcher_exists(case: GroupingCase) -> JSON:
    top = case.top_owner
    assert top is not None
    living = [
        each
        for each in world(case).peers(top, Pod())
        if not each.metadata.deleting and each.metadata.labels.get("training.kubeflow.org/job-role") == "launcher"
    ]
    return {"error": False, "launcher_exists": bool(living)}


def _delayed_launcher(case: GroupingCase) -> JSON:
    """Return what the floor of an MPIJob with so many pods becomes."""
    raw = msgspec.json.decode(msgspec.json.encode(case.raw))
    specs = raw["top_owner"].setdefault("spec", {}).setdefault("mpiReplicaSpecs", {})
    launchers = (specs.get("Launcher") or {}).get("replicas", 1)
    specs["Worker"] = {"replicas": case.arguments["initial_min_member"] - launchers}
    return _group(GroupingCase(case.id, case.check, {**raw, "rule": "mpi"}))


def _registry(case: GroupingCase) -> JSON:
    kind = case.raw["kind"]
    name = group_kind(f"{kind['group']}/{kind['version']}" if kind["group"] else kind["version"], kind["kind"])
    rule = built_in().get(name, {})
    if rule is None:
        also = [f"{each['group']}/{each['kind']}" for each in case.raw.get("generic_rules_for") or ()]
        generic = bool(case.settings.get("generic_rules")) and name in also
        return {"rule": "karta" if generic else "default", "kind": name}
    if rule.through and rule.kind != RULE_KINDS["cronjob"]:
        return {"rule": "skip-top-owner", "kind": name}
    return {"rule": next((key for key, each in RULE_KINDS.items() if each == name), "default"), "kind": name}


def _inherit(case: GroupingCase) -> JSON:
    found = inheriting(as_owner(case.raw["into"]), (as_owner(case.raw["skipped"]),))
    return {"labels": dict(found.metadata.labels), "annotations": dict(found.metadata.annotations)}


def _top_owner_annotation(case: GroupingCase) -> JSON:
    top = case.top_owner or as_owner(case.raw.get("object") or {})
    text = top_owner_metadata(top)
    return {"annotation": text, "value": text, "text": text}


# -- when to act -------------------------------------------------------------------------------------------------------


def _namespace_filter(case: GroupingCase) -> JSON:
    name = case.pod.metadata.namespace
    found = next((as_owner(each) for each in case.of_kind("Namespace") if each["metadata"]["name"] == name), None)
    labels = found.metadata.labels if found is not None else None
    return {"result": selecting.namespace_matches(labels, case.raw.get("selector"))}


def _node_pool_label(case: GroupingCase) -> JSON:
    own, of_pod = case.raw.get("group_labels") or {}, case.raw.get("pod_labels") or {}
    return {"value": attributes.node_pool(own, of_pod, case.raw["node_pool_label"]) or ""}


# -- what a case's API server holds ------------------------------------------------------------------------------------


def conventions(case: GroupingCase) -> Conventions:
    """Return which labels mean what in a case."""
    return Conventions(
        queue_label=case.settings.get("queue_label", ""), node_pool_label=case.settings.get("node_pool_label", "")
    )


def world(case: GroupingCase) -> World:
    """Return what can be read in a case."""
    return World(
        find=lambda kind, namespace, name: _object(case, kind, namespace, name),
        peers=lambda owner, pod: _peers(case, owner),
        priority_classes={each["metadata"]["name"] for each in case.of_kind("PriorityClass")},
        kind_defaults=_kind_defaults(case),
    )


def _kind_defaults(case: GroupingCase) -> Mapping[tuple[str, str], KindDefault]:
    place = case.settings.get("defaults_config_map")
    for each in case.of_kind("ConfigMap"):
        if place and each["metadata"]["name"] == place["name"]:
            try:
                return parse_defaults(each.get("data"))
            except InvalidDefaults:
                return {}
    return {}


def _object(case: GroupingCase, kind: str, namespace: str, name: str) -> Owner | None:
    for each in case.of_kind(kind.rpartition("/")[2]):
        found = as_owner(each)
        here = (found.metadata.namespace or "") == namespace or not namespace
        if found.group_kind == kind and found.metadata.name == name and here:
            return found
    return None


def _find(case: GroupingCase, reference: OwnerReference, namespace: str) -> Owner:
    found = _object(case, group_kind(reference.api_version, reference.kind), namespace, reference.name)
    if found is None:
        raise missing(reference)
    return found


def _peers(case: GroupingCase, owner: Owner) -> Iterable[Pod]:
    """Return the pods of a workload: those it owns, and those that carry its name as the operators label them."""
    for raw in case.of_kind("Pod"):
        pod = as_pod(raw)
        if (pod.metadata.namespace or "") != (owner.metadata.namespace or ""):
            continue
        owned = any(each.uid == owner.metadata.uid for each in pod.metadata.owner_references)
        named = pod.metadata.labels.get("training.kubeflow.org/job-name") == owner.metadata.name
        if owned or named:
            yield pod


def _pod_patch(case: GroupingCase) -> JSON:
    """Return what the pod carries: the label that names its gang."""
    group: dict[str, Any] = case.raw["group"]
    own = next((each["name"] for each in group["sub_groups"] if case.pod.metadata.name in each["pods"]), None)
    labels = selecting.gang_labels(group["name"], own)
    return {
        "error": False,
        "pod_group": labels[marks.POD_GANG],
        "sub_group": labels.get(marks.POD_CLIQUE),
        "labels": labels,
    }


_QUESTIONS: Final[Mapping[str, Callable[[GroupingCase], JSON]]] = {
    "group": _group,
    "whole": _whole,
    "sub_groups": _sub_groups,
    "priority_class": _priority_class,
    "preemptibility": lambda case: {"preemptibility": attributes.preemptibility(_chain(case), case.pod, world(case))},
    "preemption_delay": _preemption_delay,
    "default_for_kind": _default_for_kind,
    "defaults_config_map": _defaults_config_map,
    "is_spark_pod": lambda case: {
        "is_spark_pod": choose(case.pod, (), built_in()).rule.labels[:1] == ("spark-app-name",)
    },
    "launcher_exists": _launcher_exists,
    "delayed_launcher": _delayed_launcher,
    "registry": _registry,
    "inherit_from_skipped": _inherit,
    "top_owner_annotation": _top_owner_annotation,
    "skip_requested": lambda case: {"result": selecting.skip_requested(as_owner(case.raw["object"]).metadata)},
    "skip_requested_by_owner": lambda case: {
        "result": selecting.skip_requested_by(as_owner(each).metadata for each in case.raw["owners"] or ())
    },
    "ownerless_and_grouped": lambda case: {
        "result": not case.pod.metadata.owner_references and selecting.foreign_group(case.pod) is not None
    },
    "namespace_filter": _namespace_filter,
    "labels_match": lambda case: {"result": selecting.labels_match(case.raw.get("labels"), case.raw.get("selector"))},
    "node_pool_label": _node_pool_label,
    "pod_patch": _pod_patch,
}
