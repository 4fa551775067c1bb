"""Workloads whose GPU pods share NVLink domains, by annotation at each layer."""

from spinney.api import labels as marks
from spinney.api.struct import JSON
from tests.e2e.workloads.parts import QUEUE, a_clique, a_group, a_set


def a_gpu_clique(name: str, group: str | None = None) -> JSON:
    """Return a clique of one GPU pod, in an NVLink group of its own choice or that of its surroundings."""
    clique = a_clique(name, 1)
    clique["spec"]["podSpec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    return clique if group is None else clique | {"annotations": {marks.MNNVL_GROUP: group}}


def gpu_workload(name: str, group: str | None = None, *, cpu_too: bool = False) -> JSON:
    """Return a set with a GPU clique, in an NVLink group or none, and possibly a clique without GPUs."""
    cliques = [a_gpu_clique("gpu-worker")] + ([a_clique("cpu-worker", 1)] if cpu_too else [])
    manifest = a_set(name, cliques)
    manifest["metadata"]["labels"][marks.KAI_QUEUE] = QUEUE
    if group is not None:
        manifest["metadata"]["annotations"] = {marks.MNNVL_GROUP: group}
    return manifest


def comprehensive_mix() -> JSON:
    """Return standalone cliques and three groups that inherit, override and opt out at every layer."""
    cliques = [a_gpu_clique("s-inh"), a_gpu_clique("s-own", "solo"), a_gpu_clique("s-out", "none")]
    groups = []
    for group, own in (("inh", None), ("train", "train"), ("out", "none")):
        names = [f"{group}-a", f"{group}-b", f"{group}-c"]
        override = {"inh": "batch", "train": "batch", "out": "infer"}[group]
        cliques += [a_gpu_clique(names[0]), a_gpu_clique(names[1], override), a_gpu_clique(names[2], "none")]
        config = a_group(group, names, 1, 1)
        groups.append(config if own is None else config | {"annotations": {marks.MNNVL_GROUP: own}})
    manifest = a_set("mix", cliques, groups)
    manifest["metadata"]["annotations"] = {marks.MNNVL_GROUP: "default"}
    return manifest


MIX_GROUPS = {
    "mix-0-s-inh": "default",
    "mix-0-s-own": "solo",
    "mix-0-s-out": None,
    "mix-0-inh-0-inh-a": "default",
    "mix-0-inh-0-inh-b": "batch",
    "mix-0-inh-0-inh-c": None,
    "mix-0-train-0-train-a": "train",
    "mix-0-train-0-train-b": "batch",
    "mix-0-train-0-train-c": None,
    "mix-0-out-0-out-a": None,
    "mix-0-out-0-out-b": "infer",
    "mix-0-out-0-out-c": None,
}
"""The NVLink group each PodClique of the mix is in."""
