"""From the outcome of one session to the cluster the next one finds.

Between rounds pods live on: what was bound runs, what was only promised is pending again (promises are not kept
between sessions), what was evicted is gone and recreated under its name, unless the job's pods are to stay terminating.
Ages, ranks and stale marks do not advance.
"""

import msgspec

from spinney.sim.cases import format as cases
from spinney.sim.cases.format import Case, Task
from spinney.sim.cases.outcome import SessionOutcome, TaskOutcome

_STARTED = frozenset({"Running", "Binding", "Bound"})


def fold(case: Case, outcome: SessionOutcome) -> Case:
    """Return the case whose cluster is what ``outcome`` makes of this one's."""
    jobs = tuple(_fold_job(job, outcome) for job in case.jobs)
    dra = case.dra
    if dra is not None:
        dra = msgspec.structs.replace(dra, claims=outcome.claims)
    return msgspec.structs.replace(case, jobs=jobs, dra=dra)


def _fold_job(job: cases.Job, outcome: SessionOutcome) -> cases.Job:
    tasks = tuple(
        _fold_task(task, outcome.tasks[task.name], stays_releasing=job.after_release == "stay_releasing")
        for task in job.tasks
    )
    started = 1.0 if any(task.state in _STARTED for task in tasks) else None
    return msgspec.structs.replace(job, tasks=tasks, started_minutes_ago=started)


def _fold_task(task: Task, after: TaskOutcome, *, stays_releasing: bool) -> Task:
    match after.status:
        case "Binding":
            return msgspec.structs.replace(task, state="Running", node=after.node, gpu_groups=after.gpu_groups)
        case "Pipelined":
            return msgspec.structs.replace(task, state="Pending", node=None, gpu_groups=())
        case "Releasing" if not stays_releasing:
            return msgspec.structs.replace(task, state="Pending", node=None, gpu_groups=())
        case _:
            return msgspec.structs.replace(task, state=after.status, node=after.node, gpu_groups=after.gpu_groups)
