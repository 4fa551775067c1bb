"""Cycle after cycle on a world of which nothing changes but by what is decided."""

from collections.abc import Iterator
from typing import Any

from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.cycle.scheduler import Scheduler
from spinney.scheduler.framework.results import CycleResult, Eviction
from tests.scheduler.building import a_pod, a_runtime
from tests.scheduler.victims.worlds import World, build


class Rounds:
    """A scheduler and the cluster it decides about. Mutable.

    What is bound runs in the next round. What is evicted is gone, or ``slowly`` goes for a round, and has a successor
    under another name at once.
    """

    def __init__(self, world: World, *actions: str, slowly: bool = False, **changes: Any) -> None:
        self.inventory = build(world)
        self.scheduler = Scheduler(
            SchedulerConfig(actions=actions, explain=False, **changes), self.inventory, runtime=a_runtime()
        )
        self._gpus = {job.name: job.gpus for job in world.jobs}
        self._slowly = slowly
        self._successors = 0

    def decide(self) -> CycleResult:
        """Run a cycle and carry nothing out."""
        return self.scheduler.run_cycle()

    def run(self, count: int) -> Iterator[CycleResult]:
        """Run so many rounds; yield what each has decided."""
        for _ in range(count):
            result = self.decide()
            for record in self.inventory.snapshot().releasing:
                self.inventory.delete(record.pod)
            for bind in result.binds:
                self._put(bind.pod.name, bind.gang.name, node=bind.node)
            for eviction in result.evictions:
                self.evict(eviction)
            yield result

    def evict(self, eviction: Eviction) -> None:
        """Take a pod away and bring its successor."""
        record = self.inventory.cluster.pod(eviction.pod)
        assert record is not None
        if self._slowly:
            self._put(record.name, eviction.gang.name, node=record.node, terminating=True)
        else:
            self.inventory.delete(record.pod)
        self._successors += 1
        self._put(f"{eviction.gang.name}-next{self._successors}", eviction.gang.name)

    def _put(self, name: str, job: str, **changes: Any) -> None:
        self.inventory.apply(a_pod(name, gang=job, gpus=self._gpus[job], **changes))
