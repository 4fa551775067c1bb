"""Between deciding and binding: whether what was decided on a snapshot still holds.

A cycle decides on a snapshot while the cluster goes on. Before a gang's pods are handed to the binder, each is checked
against the ledger as it is now: the pod is still the same and still pending, its node is still there and has the room,
parts of shared devices included, and the devices chosen for its claims are still free. A node that changed since the
snapshot (a taint, a label, a condition, the mode of its GPUs) is asked once more whether it suits the pod; where pods
came to nodes that the cycle knew nothing of, rules between pods (host ports, affinity, spreading, volumes) are asked
once more about pods that have some, or that others have some about. Where nothing changed this costs nothing. If one
pod fails, nothing of that gang is bound, and it is tried again in the next cycle. What passes is assumed on its node at
once, so two gangs of one cycle, or two schedulers of one process, never share the same room.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
import structlog

from spinney.cluster.dra.book import ClaimBook
from spinney.cluster.filters.framework import LIVE_FILTERS, NODE_FILTERS, FilterFramework
from spinney.cluster.fitting import in_usable_mode
from spinney.cluster.pods import PodRecord
from spinney.cluster.state import ClusterState
from spinney.cluster.statuses import PodStatus
from spinney.gangs.tree import GangKey
from spinney.scheduler.framework.results import Binding

log = structlog.get_logger()

PORTION: Final = 64
"""Pods whose decisions are checked in one go; it takes some three milliseconds, in which nothing else is done."""
_NODE_RULES: Final = FilterFramework(NODE_FILTERS)
_POD_RULES: Final = FilterFramework(LIVE_FILTERS)


class BookPositions(NamedTuple):
    """What a cluster had seen when it was looked at: positions in its books."""

    nodes: int
    arrivals: int

    @classmethod
    def of(cls, cluster: ClusterState) -> "BookPositions":
        """Return the present moment."""
        return cls(cluster.table.static.position, cluster.arrivals)


class Changes(NamedTuple):
    """What is not as it was: the rows of nodes, and whether pods came to nodes by other decisions."""

    rows: Collection[int]
    pods: bool


def changes_since(cluster: ClusterState, moment: BookPositions) -> Changes:
    """Return what has changed in a cluster."""
    rows = cluster.table.static.since(moment.nodes)
    everything = range(cluster.table.capacity)
    return Changes(everything if rows is None else frozenset(rows.tolist()), cluster.arrivals != moment.arrivals)


def by_gang(binds: Iterable[Binding]) -> dict[GangKey, list[Binding]]:
    """Return binds by gang, in the order in which they were decided."""
    gangs: dict[GangKey, list[Binding]] = {}
    for bind in binds:
        gangs.setdefault(bind.gang, []).append(bind)
    return gangs


def whole_gangs(binds: Sequence[Binding], start: int) -> int:
    """Return up to where binds that are still being decided are complete: the last gang may not be."""
    # Read once: while this counts, the worker that decides may append to the list.
    end = len(binds)
    last = binds[end - 1].gang if end > start else None
    while end > start and binds[end - 1].gang == last:
        end -= 1
    return end


def portion(binds: Sequence[Binding], start: int, *, complete: bool) -> int:
    """Return where the next portion of binds ends: whole gangs, and about so many pods as are bound at a time.

    ``complete``: nothing is decided any more.
    """
    known = len(binds) if complete else whole_gangs(binds, start)
    end = min(start + PORTION, known)
    while start < end < known and binds[end].gang == binds[end - 1].gang:
        end += 1
    return end


def assume_gang(cluster: ClusterState, claims: ClaimBook, binds: Sequence[Binding], *, changed: Changes) -> str | None:
    """Assume every pod of a gang on its node, or none and return why the decision no longer holds.

    ``changed`` is what changed since the decision.
    """
    assumed: list[Binding] = []
    for bind in binds:
        problem = stale(cluster, bind, changed) or _claimed(claims, bind)
        if problem is not None:
            for each in assumed:
                forget(cluster, claims, each)
            log.info("decision outdated", gang=str(bind.gang), pod=str(bind.pod), node=bind.node, problem=problem)
            return problem
        cluster.assume(bind.pod, bind.node, bind.gpu_groups, arriving=False)
        for key, devices in bind.claims.items():
            claims.assume(key, bind.node, devices, bind.uid)
        assumed.append(bind)
    return None


def forget(cluster: ClusterState, claims: ClaimBook, bind: Binding) -> None:
    """Take back what was assumed of a pod that was not bound."""
    cluster.forget(bind.pod)
    for key in bind.claims:
        claims.forget(key, bind.uid)


def stale(cluster: ClusterState, bind: Binding, changed: Changes) -> str | None:
    """Return why a decision no longer holds, or None if it does."""
    record = cluster.pod(bind.pod)
    if record is None or record.uid != bind.uid:
        return "the pod is gone"
    if record.status is not PodStatus.PENDING:
        return f"the pod is {record.status.value}"
    row = cluster.table.find(bind.node)
    if row is None:
        return "the node is gone"
    if row in changed.rows and (problem := _unsuitable(cluster, record, row)) is not None:
        return problem
    if changed.pods and (problem := _unwelcome(cluster, record, row)) is not None:
        return problem
    if not cluster.ledger.fits(row, record.request, bind.gpu_groups):
        return "the node has no room any more"
    return None


def _unsuitable(cluster: ClusterState, record: PodRecord, row: int) -> str | None:
    """Return why a node may not take a pod any more, by the rules that look at the node alone."""
    if not in_usable_mode(cluster.table, np.array([row], dtype=np.intp), record.request)[0]:
        return "the node does not suit the pod any more: its GPUs are in another mode"
    return _refused(_NODE_RULES, cluster, record, row)


def _unwelcome(cluster: ClusterState, record: PodRecord, row: int) -> str | None:
    """Return why other pods keep a pod off a node by now."""
    if record.request.mig_slices and any(each.request.legacy_mig for each in cluster.on_node.of_row(row).values()):
        return "the node does not suit the pod any more: a pod on it has MIG instances by annotation"
    if not (record.request.looks_around or cluster.has_rules_about(record)):
        return None
    return _refused(_POD_RULES, cluster, record, row)


def _refused(rules: FilterFramework, cluster: ClusterState, record: PodRecord, row: int) -> str | None:
    verdict = rules.feasible(cluster.view, record.pod, cluster.table.mask([row]))
    if verdict.feasible:
        return None
    reasons = [verdict.pre_filter] if verdict.pre_filter else [refusal.reason for refusal in verdict.refusals]
    return f"the node does not suit the pod any more: {', '.join(reasons)}"


def _claimed(claims: ClaimBook, bind: Binding) -> str | None:
    lost = next((key for key, devices in bind.claims.items() if not claims.may_hold(key, devices)), None)
    return f"claim {lost.name} or the devices chosen for it went elsewhere" if lost is not None else None
