"""What a list of plugins loses that leaves out some of the default ones, for whoever writes one."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from spinney.scheduler.config import PluginOption

_LOST: Final[Mapping[str, str]] = {
    "predicates": "pods with rules about nodes wait, and no pod goes to a node that is cordoned, tainted or not ready",
    "proportion": "queues have no quotas and fair shares, and jobs in queues with a limit wait",
    "priority": "the priority of jobs does not decide who comes first",
    "elastic": "jobs below their minimum do not come before those that only grow",
    "kubeflow": "the master of a Kubeflow job is not placed before its workers",
    "ray": "the head of a Ray cluster is not placed before its workers",
    "nodeavailability": "nodes with free room are not preferred to those where something must first terminate",
    "packing": "pods and shares of GPUs are not packed, so large gangs find less room",
    "resourcetype": "pods without GPUs do not avoid GPU nodes",
    "podaffinity": "preferred affinity between pods is ignored",
    "subgrouporder": "sub-groups below their minimum do not come first",
    "taskorder": "the order that pods of a job ask for is ignored",
    "nominatednode": "a pod does not prefer the node it was nominated for",
    "dynamicresources": "pods with device claims wait",
    "minruntime": "jobs may be evicted before their min-runtime is over",
    "topology": "gangs that require a topology level wait, and preferred levels are ignored",
}
_INSTEAD: Final[Mapping[str, frozenset[str]]] = {
    "packing": frozenset({"nodeplacement", "gpupack", "gpuspread"}),
}
"""Plugins that do another thing in the place of a default one."""


def left_out(plugins: Sequence[PluginOption]) -> Iterator[str]:
    """Return a sentence for each default plugin that is missing or disabled."""
    present = {option.name for option in plugins if option.enabled}
    for name, loss in _LOST.items():
        if name not in present and not present & _INSTEAD.get(name, frozenset()):
            yield f"without plugin {name} {loss}"
