"""Promises of pods and groups that a profile cannot keep, because it leaves out the plugin that would: such pods wait.

kube-scheduler's own rules may be disabled as they may there. A group's minimum, its topology and the devices of a claim
are promises to the user: a pod that would be bound without them is refused, and told what is missing.
"""

from collections.abc import Collection
from typing import Final

from spinney.api.core import Pod
from spinney.coscheduling.framework import SUCCESS, CycleState, Handle, PreFilter, Status
from spinney.coscheduling.plugins.coscheduling import Coscheduling
from spinney.coscheduling.plugins.dynamic_resources import DynamicResources
from spinney.coscheduling.plugins.group_topology import GroupTopology
from spinney.reporting.pods import INADMISSIBLE

KEEPERS: Final = {Coscheduling.name: "permit", GroupTopology.name: "filter", DynamicResources.name: "filter"}
"""The plugins that keep promises, and the extension point at which each does."""


class Unkept(PreFilter):
    """Refuses pods whose promises nobody in the profile keeps."""

    name = "Unkept"

    def __init__(self, handle: Handle, missing: Collection[str]) -> None:
        super().__init__(handle, {})
        self._missing = frozenset(missing)

    def pre_filter(self, state: CycleState, pod: Pod) -> Status:
        """Refuse a member of a group, one that must lie in a domain, or a user of claims, without the plugin for it."""
        group = self._services.groups.of_pod(pod)
        needs = {
            Coscheduling.name: f"pod group {group.name} has a minimum" if group is not None else "",
            GroupTopology.name: f"pod group {group.name} must lie in one domain" if group and group.scopes else "",
            DynamicResources.name: "the pod has device claims" if pod.spec.resource_claims else "",
        }
        for plugin, need in needs.items():
            if need and plugin in self._missing:
                return Status.unresolvable(
                    f"{need}, but the profile has no plugin {plugin}; enable it", waits=INADMISSIBLE
                )
        return SUCCESS
