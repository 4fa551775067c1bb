"""Where the jobs of a recording ran when it began: there they begin, as far as their nodes have room for them.

A pod may be on a node that the recording does not have, or on one that offers less than when it came; its job is placed
by the scheduler, then.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from spinney.sim.replay.trace import WHOLE, Job, Machine, RecordedGang, RecordedPod


def in_place(jobs: Iterable[Job], machines: Iterable[Machine]) -> Iterator[Job]:
    """Yield jobs, those that ran from the beginning on their nodes as far as these have room."""
    rooms = {machine.name: _Room(machine) for machine in machines}
    for job in jobs:
        recorded = job.recorded
        if recorded is None or not recorded.runs_from_the_beginning or _moves_in(recorded, rooms):
            yield job
        else:
            pods = tuple(replace(pod, node="", gpu_groups=()) for pod in recorded.pods)
            yield replace(job, recorded=replace(recorded, pods=pods))


@dataclass
class _Room:
    """A machine and what is on it. Mutable."""

    machine: Machine
    taken: Counter[str] = field(default_factory=Counter)
    shared: Counter[str] = field(default_factory=Counter)
    """Thousandths in use, by group of pods that share a device."""

    def put(self, pod: RecordedPod, sign: int) -> None:
        ask = pod.ask
        self.taken.update({"cpu": sign * ask.cpu, "memory": sign * ask.memory})
        self.taken.update({name: sign * amount for name, amount in ask.others})
        if ask.milli == WHOLE:
            self.taken["gpus"] += sign * ask.gpus
        else:
            self.shared.update(dict.fromkeys(pod.gpu_groups, sign * ask.milli))

    @property
    def holds(self) -> bool:
        """Tell whether the machine has what is taken."""
        machine, taken = self.machine, self.taken
        devices = taken["gpus"] + sum(amount > 0 for amount in self.shared.values())
        return (
            taken["cpu"] <= machine.cpu
            and taken["memory"] <= machine.memory
            and devices <= machine.gpus
            and all(amount <= WHOLE for amount in self.shared.values())
            and all(taken[name] <= amount for name, amount in machine.others.items())
        )


def _moves_in(recorded: RecordedGang, rooms: dict[str, _Room]) -> bool:
    """Put all pods of a job on their nodes; ``False``, and none is put, if one finds no room there."""
    if not all(_is_placeable(pod, rooms) for pod in recorded.pods):
        return False
    for pod in recorded.pods:
        rooms[pod.node].put(pod, 1)
    if all(rooms[pod.node].holds for pod in recorded.pods):
        return True
    for pod in recorded.pods:
        rooms[pod.node].put(pod, -1)
    return False


def _is_placeable(pod: RecordedPod, rooms: dict[str, _Room]) -> bool:
    room, ask = rooms.get(pod.node), pod.ask
    if room is None or not {name for name, _ in ask.others} <= room.machine.others.keys():
        return False
    return ask.milli == WHOLE or len(pod.gpu_groups) == ask.gpus
