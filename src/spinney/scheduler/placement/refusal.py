"""Why a task found no node, in words."""

from spinney.gangs.tree import DEFAULT_POD_SET, PodSet
from spinney.scheduler.nodes import NodeSet
from spinney.scheduler.results import FitError
from spinney.scheduler.session import Session
from spinney.scheduler.tasks import PodInfo


def refusal_of(session: Session, pod_set: PodSet, task: PodInfo, found: int, nodes: NodeSet) -> FitError:
    """Return why ``task``, after ``found`` others of its pod set found room, found none."""
    why = session.pre_predicate(task) or _reasons(session, task, nodes)
    placed = task.job.active(pod_set)
    if pod_set.min_member > 1 and placed < pod_set.min_member:
        where = "" if pod_set.name == DEFAULT_POD_SET else f" of sub-group {pod_set.name}"
        text = f"Resources were found for {found} pods{where} while {pod_set.min_member} are required. {why}"
    else:
        text = f"{task.namespace}/{task.name}: {why}"
    return FitError("PodSchedulingErrors", text)


def _reasons(session: Session, task: PodInfo, nodes: NodeSet) -> str:
    return "no nodes with enough resources were found"
