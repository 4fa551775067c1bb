"""Workloads that make no pods themselves but another workload, which does: what that one is, for simulations.

A CronJob makes Jobs, of which one is simulated. KubeRay makes a RayCluster of a RayJob and of a RayService. Kubeflow's
trainer makes a JobSet of a TrainJob (:mod:`.train_jobs`).
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from spinney.api.struct import JSON
from spinney.grouping.owners import group_kind
from spinney.grouping.terms import RuleRefused
from spinney.grouping.train_jobs import RUNTIMES, job_set_made

_WITHIN: Final[Mapping[str, tuple[str, str, tuple[str, ...]]]] = {
    "batch/CronJob": ("batch/v1", "Job", ("jobTemplate", "spec")),
    "ray.io/RayJob": ("ray.io/v1", "RayCluster", ("rayClusterSpec",)),
    "ray.io/RayService": ("ray.io/v1", "RayCluster", ("rayClusterConfig",)),
}
"""What each kind makes, and where in its spec the spec of that is."""
_TRAIN_JOB: Final = "trainer.kubeflow.org/TrainJob"


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
