"""A loop whose rounds fail goes on, says so, and gives its lease away when that does not end."""

import asyncio
from typing import Any

import pytest

from spinney.kube.client import Client
from spinney.kube.lease import LeaderElection, LeaseGivenAway
from spinney.kube.manager import Manager
from spinney.kube.metrics import KubeMetrics
from spinney.kube.rounds import MOST_IN_A_ROW, Rounds
from spinney.runtime import Runtime
from tests.kube.model import ModelServer
from tests.virtual_time import on_virtual_time


class Replica:
    """A process with a loop whose rounds fail while ``broken``."""

    def __init__(self, server: ModelServer, runtime: Runtime, identity: str, *, broken: bool = False) -> None:
        client = Client(server, runtime)
        self.metrics = KubeMetrics()
        self.election = LeaderElection(client, "op", "x", identity=identity, runtime=runtime)
        self.manager = Manager(client, runtime, election=self.election, metrics=self.metrics)
        self.rounds = Rounds(self.manager, "work")
        self.manager.add_runnable("work", self._loop)
        self.broken = broken
        self.went_well = 0
        self.failed_at: list[float] = []
        self._clock = runtime.clock

    async def _loop(self) -> None:
        while True:
            self.went_well += await self.rounds.attempt(self._round)

    async def _round(self) -> None:
        await self._clock.sleep(1)
        if self.broken:
            self.failed_at.append(self._clock.monotonic())
            raise RuntimeError("lost my configuration")

    def metric(self, name: str) -> Any:
        """Return a figure of the loop."""
        return self.metrics.registry.get_sample_value(name, {"loop": "work"})


@on_virtual_time
async def test_a_round_that_fails_is_told_and_backed_off() -> None:
    """Rounds that fail follow each other more and more slowly; readiness and metrics say so until one goes well."""
    runtime = Runtime.virtual()
    replica = Replica(ModelServer(runtime), runtime, "one", broken=True)
    running = asyncio.create_task(replica.manager.run())
    await runtime.clock.sleep(12)
    rests = [later - earlier for earlier, later in zip(replica.failed_at, replica.failed_at[1:], strict=False)]
    assert rests == pytest.approx([1.1, 1.2, 1.4, 1.8, 2.6][: len(rests)])
    assert len(rests) >= 4
    assert "RuntimeError: lost my configuration" in (replica.rounds.problem() or "")
    assert replica.metric("spinney_failed_rounds_in_a_row") == len(replica.failed_at)

    replica.broken = False
    await runtime.clock.sleep(10)
    assert replica.rounds.problem() is None
    assert replica.metric("spinney_failed_rounds_in_a_row") == 0
    assert replica.metric("spinney_failed_rounds_total") == len(replica.failed_at)
    replica.manager.stop()
    await running


@on_virtual_time
async def test_a_leader_whose_rounds_fail_gives_its_lease_away() -> None:
    """After some failures in a row another replica leads; the process lives, and may lead again."""
    runtime = Runtime.virtual()
    server = ModelServer(runtime)
    bad, good = Replica(server, runtime, "bad", broken=True), Replica(server, runtime, "good")
    first = asyncio.create_task(bad.manager.run())
    await runtime.clock.sleep(5)
    second = asyncio.create_task(good.manager.run())
    await runtime.clock.sleep(120)
    assert len(bad.failed_at) == MOST_IN_A_ROW
    assert good.election.leading
    assert good.went_well
    assert not first.done()

    bad.broken = False
    good.manager.stop()
    await second
    await runtime.clock.sleep(60)
    assert bad.election.leading
    assert bad.went_well
    bad.manager.stop()
    await first


@on_virtual_time
async def test_a_round_that_is_stuck_says_where_and_costs_the_lease() -> None:
    """A round that takes too long is named with what it is busy with; later the lease is given away."""
    runtime = Runtime.virtual()
    replica = Replica(ModelServer(runtime), runtime, "one")
    replica.rounds.takes(20, "plugin slow at predicate")
    assert replica.rounds.problem() is None
    replica.rounds.takes(40, "plugin slow at predicate")
    assert replica.rounds.problem() == "busy for 40 s with plugin slow at predicate"
    with pytest.raises(LeaseGivenAway, match="plugin slow at predicate"):
        replica.rounds.takes(121, "plugin slow at predicate")
