"""Why a task found no node, in words: counted on the spot, while the attempt that failed is still in the ledger."""

import numpy as np

from spinney.gangs.tree import DEFAULT_POD_SET, PodSet
from spinney.scheduler.nodes import NodeSet
from spinney.scheduler.placement.judging import resource_fit
from spinney.scheduler.results import FitError
from spinney.scheduler.session import Session
from spinney.scheduler.tasks import PodInfo

NO_NODES = "no nodes with enough resources were found"


def refusal_of(session: Session, pod_set: PodSet, task: PodInfo, found: int, nodes: NodeSet) -> FitError:
    """Return why ``task``, after ``found`` others of its pod set found room, found none on ``nodes``."""
    why = session.pre_predicate(task) or _counted(session, task, nodes)
    if pod_set.min_member > 1 and task.job.active(pod_set) < pod_set.min_member:
        where = "" if pod_set.name == DEFAULT_POD_SET else f" of sub-group {pod_set.name}"
        text = f"Resources were found for {found} pods{where} while {pod_set.min_member} are required. {why}"
    else:
        text = f"{task.namespace}/{task.name}: {why}"
    return FitError("PodSchedulingErrors", text)


def _counted(session: Session, task: PodInfo, nodes: NodeSet) -> str:
    """Return how many nodes lack resources, and how many each plugin refuses with the reason it gives for the first."""
    later, _ = resource_fit(session.nodes, task.request, nodes.rows)
    lacking = int(np.count_nonzero(~later))
    counts = [f"{lacking} node(s) had insufficient resources"] if lacking else []
    for plugin, refused in session.judge.refused_by(task, nodes):
        number = int(np.count_nonzero(refused))
        if number:
            reason = session.judge.reason_of(plugin, task, nodes.where(refused)[0])
            counts.append(f"{number} node(s) were refused by plugin {plugin}{reason}")
    return f"{NO_NODES}: {'. '.join(sorted(counts))}." if counts else f"{NO_NODES}."
