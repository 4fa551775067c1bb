"""Why a task found no node, in words: counted on the spot, while the attempt that failed is still in the ledger.

Another job that asks for the same is refused without being tried; then the sentence is written anew, about its own pod.
"""

from typing import Final, NamedTuple

import numpy as np

from spinney.cluster.statuses import ACTIVE_ALLOCATED, PodStatus
from spinney.gangs.tree import DEFAULT_POD_SET, PodSet
from spinney.scheduler.evaluation.fitting import resource_fit
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeInfo, NodeSet
from spinney.scheduler.framework.results import FitError
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo

_TO_PLACE: Final = ACTIVE_ALLOCATED | {PodStatus.PENDING}
NO_NODES = "no nodes with enough resources were found"


class _Counts(NamedTuple):
    """How many nodes lack resources, and how many each plugin refuses, with the first of them."""

    lacking: int
    refused: tuple[tuple[str, int, NodeInfo], ...]


def refusal_of(session: Session, pod_set: PodSet, task: PodInfo, found: int, nodes: NodeSet) -> FitError:
    """Return why ``task``, after ``found`` others of its pod set found room, found none on ``nodes``."""
    counts = None if session.ask.pre_predicates.said(task) else _counted(session, task, nodes)
    below = pod_set.min_member > 1 and task.job.active(pod_set) < pod_set.min_member
    place = _alike(task.job, pod_set, task.request.number).index(task)

    def about(other: PodInfo) -> str:
        why = session.ask.pre_predicates.said(other) if counts is None else None
        why = why or _text(session, other, counts or _counted(session, other, nodes))
        if below:
            where = "" if pod_set.name == DEFAULT_POD_SET else f" of sub-group {pod_set.name}"
            return f"Resources were found for {found} pods{where} while {pod_set.min_member} are required. {why}"
        return f"{other.namespace}/{other.name}: {why}"

    def rewrite(job: PodGroupInfo) -> str:
        return about(_alike(job, pod_set, task.request.number)[place])

    return FitError("PodSchedulingErrors", about(task), rewrite=rewrite)


def _alike(job: PodGroupInfo, pod_set: PodSet, request: int) -> list[PodInfo]:
    """Return the tasks of a pod set that make one request and are to be placed, or have just been."""
    return [
        task for task in job.by_pod_set[pod_set.name] if task.request.number == request and task.status in _TO_PLACE
    ]


def _counted(session: Session, task: PodInfo, nodes: NodeSet) -> _Counts:
    later, _ = resource_fit(session.nodes, task.request, nodes.rows)
    refused = [
        (plugin, number, nodes.where(mask)[0])
        for plugin, mask in session.ask.node_rules.refused_by(task, nodes)
        if (number := int(np.count_nonzero(mask)))
    ]
    return _Counts(int(np.count_nonzero(~later)), tuple(refused))


def _text(session: Session, task: PodInfo, counts: _Counts) -> str:
    parts = [f"{counts.lacking} node(s) had insufficient resources"] if counts.lacking else []
    for plugin, number, first in counts.refused:
        reason = session.ask.node_rules.reason_of(plugin, task, first)
        parts.append(f"{number} node(s) were refused by plugin {plugin}{reason}")
    return f"{NO_NODES}: {'. '.join(sorted(parts))}." if parts else f"{NO_NODES}."
