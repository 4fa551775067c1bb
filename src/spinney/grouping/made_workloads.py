"""Workloads that make no pods themselves but another workload, which does: what that one is, for simulations.

A CronJob makes Jobs, of which one is simulated. KubeRay makes a RayCluster of a RayJob and of a RayService. Kubeflow's
trainer makes the JobSet of the runtime that a TrainJob names, with what the TrainJob asks for itself: the number of
nodes, the resources of each, and patches of the pod templates (``runtimePatches``, and ``podTemplateOverrides`` before
version 2.2 of the trainer).
"""

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from spinney.api.struct import JSON
from spinney.grouping.owners import group_kind
from spinney.grouping.terms import RuleRefused

_WITHIN: Final[Mapping[str, tuple[str, str, tuple[str, ...]]]] = {
    "batch/CronJob": ("batch/v1", "Job", ("jobTemplate", "spec")),
    "ray.io/RayJob": ("ray.io/v1", "RayCluster", ("rayClusterSpec",)),
    "ray.io/RayService": ("ray.io/v1", "RayCluster", ("rayClusterConfig",)),
}
"""What each kind makes, and where in its spec the spec of that is."""
_TRAIN_JOB: Final = "trainer.kubeflow.org/TrainJob"
RUNTIMES: Final = ("ClusterTrainingRuntime", "TrainingRuntime")
_STEP: Final = "trainer.kubeflow.org/trainjob-ancestor-step"
_TRAINER: Final = "trainer"
_NODE: Final = "node"
"""What the trainer calls the Job of the nodes, and in it the container that trains."""
_MERGED: Final = ("nodeSelector",)
_REPLACED: Final = ("affinity", "tolerations", "terminationGracePeriodSeconds")
_NAMED: Final = ("schedulingGates", "volumes")
"""What a patch of a pod template can change of where pods go: key by key, as a whole, or by the names of a list."""


def is_template(manifest: JSON) -> bool:
    """Tell whether an object only describes what others become: it makes no pods by being there."""
    return manifest.get("kind") in RUNTIMES


def workload_made(manifest: JSON, others: Iterable[JSON]) -> JSON:
    """Return the workload that makes the pods: the one given, or what its controller makes of it.

    ``others`` are the objects beside it in the file. Raises :class:`RuleRefused` if what is needed is not there.
    """
    kind = group_kind(str(manifest.get("apiVersion")), str(manifest.get("kind")))
    if kind == _TRAIN_JOB:
        return job_set_made(manifest, others)
    if kind not in _WITHIN:
        return manifest
    version, made, path = _WITHIN[kind]
    spec: Any = manifest.get("spec") or {}
    for step in path:
        spec = spec.get(step) if isinstance(spec, dict) else None
    if not isinstance(spec, dict):
        raise RuleRefused(f"spec.{'.'.join(path)}: not there, expected the spec of the {made} that it makes")
    return {"apiVersion": version, "kind": made, "metadata": manifest.get("metadata") or {}, "spec": spec}


def job_set_made(manifest: JSON, others: Iterable[JSON]) -> JSON:
    """Return the JobSet of a TrainJob whose runtime is among ``others``; raises :class:`RuleRefused`."""
    spec = manifest.get("spec") or {}
    runtime = _runtime(manifest, spec.get("runtimeRef") or {}, others).get("spec") or {}
    described = (runtime.get("template") or {}).get("spec") or {}
    jobs = [copy.deepcopy(dict(job)) for job in described.get("replicatedJobs") or ()]
    for name, patch in _patches(spec):
        for job in jobs:
            if job.get("name") == name:
                _patch_pods(job, patch)
    for job in jobs:
        _give_nodes(job, spec.get("trainer") or {}, runtime.get("mlPolicy") or {})
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": manifest.get("metadata") or {},
        "spec": {**described, "replicatedJobs": jobs},
    }


def _runtime(manifest: JSON, reference: JSON, others: Iterable[JSON]) -> JSON:
    kind, name = reference.get("kind", RUNTIMES[0]), reference.get("name", "")
    here = (manifest.get("metadata") or {}).get("namespace")
    for each in others:
        metadata = each.get("metadata") or {}
        elsewhere = kind == RUNTIMES[1] and here and (metadata.get("namespace") or here) != here
        if each.get("kind") == kind and metadata.get("name") == name and not elsewhere:
            return each
    raise RuleRefused(
        f"spec.runtimeRef: its pods are described by {kind} {name!r}, which is not there; create it, or put it into "
        "the same file for a simulation"
    )


def _patches(spec: JSON) -> Iterator[tuple[str, JSON]]:
    """Yield which Jobs of the runtime have their pod template patched, and how."""
    for each in spec.get("podTemplateOverrides") or ():
        for target in each.get("targetJobs") or ():
            yield target.get("name", ""), each
    for each in spec.get("runtimePatches") or ():
        template = (each.get("trainingRuntimeSpec") or {}).get("template") or {}
        for job in (template.get("spec") or {}).get("replicatedJobs") or ():
            pods = ((job.get("template") or {}).get("spec") or {}).get("template") or {}
            yield job.get("name", ""), pods


def _patch_pods(job: JSON, patch: JSON) -> None:
    template = _pod_template(job)
    metadata = template.setdefault("metadata", {})
    for field, value in (patch.get("metadata") or {}).items():
        if field in ("labels", "annotations"):
            metadata[field] = {**(metadata.get(field) or {}), **value}
    own, spec = patch.get("spec") or {}, template.setdefault("spec", {})
    spec |= {field: own[field] for field in _REPLACED if field in own}
    spec |= {field: {**(spec.get(field) or {}), **own[field]} for field in _MERGED if field in own}
    for field in (each for each in _NAMED if each in own):
        named = {each["name"]: each for each in (*(spec.get(field) or ()), *own[field])}
        spec[field] = list(named.values())


def _give_nodes(job: JSON, trainer: JSON, policy: JSON) -> None:
    """Give a Job of a runtime as many pods as nodes are asked for, with the resources of each, if it is to train."""
    wanted, name = trainer.get("numNodes"), job.get("name")
    labels = ((job.get("template") or {}).get("metadata") or {}).get("labels") or {}
    trains = labels.get(_STEP, name) in (_TRAINER, _NODE)
    mpi = policy.get("mpi")
    launched = mpi is not None and name == _NODE
    beside = mpi is not None and bool(mpi.get("runLauncherAsNode"))
    if launched and wanted is not None:
        count = max(wanted - 1, 1) if beside else wanted  # the launcher is one of the nodes
    elif launched or not trains:
        count = None
    else:
        count = wanted if wanted is not None and mpi is None else (policy.get("numNodes") or 1)
    if count is not None:
        spec = job.setdefault("template", {}).setdefault("spec", {})
        spec |= {"parallelism": count, "completions": count}
    if launched and not beside:
        return
    if trains or launched:
        _give_resources(job, trainer.get("resourcesPerNode") or {})


def _give_resources(job: JSON, own: JSON) -> None:
    for container in (_pod_template(job).get("spec") or {}).get("containers") or ():
        if container.get("name") == _NODE and own:
            container["resources"] = _merged(container.get("resources") or {}, own)


def _merged(resources: JSON, own: Mapping[str, Any]) -> JSON:
    return {**resources, **{kind: {**(resources.get(kind) or {}), **(amounts or {})} for kind, amounts in own.items()}}


def _pod_template(job: JSON) -> JSON:
    found: JSON = job.setdefault("template", {}).setdefault("spec", {}).setdefault("template", {})
    return found
