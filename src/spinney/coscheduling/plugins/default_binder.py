"""DefaultBinder: tells the API server where a pod goes."""

from collections.abc import Mapping
from typing import Any

from spinney.api.core import Pod
from spinney.binding.placement import GangPlacement, Placement
from spinney.coscheduling.framework.handle import Handle
from spinney.coscheduling.framework.points import Bind, CycleState
from spinney.coscheduling.framework.status import SUCCESS, Status
from spinney.coscheduling.plugins.arguments import take_none
from spinney.kube.keys import key_of


class DefaultBinder(Bind):
    """Posts the binding, and the event that says so."""

    name = "DefaultBinder"

    def __init__(self, handle: Handle, arguments: Mapping[str, Any]) -> None:
        take_none(arguments)
        self._binder = handle.services.binder

    async def bind(self, state: CycleState, pod: Pod, node: str) -> Status:
        """Bind one pod; the binder has reported it when it was refused."""
        key = key_of(pod)
        placement = Placement(key, pod.metadata.uid or "", node)
        outcome = await self._binder.bind(GangPlacement(str(key), (placement,)))
        return SUCCESS if outcome.complete else Status.error(outcome.failed[0].error)
