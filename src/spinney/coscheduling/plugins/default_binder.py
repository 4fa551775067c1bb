"""DefaultBinder: tells the API server where a pod goes."""

from spinney.api.core import Pod
from spinney.binding.placement import GangPlacement, Placement
from spinney.coscheduling.framework import SUCCESS, Bind, CycleState, Status
from spinney.kube.keys import key_of


class DefaultBinder(Bind):
    """Posts the binding, and the event that says so."""

    name = "DefaultBinder"

    async def bind(self, state: CycleState, pod: Pod, node: str) -> Status:
        """Bind one pod; the binder has reported it when it was refused."""
        key = key_of(pod)
        placement = Placement(key, pod.metadata.uid or "", node)
        outcome = await self._services.binder.bind(GangPlacement(str(key), (placement,)))
        return Status.error(outcome.failed[0].error) if outcome.failed else SUCCESS
