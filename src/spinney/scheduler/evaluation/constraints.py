"""Constraints that no plugin of a session keeps: a pod with one waits and says so, for it would not be met.

Which nodes suit a pod, which lie near each other, which devices a claim gets and what a queue may hold are rules of
plugins, and a configuration may leave them out. A plugin says what it keeps (:attr:`Plugin.honours`); for what is left
the answer is no: a job with such a constraint is not tried, and nodes that turn pods away are not used.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from spinney.api.affinity import Affinity
from spinney.api.core import Pod
from spinney.cluster.classes import PodConstraints
from spinney.cluster.filters.framework import NODE_FILTERS, FilterFramework
from spinney.cluster.table import Mask
from spinney.scheduler.fairshare.amounts import NO_BOUND
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeSet
from spinney.scheduler.framework.plugin import Constraint
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo

NAME: Final = "honouring"
_ALL: Final = frozenset(Constraint)
_NODE_RULES: Final = FilterFramework(NODE_FILTERS)


def unhonoured(session: Session, job: PodGroupInfo) -> str | None:
    """Return the constraint of a job that no plugin of the session keeps, and what to do; ``None`` if there is none."""
    for constraint in _unkept(session):
        find, provider = _FINDERS[constraint]
        if found := find(session, job):
            return f"{found}, but no loaded plugin keeps {constraint.value}: add {provider} to the plugins"
    return None


def keep_off_closed_nodes(session: Session) -> None:
    """Keep pods off nodes that turn some away (taints, cordons, failures), where no plugin can tell whom."""
    if Constraint.NODE_RULES not in _unkept(session):
        return
    open_to_all = _NODE_RULES.feasible(session.nodes.surroundings, Pod()).mask
    if not open_to_all[session.nodes.all.rows].all():

        def suits(task: PodInfo, job: PodGroupInfo, nodes: NodeSet) -> Mask:
            return open_to_all[nodes.rows]

        with session.hooks.attributed_to(NAME):
            session.add_predicate_columns(suits, per_job=False, reads_usage=False)


def _unkept(session: Session) -> Iterable[Constraint]:
    if not session.config.refuse_unhonoured or session.honoured >= _ALL:
        return ()
    return [constraint for constraint in Constraint if constraint not in session.honoured]


def _node_rules(session: Session, job: PodGroupInfo) -> str:
    return next((f"a pod has {rule}" for request in job.asked for rule in _rules(request.constraints)), "")


def _topology(session: Session, job: PodGroupInfo) -> str:
    constraints = (part.topology for part in job.root.parts() if part.topology is not None)
    return next((f"topology level {each.required} is required" for each in constraints if each.required), "")


def _device_claims(session: Session, job: PodGroupInfo) -> str:
    claims = (each.name for request in job.asked for each in request.constraints.claims)
    return next((f"a pod has the device claim {name}" for name in claims), "")


def _queue_limits(session: Session, job: PodGroupInfo) -> str:
    tree = session.queues
    limited = (tree.queues[position] for position in tree.path(job.queue))
    return next((f"queue {queue.name} has a limit" for queue in limited if queue.limit != NO_BOUND), "")


_FINDERS: Final[Mapping[Constraint, tuple[Callable[[Session, PodGroupInfo], str], str]]] = {
    Constraint.NODE_RULES: (_node_rules, "predicates"),
    Constraint.TOPOLOGY: (_topology, "topology"),
    Constraint.DEVICE_CLAIMS: (_device_claims, "dynamicresources"),
    Constraint.QUEUE_LIMITS: (_queue_limits, "proportion"),
}
"""What says which constraint of each sort a job has, and the built-in plugin that keeps such."""


def _rules(constraints: PodConstraints) -> Iterable[str]:
    if constraints.node_selector:
        yield "a nodeSelector"
    if constraints.affinity is not None and _requires(constraints.affinity):
        yield "a required affinity"
    if constraints.host_ports:
        yield "host ports"
    if any(each.when_unsatisfiable == "DoNotSchedule" for each in constraints.topology_spread):
        yield "a topologySpreadConstraint"
    if constraints.volumes:
        yield "volumes"


def _requires(affinity: Affinity) -> bool:
    kinds = (affinity.node_affinity, affinity.pod_affinity, affinity.pod_anti_affinity)
    return any(each.required_during_scheduling_ignored_during_execution for each in kinds if each is not None)
