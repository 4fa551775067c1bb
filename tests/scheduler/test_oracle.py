"""Plugins get the decisions they would get if they were asked about each pod and each node each time."""

import os
from random import Random

import pytest
from structlog.testing import capture_logs

from spinney.scheduler.config import PluginOption, SchedulerConfig, VictimSearchLimits
from spinney.scheduler.cycle.scheduler import Scheduler
from spinney.scheduler.framework.plugin import PluginRegistry
from spinney.scheduler.framework.session import Session
from spinney.scheduler.plugins.packing import learning
from tests.scheduler.building import KNOWN, a_runtime
from tests.scheduler.oracle.naive import naive_result
from tests.scheduler.oracle.plugins import a_plugin
from tests.scheduler.oracle.worlds import a_world

CASES = int(os.environ.get("SPINNEY_ORACLE_CASES", "100"))
FIRST = int(os.environ.get("SPINNEY_ORACLE_FIRST", "0"))
_BATCHES = 10


def a_scheduler(seed: int) -> tuple[Scheduler, str]:
    """Return a scheduler with random plugins among the built-in ones, and what they do."""
    chance = Random(seed)
    registry = PluginRegistry({name: KNOWN.builder(name) for name in KNOWN})
    options = list(SchedulerConfig().plugins)
    if chance.random() < 0.7:
        options = [each for each in options if each.name != "packing"]
        options += [PluginOption(name) for name in ("gpusharingorder", "gpupack", "nodeplacement")]
    told = []
    for number in range(chance.choice((0, 1, 1, 2, 2, 3))):
        plugin = a_plugin(f"drawn-{number}", chance.randrange(1 << 30))
        registry.register(plugin.name, plugin)
        options.insert(chance.randint(0, len(options)), PluginOption(plugin.name))
        told.append(plugin.__doc__ or "")
    config = SchedulerConfig(
        plugins=tuple(options),
        explain=False,
        backtracking=chance.random() < 0.7,
        spare_just_bound=chance.random() < 0.5,
        narrow_victims=chance.random() < 0.7,
        victim_search=VictimSearchLimits(action_seconds=1e6, job_seconds=1e6),
    )
    return Scheduler(config, a_world(seed), runtime=a_runtime(), registry=registry), "; ".join(told)


def decisions(session: Session) -> dict[str, object]:
    """Return everything that a session has decided; ids of shared devices are made up."""
    return {
        "binds": sorted((each.pod.name, each.node, sorted(each.annotations.items())) for each in session.binds),
        "devices": sorted((claim.name, given) for each in session.binds for claim, given in each.claims.items()),
        "evictions": [(each.pod.name, each.moves_to) for each in session.evictions],
        "promises": sorted((each.pod.name, each.node) for each in session.pipelines),
        "refused": sorted(str(key) for key in session.fit_errors),
        "started": session.started,
    }


def compare(seed: int) -> None:
    """Assert that both frameworks decide the same."""
    scheduler, told = a_scheduler(seed)
    session = scheduler.open_session()
    scheduler.run_actions(session)
    session.close()

    other, _ = a_scheduler(seed)
    naive = other.open_session()
    naive_result(other, naive)
    naive.close()

    assert decisions(session) == decisions(naive), f"case {seed}: {told}"


@pytest.mark.parametrize("batch", range(_BATCHES))
def test_decisions_are_those_of_asking_everything(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random plugins over every extension point, random clusters and gangs, all actions: the same decisions."""
    # When packing learns anew depends on how many placements it is told of together, as it asks to be.
    monkeypatch.setattr(learning, "_FEWEST_CHANGES", 1_000_000)
    with capture_logs():  # tracebacks of plugins that fail on purpose take longer than the cases
        for seed in range(FIRST + batch, FIRST + CASES, _BATCHES):
            compare(seed)
