"""Carrying a plan out, gang by gang, within disruption budgets.

The nodes that are to be free are cordoned first, so that whoever is evicted goes elsewhere, and opened again at the
end. Pods go through the eviction subresource: all of a gang are tried before the first goes, and the next gang follows
when those of the one before have another place. If anything is refused, nothing more is moved.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from spinney.api.core import NODE, POD
from spinney.kube.client import Client
from spinney.kube.errors import KubeError, NotFound
from spinney.sim.defrag.plan import GangMove, Plan, PodMove

PATIENCE: Final = 300.0
"""Seconds for the pods of one gang to find another place."""
_LOOK_AGAIN: Final = 1.0


class PlanStopped(Exception):
    """A plan was not carried out to its end; the text says how far it came and why."""


async def carry_out(client: Client, plan: Plan, say: Callable[[str], None], *, patience: float = PATIENCE) -> None:
    """Move what the plan moves; raises :class:`PlanStopped`."""
    cordoned = [name for name in plan.nodes if await _cordon(client, name)]
    try:
        for number, move in enumerate(plan.moves, start=1):
            await _move(client, move, patience)
            say(f"{number} of {len(plan.moves)}: {move.gang} was moved ({len(move.pods)} pods)")
    finally:
        for name in cordoned:
            await client.patch(NODE, name, {"spec": {"unschedulable": None}})


async def _cordon(client: Client, name: str) -> bool:
    """Close a node for new pods; return whether it was open."""
    node = await client.get(NODE, name)
    if node.get("spec", {}).get("unschedulable"):
        return False
    await client.patch(NODE, name, {"spec": {"unschedulable": True}})
    return True


async def _move(client: Client, move: GangMove, patience: float) -> None:
    owners = await _owners(client, move.pods)
    for dry_run in (True, False):
        for pod in move.pods:
            namespace, name = pod.pod.split("/")
            try:
                await client.evict(namespace, name, uid=pod.uid, dry_run=dry_run)
            except NotFound:
                continue  # gone: nothing of it is in the way
            except KubeError as error:
                begun = "" if dry_run else "; some of its pods were evicted before"
                raise PlanStopped(f"{move.gang} is not moved: {pod.pod} may not be evicted: {error}{begun}") from error
    clock = client.runtime.clock
    deadline = clock.monotonic() + patience
    while await _unsettled(client, move.pods, owners):
        if clock.monotonic() > deadline:
            raise PlanStopped(f"{move.gang}: its pods have found no other place after {patience:g} s")
        await clock.sleep(_LOOK_AGAIN)


async def _owners(client: Client, pods: Sequence[PodMove]) -> frozenset[str]:
    """Return who will make the pods anew."""
    uids = {pod.uid for pod in pods}
    there = await _pods_beside(client, pods)
    return frozenset(owner for each in there if each["metadata"]["uid"] in uids for owner in _owners_of(each))


async def _unsettled(client: Client, pods: Sequence[PodMove], owners: frozenset[str]) -> bool:
    """Tell whether evicted pods are still there, or pods of their owners wait for a node."""
    uids = {pod.uid for pod in pods}
    return any(
        each["metadata"]["uid"] in uids or (not each["spec"].get("nodeName") and owners & _owners_of(each))
        for each in await _pods_beside(client, pods)
    )


async def _pods_beside(client: Client, pods: Sequence[PodMove]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for namespace in sorted({pod.pod.split("/")[0] for pod in pods}):
        found += (await client.list(POD, namespace)).items
    return found


def _owners_of(pod: dict[str, Any]) -> frozenset[str]:
    return frozenset(owner["uid"] for owner in pod["metadata"].get("ownerReferences", ()))
