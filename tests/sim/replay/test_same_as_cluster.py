"""A replay and ``sim.Cluster`` let the same happen: both run the production scheduler on virtual time."""

from datetime import timedelta
from random import Random

import pytest

from spinney.scheduler.config import SchedulerConfig
from spinney.sim import Cluster
from spinney.sim.engine import EPOCH
from tests.sim.replay.building import a_job, a_trace, machines, replayed, told

NODES, GPUS = 3, 8


@pytest.mark.parametrize("seed", range(3))
def test_jobs_start_at_the_same_moments_in_a_replay_and_in_a_cluster(seed: int) -> None:
    """The same jobs on the same nodes, gangs among them, of which some have to wait."""
    chance = Random(seed)
    moment, jobs = 0.5, []  # no job comes when another ends
    for number in range(15):
        moment += chance.choice((5, 20, 40))
        pods = chance.choice((1, 1, 2, 3))
        jobs.append(
            a_job(f"j{number}", moment, gpus=chance.choice((4, 8)), pods=pods, duration=chance.randint(20, 200))
        )
    config = SchedulerConfig(actions=("allocate",))
    trace = a_trace(*jobs, nodes=machines(NODES, gpus=GPUS))
    replay = {name: at for at, what, name in told(trace, replayed(trace, config)) if what == "started"}

    cluster = Cluster(f"{NODES}x{GPUS}", config=config)
    for job in jobs:
        cluster.run((EPOCH - cluster.clock.now()).total_seconds() + job.submitted)
        cluster.gang(job.name, pods=job.pods, gpus=job.ask.gpus, lasting=timedelta(seconds=job.duration or 0.0))
    cluster.run()
    placed = {each.pod.name: (each.at - EPOCH).total_seconds() for each in cluster.history if each.what == "placed"}
    started = {job.name: max(at for pod, at in placed.items() if pod.startswith(f"{job.name}-")) for job in jobs}
    assert any(started[job.name] > job.submitted for job in jobs), "no job waits"
    assert started == replay
