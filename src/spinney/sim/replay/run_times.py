"""What jobs of a trace say about how long they will run: nothing, the truth, or something that is off."""

import math
import random
from dataclasses import replace

from spinney.sim.replay.trace import Trace


def stating(trace: Trace, factor: float, seed: int = 0) -> Trace:
    """Return a trace whose jobs state their run times, each off by up to ``factor``, either way; 1 is the truth."""
    chance = random.Random(seed)
    reach = math.log(factor)
    return trace.with_jobs(
        tuple(
            job
            if job.duration is None
            else replace(job, stated=job.duration * math.exp(chance.uniform(-reach, reach) if reach else 0.0))
            for job in trace.jobs
        )
    )


def stating_nothing(trace: Trace) -> Trace:
    """Return a trace whose jobs state no run times."""
    return trace.with_jobs(tuple(replace(job, stated=None) for job in trace.jobs))
