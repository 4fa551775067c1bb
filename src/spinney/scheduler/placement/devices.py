"""Choosing the GPUs of a node that a task shares.

Candidates are the shared devices with room and the devices nobody uses yet. The GPU order of the plugins ranks them;
ties go to devices already shared, then by group id. A choice that depends on something terminating can only be
pipelined.
"""

from typing import Final, NamedTuple

from spinney.runtime.faults import raised
from spinney.scheduler.evaluation.node_answers import GPU_SCORE
from spinney.scheduler.framework.nodes import NodeInfo
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.framework.validation import finite

WHOLE_DEVICE: Final = "-2"
"""What a GPU order is asked about for a device nobody uses yet."""


class DeviceChoice(NamedTuple):
    """The groups a task would use, and whether it can use them now."""

    groups: tuple[str, ...]
    now: bool


class _Candidate(NamedTuple):
    rank: tuple[float, bool, str]
    group: str
    now: bool


def choose_devices(session: Session, task: PodInfo, node: NodeInfo) -> DeviceChoice | None:
    """Return the devices of ``node`` for ``task``, or ``None`` if there are too few."""
    share = task.request.share
    assert share is not None, "only tasks that share a device choose one"
    parts = share.parts_on(node.gpu_memory)
    found: list[_Candidate] = []
    only_releasing = 0
    for group, use in node.shared_gpus.items():
        if use.active + use.pipelined == 0:
            only_releasing += 1
        if use.free_later >= parts:
            score = _score(session, task, node, group)
            if score is not None:
                found.append(_Candidate((-score, False, group), group, use.exists and use.free >= parts))
    idle = node.idle_gpus
    whole = idle + node.releasing_gpus - only_releasing
    score = _score(session, task, node, WHOLE_DEVICE)
    if score is not None:
        found += [
            _Candidate((-score, True, f"{number:09d}"), WHOLE_DEVICE, number < idle)
            for number in range(min(max(whole, 0), share.devices))
        ]
    if len(found) < share.devices:
        return None
    chosen = sorted(found)[: share.devices]
    groups = tuple(session.new_gpu_group() if each.group == WHOLE_DEVICE else each.group for each in chosen)
    return DeviceChoice(groups, all(each.now for each in chosen))


def _score(session: Session, task: PodInfo, node: NodeInfo, group: str) -> float | None:
    """Return the sum of what plugins say; ``None`` drops the device because one of them failed."""
    total = 0.0
    for hook in session.hooks.gpu_order:
        try:
            with session.timings.measure(hook.plugin, GPU_SCORE):
                total += finite(hook.fn(task, node, group))
        except raised() as error:  # a device without a score is dropped
            event = "plugin failed to score a device, which is dropped"
            session.failures.add(event, hook.plugin, GPU_SCORE, hook.fn, error)
            return None
    return total
