"""Workloads that make no pods themselves but another workload, which does: what that one is, for simulations.

A CronJob makes Jobs, of which one is simulated. KubeRay makes a RayCluster of a RayJob and of a RayService. Kubeflow's
trainer makes a JobSet of a TrainJob and of the runtime it names, which therefore has to be in the file too.
"""

from collections.abc import Iterable, Mapping
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
_RUNTIMES: Final = ("ClusterTrainingRuntime", "TrainingRuntime")


def is_template(manifest: JSON) -> bool:
    """Tell whether an object only describes what others become: it makes no pods by being there."""
    return manifest.get("kind") in _RUNTIMES


def workload_made(manifest: JSON, others: Iterable[JSON]) -> JSON:
    """Return the workload that makes the pods: the one given, or what its controller makes of it.

    ``others`` are the objects beside it in the file. Raises :class:`RuleRefused` if what is needed is not there.
    """
    kind = group_kind(str(manifest.get("apiVersion")), str(manifest.get("kind")))
    if kind == _TRAIN_JOB:
        return _job_set(manifest, others)
    if kind not in _WITHIN:
        return manifest
    version, made, path = _WITHIN[kind]
    spec: Any = manifest.get("spec") or {}
    for step in path:
        spec = spec.get(step) if isinstance(spec, dict) else None
    if not isinstance(spec, dict):
        raise RuleRefused(f"spec.{'.'.join(path)}: not there, expected the spec of the {made} that it makes")
    return {"apiVersion": version, "kind": made, "metadata": manifest.get("metadata") or {}, "spec": spec}


def _job_set(manifest: JSON, others: Iterable[JSON]) -> JSON:
    spec = manifest.get("spec") or {}
    reference = spec.get("runtimeRef") or {}
    kind, name = reference.get("kind", _RUNTIMES[0]), reference.get("name", "")
    runtime = next((each for each in others if each.get("kind") == kind and each["metadata"].get("name") == name), None)
    if runtime is None:
        raise RuleRefused(f"spec.runtimeRef: its pods are described by {kind} {name!r}; put that into the file as well")
    template = (runtime.get("spec") or {}).get("template") or {}
    nodes = (spec.get("trainer") or {}).get("numNodes")
    nodes = nodes if nodes is not None else ((runtime["spec"].get("mlPolicy") or {}).get("numNodes") or 1)
    jobs = [_with_nodes(job, nodes) for job in (template.get("spec") or {}).get("replicatedJobs") or ()]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": manifest.get("metadata") or {},
        "spec": {**(template.get("spec") or {}), "replicatedJobs": jobs},
    }


def _with_nodes(job: JSON, nodes: int) -> JSON:
    """Return a replicated job of a runtime; the one that trains has a pod for each node."""
    labels = ((job.get("template") or {}).get("metadata") or {}).get("labels") or {}
    if labels.get("trainer.kubeflow.org/trainjob-ancestor-step", job.get("name")) not in ("trainer", "node"):
        return job
    template = job.get("template") or {}
    spec = {**(template.get("spec") or {}), "parallelism": nodes, "completions": nodes}
    return {**job, "template": {**template, "spec": spec}}
