"""VolumeBinding: claims that wait for their first consumer get their volumes once a pod that mounts them has a node.

Where a pod may go is kube-scheduler's filter. When it has a node, the existing volumes its claims will take there are
counted as taken, so that two pods never count on the same one; before it is bound its claims are
(:mod:`spinney.binding.volumes`). A pod that loses its node gives all of that back.
"""

from collections.abc import Mapping
from typing import Any, Final

from spinney.api.core import Pod
from spinney.binding.placement import Placement
from spinney.binding.prebind import PreBindInterrupted
from spinney.cluster.filters.storage import claim_uses
from spinney.cluster.filters.volume_binding import NAME, volumes_on_node
from spinney.coscheduling.framework.handle import Handle
from spinney.coscheduling.framework.points import CycleState, FrameworkPlugin, PreBind, Reserve, StateKey
from spinney.coscheduling.framework.profile import Rules
from spinney.coscheduling.framework.status import SUCCESS, Status
from spinney.coscheduling.plugins.kube_rules import KUBE_RULES
from spinney.kube.errors import KubeError
from spinney.kube.keys import key_of

_ASSUMED: Final[StateKey[tuple[str, ...]]] = StateKey("volumes that the pod's claims will take")
_PREPARED: Final[StateKey[Placement]] = StateKey("placement for which volumes were asked for")


class VolumeBinding(Rules, Reserve, PreBind):
    """Keeps volumes for placed pods and has them bound."""

    def __init__(self, handle: Handle, arguments: Mapping[str, Any]) -> None:
        FrameworkPlugin.__init__(self, handle, arguments)
        rules = KUBE_RULES[NAME]
        Rules.__init__(self, NAME, rules.filter, rules.score, rules.events())

    def reserve(self, state: CycleState, pod: Pod, node: str) -> Status:
        """Count the existing volumes that the pod's unbound claims take on the node as theirs."""
        uses = claim_uses(pod)
        if not uses:
            return SUCCESS
        view = self._services.cluster.view
        found = [view.storage.claim(pod, use.name) for use in uses]
        claims = {claim.metadata.name: claim for claim in found if claim is not None and not claim.bound}
        chosen = volumes_on_node(view, list(claims.values()), view.table.row(node))
        for name, volume in chosen.items():
            self._services.volumes.assume(volume, claims[name])
        state.write(_ASSUMED, tuple(volume.metadata.name for volume in chosen.values()))
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Pod, node: str) -> None:
        """Count the volumes as free again, and take back what was asked for."""
        assumed = state.read(_ASSUMED)
        if assumed is not None:
            self._services.volumes.forget(assumed)
        placement = state.read(_PREPARED)
        if placement is not None:
            self._services.background(self._services.late_volumes.release(placement))

    async def pre_bind(self, state: CycleState, pod: Pod, node: str) -> Status:
        """Wait until every claim of the pod has its volume."""
        if not pod.spec.volumes:
            return SUCCESS
        placement = Placement(key_of(pod), pod.metadata.uid or "", node)
        if not self._services.late_volumes.needs(placement):
            return SUCCESS
        try:
            await self._services.late_volumes.prepare(placement)
        except PreBindInterrupted as error:
            return Status.error(error)  # what was asked for stays, for the scheduler that comes next
        except KubeError as error:
            state.write(_PREPARED, placement)
            return Status.error(error)
        return SUCCESS
