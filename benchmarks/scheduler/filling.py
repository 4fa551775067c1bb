"""Filling a cluster in one cycle, with the default plugins and any others, and what that took."""

import cProfile
import pstats
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.scheduler import shapes
from spinney.scheduler.config import PluginOption, SchedulerConfig
from spinney.scheduler.cycle.scheduler import Scheduler
from spinney.scheduler.framework.plugin import Plugin
from spinney.scheduler.framework.results import CycleResult
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.plugins import default_registry

LARGEST_SHARE_OF_EXPLAINING = 0.05
NO_LIMIT = 1e6
"""Seconds: a busy machine may take longer than a cycle has."""


@dataclass(frozen=True)
class Fill:
    """A cluster that was filled, and how long it took, in seconds."""

    inventory: Inventory
    result: CycleResult
    nodes: int
    gangs: int
    opening: float
    seconds: float
    busy: float
    together: tuple[int, int]

    @property
    def pods(self) -> int:
        """Return how many pods were placed."""
        return len(self.result.binds)

    @property
    def per_pod(self) -> float:
        """Return processor seconds per placed pod."""
        return self.busy / self.pods

    @property
    def explaining(self) -> float:
        """Return the part of the cycle that went into explaining refusals."""
        return self.result.seconds.get(("explain", "refused"), 0.0) / self.seconds

    def __str__(self) -> str:
        slowest = sorted(self.result.seconds.items(), key=lambda item: -item[1])[:6]
        held, small = self.together
        placed = len({bind.gang for bind in self.result.binds})
        return (
            f"{self.pods} pods in {placed} of {self.gangs} gangs on {self.nodes} nodes in {self.seconds:.3f} s\n"
            f"  {self.pods / self.seconds:,.0f} pods/s, {1 / self.per_pod:,.0f} per CPU second; "
            f"session opened in {1000 * self.opening:.1f} ms\n"
            f"  {self.pods / (self.nodes * shapes.GPUS):.2%} of GPUs filled, "
            f"{held}/{small} rack-sized gangs in one rack\n"
            f"  explaining took {self.explaining:.1%} of the cycle "
            f"(at most {LARGEST_SHARE_OF_EXPLAINING:.0%} is wanted)\n"
            "  " + ", ".join(f"{plugin}.{hook} {1000 * spent:.0f} ms" for (plugin, hook), spent in slowest)
        )


def fill(
    nodes: int,
    work: Iterable[shapes.Work],
    *,
    queues: bool = False,
    agents: int = 0,
    plugins: Sequence[type[Plugin]] = (),
    profile: bool = False,
) -> Fill:
    """Fill a cluster in one cycle and check the outcome; on some nodes run ``agents`` with rules about other pods."""
    inventory = shapes.a_cluster(nodes)
    shapes.put_agents(inventory, agents)
    if queues:
        shapes.put_queues(inventory, nodes)
    asked = {each.name: each for each in work}
    for each in asked.values():
        shapes.put_work(inventory, each)
    registry = default_registry()
    for plugin in plugins:
        registry.register(plugin.name, plugin)
    options = (*SchedulerConfig().plugins, *(PluginOption(plugin.name) for plugin in plugins))
    config = SchedulerConfig(actions=("allocate",), plugins=options, allocate_seconds=NO_LIMIT)
    scheduler = Scheduler(config, inventory, registry=registry)
    with profiled(wanted=profile):
        start, cpu = time.perf_counter(), time.process_time()
        session = scheduler.open_session()
        opened = time.perf_counter()
        scheduler.run_actions(session)
        result = scheduler.result(session)
        session.close()
        seconds, busy = time.perf_counter() - start, time.process_time() - cpu
    shapes.check(result, asked, nodes)
    together = shapes.in_one_rack(result, asked)
    return Fill(inventory, result, nodes, len(asked), opened - start, seconds, busy, together)


@contextmanager
def profiled(*, wanted: bool) -> Iterator[None]:
    """Say where the processor time of the block went, if that is wanted."""
    if not wanted:
        yield
        return
    profiler = cProfile.Profile(time.process_time)
    profiler.enable()
    yield
    profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(40)
