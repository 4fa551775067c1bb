"""Best fit on Alibaba's recommendation services, by a small event simulator that knows nothing of the scheduler.

Those who wait are tried after every single end, as in the published figures and in a replay: an instance that waits and
ends at the same moment as the one before it runs for no time, and counts as one that ran.
"""

from collections import defaultdict
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from spinney.sim.replay.trace import Ask, Machine, Trace

_END: Final = 0
_ARRIVE: Final = 1


class Outcome(NamedTuple):
    """What became of the instances."""

    waited: int
    never_ran: int
    nodes_in_use: float
    most_nodes_in_use: int


def best_fit(trace: Trace) -> Outcome:
    """Put each instance where least is left, in the order they come; who finds no room waits until its end."""
    others = sorted(trace.machines[0].others)
    whole = np.array([_offered(machine, others) for machine in trace.machines])
    needs = np.array([_asked(job.ask, others) for job in trace.jobs])
    offered = np.flatnonzero(whole.any(axis=0))
    whole, needs = whole[:, offered], needs[:, offered]
    free = whole.copy()
    beside: dict[str, npt.NDArray[np.int64]] = defaultdict(lambda: np.zeros(len(whole), dtype=np.int64))
    places: dict[int, int] = {}
    waiting: list[int] = []
    waited = never_ran = most = 0
    in_use = last = 0.0

    def placed(number: int) -> bool:
        job = trace.jobs[number]
        here = beside[job.application]
        fits = (free >= needs[number]).all(axis=1)
        if job.ask.most_per_node:
            fits &= here < job.ask.most_per_node
        (rows,) = fits.nonzero()
        if not len(rows):
            return False
        row = int(rows[((free[rows] - needs[number]) / whole[rows]).sum(axis=1).argmin()])
        free[row] -= needs[number]
        here[row] += 1
        places[number] = row
        return True

    happenings = [(job.submitted, _ARRIVE, number) for number, job in enumerate(trace.jobs)]
    happenings += [(job.ends, _END, number) for number, job in enumerate(trace.jobs) if job.ends is not None]
    for moment, together in groupby(sorted(happenings), key=itemgetter(0)):
        used = int((free < whole).any(axis=1).sum())
        in_use, last, most = in_use + used * (moment - last), moment, max(most, used)
        arrivals: list[int] = []
        for _, what, number in together:
            if what == _ARRIVE:
                arrivals.append(number)
            elif number in places:
                row = places[number]
                free[row] += needs[number]
                beside[trace.jobs[number].application][row] -= 1
                waiting = [number for number in waiting if not placed(number)]
            else:
                waiting.remove(number)
                never_ran += 1
        late = [number for number in arrivals if not placed(number)]
        waiting += late
        waited += len(late)
    return Outcome(waited, never_ran + len(waiting), in_use / last, most)


def _offered(machine: Machine, others: list[str]) -> list[float]:
    return [machine.gpus, machine.cpu, machine.memory, *(machine.others[name] for name in others)]


def _asked(ask: Ask, others: list[str]) -> list[float]:
    wanted = dict(ask.others)
    return [ask.gpus, ask.cpu, ask.memory, *(wanted.get(name, 0) for name in others)]
