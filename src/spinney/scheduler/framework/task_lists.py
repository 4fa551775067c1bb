"""The tasks of a job, made from its pods as a session sees them."""

from datetime import timedelta
from typing import TYPE_CHECKING

from spinney.cluster.classes import RequestClass
from spinney.cluster.pods import PodKey, PodRecord
from spinney.cluster.statuses import ACTIVE_USED, PodStatus
from spinney.cluster.table import Holding
from spinney.gangs.tree import PodSet
from spinney.scheduler.framework.tasks import NOWHERE, REQUEST, PodInfo

if TYPE_CHECKING:
    from spinney.scheduler.framework.jobs import PodGroupInfo
    from spinney.scheduler.framework.session import Session


def tasks_of(job: "PodGroupInfo", session: "Session") -> dict[str, list[PodInfo]]:
    """Return the tasks of a job by pod set, in task order; pods that name an unknown pod set are left out."""
    plain = job.plain
    if plain is not None:
        request, only = plain.request, plain.pod_set
        return {
            only.name: [PodInfo(record, job, only, request, PodStatus.PENDING, NOWHERE) for record in plain.records]
        }
    pod_sets = job.gang.pod_sets
    tasks: dict[str, list[PodInfo]] = {name: [] for name in pod_sets}
    members = job.members
    if len(pod_sets) == 1 and len(members.counts) == 1 and members.pending == len(members.pods):
        ((name, only),) = pod_sets.items()
        alike = [
            PodInfo(record, job, only, record.request, PodStatus.PENDING, NOWHERE)
            for set_name, record in members.pods.values()
            if set_name == name
        ]
        if not any(map(session.devices.changes, set(map(REQUEST, alike)))):
            session.ask.sort_tasks(alike)
            tasks = {name: alike}
            if job.places is not None:
                job.places.carry_over(tasks)
            return tasks
    for set_name, record in members.pods.values():
        pod_set = pod_sets.get(set_name)
        if pod_set is None:
            continue
        request = record.request
        if session.devices.changes(request):
            request = session.devices.effective_request(record)
        if record.node:
            task = _placed_task(session, record, job, pod_set, request)
        else:
            task = PodInfo(record, job, pod_set, request, record.status, NOWHERE)
        tasks[set_name].append(task)
    for each in tasks.values():
        session.ask.sort_tasks(each)
    return tasks


def settle_stuck(session: "Session") -> frozenset[PodKey]:
    """Return the pods that have been terminating for too long; what they hold is no longer promised."""
    deadline = session.now - timedelta(seconds=session.config.stuck_in_releasing_seconds)
    stuck: list[PodKey] = []
    for record in session.snapshot.releasing:
        since = record.pod.metadata.deletion_timestamp
        row = session.nodes.table.find(record.node)
        if since is None or since > deadline or row is None:
            continue
        request = session.devices.effective_request(record)
        session.ledger.remove(row, request, Holding.RELEASING, record.gpu_groups)
        session.ledger.add(row, request, Holding.ACTIVE, record.gpu_groups)
        stuck.append(record.key)
    return frozenset(stuck)


def _placed_task(
    session: "Session", record: PodRecord, job: "PodGroupInfo", pod_set: PodSet, request: RequestClass
) -> PodInfo:
    row, status = session.nodes.table.find(record.node), record.status
    if record.key in session.stuck:
        status = PodStatus.STUCK_IN_RELEASING
    if row is None and status in ACTIVE_USED:
        # Its node is gone: it holds nothing here and cannot be counted on.
        status = PodStatus.UNKNOWN
    place = NOWHERE if row is None else row
    return PodInfo(record, job, pod_set, request, status, place, record.node, record.gpu_groups)
