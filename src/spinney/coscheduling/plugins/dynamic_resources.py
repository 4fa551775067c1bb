"""DynamicResources: pods with resource claims are refused, with the reason, instead of being placed blindly."""

from collections.abc import Mapping
from typing import Any

from spinney.api.core import Pod
from spinney.coscheduling.framework.handle import Handle
from spinney.coscheduling.framework.points import CycleState, PreFilter
from spinney.coscheduling.framework.status import SUCCESS, Status
from spinney.coscheduling.plugins.arguments import NoArguments, read


class DynamicResources(PreFilter):
    """Stands where kube-scheduler allocates claims. A pod bound without its claims would never start."""

    name = "DynamicResources"

    def __init__(self, handle: Handle, arguments: Mapping[str, Any]) -> None:
        read(NoArguments, arguments)

    def pre_filter(self, state: CycleState, pod: Pod) -> Status:
        """Refuse a pod that uses claims."""
        if not pod.spec.resource_claims:
            return SUCCESS
        names = ", ".join(claim.name for claim in pod.spec.resource_claims)
        return Status.unresolvable(f"resource claims are not allocated by this scheduler: {names}")
