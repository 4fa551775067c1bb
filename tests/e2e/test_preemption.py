"""A gang of higher priority takes the place of one of lower priority, whole for whole."""

from spinney.api import labels as marks
from spinney.api.core import Pod
from spinney.api.scheduling import PRIORITY_CLASS
from tests.e2e.backends import KAI, REAL_KAI, SPINNEY, VOLCANO, everywhere
from tests.e2e.harness import Stage, Stages
from tests.e2e.workloads.functional import ALL, ten_pods

PRIORITIES = {"modest": 50, "urgent": 90}
"""Both below 100, from where KAI takes a job for one that may not be preempted."""


@everywhere(KAI, SPINNEY, VOLCANO, peers=(REAL_KAI,))
async def test_a_gang_of_higher_priority_takes_the_place_of_another(a_stage: Stages) -> None:
    """Ten nodes are full of a gang; another one of higher priority gets all ten, and the first waits whole."""
    async with a_stage(10) as stage:
        for name, value in PRIORITIES.items():
            await stage.client.apply(PRIORITY_CLASS, {"metadata": {"name": f"e2e-{name}"}, "value": value})
        await stage.deploy(ten_pods("modest", ALL, priorityClassName="e2e-modest"))
        await stage.until_ready(10)
        await stage.deploy(ten_pods("urgent", ALL, priorityClassName="e2e-urgent"))
        await stage.until(lambda: len(ready(stage, "urgent")) == len(stage.bound()) == 10 and len(stage.pods()) == 20)
        await stage.settle()
        assert len(ready(stage, "urgent")) == 10


def ready(stage: Stage, name: str) -> list[Pod]:
    return [pod for pod in stage.ready() if pod.metadata.labels[marks.PART_OF] == name]
