"""Making sense of an input that cannot be: more shared devices on a node than it has.

Where a case does not say which device a running task shares, each such task was given one of its own (``auto-<task>``).
On a node with fewer devices than that makes, those tasks are put together again, first come first served, which is
what the author of such a case had in mind.
"""

import msgspec

from spinney.cluster.devices import DEVICE
from spinney.sim.cases import format as cases
from spinney.sim.cases.format import Case, Task

_CAVEAT = "input-overcommitted"
_MADE_UP = "auto-"
_HOLDING = frozenset({"Running", "Binding", "Bound", "Releasing"})


def settled(case: Case) -> Case:
    """Return the case with made-up devices shared where it says that its input is over-committed."""
    if _CAVEAT not in case.caveats:
        return case
    groups = _shared(case)

    def with_group(task: Task) -> Task:
        group = groups.get(task.name)
        return task if group is None else msgspec.structs.replace(task, gpu_groups=(group,))

    def with_groups(job: cases.Job) -> cases.Job:
        return msgspec.structs.replace(job, tasks=tuple(map(with_group, job.tasks)))

    return msgspec.structs.replace(case, jobs=tuple(map(with_groups, case.jobs)))


def _shared(case: Case) -> dict[str, str]:
    """Return the device of each task that was given a made-up one."""
    chosen: dict[str, str] = {}
    room: dict[str, dict[str, int]] = {}
    memory = {node.name: node.gpu_memory for node in case.nodes}
    for job in case.jobs:
        for task in job.tasks:
            made_up = len(task.gpu_groups) == 1 and task.gpu_groups[0].startswith(_MADE_UP)
            if not made_up or task.state not in _HOLDING or task.node is None:
                continue
            devices = room.setdefault(task.node, {})
            parts = _parts(task, memory[task.node])
            group = next((group for group, free in devices.items() if free >= parts), task.gpu_groups[0])
            devices[group] = devices.get(group, DEVICE) - parts
            chosen[task.name] = group
    return chosen


def _parts(task: Task, device_memory: int) -> int:
    requests = task.requests
    if requests.gpu_kind == "gpu_memory":
        return -(-(requests.gpu_memory or 0) * DEVICE // device_memory)
    return round((requests.gpu_fraction or 0) * DEVICE)
