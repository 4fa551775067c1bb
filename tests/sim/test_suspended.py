"""Suspended workloads are counted where they are served, and what is not served any more has none."""

from spinney.kube.client import Client
from spinney.sim.overview.suspended import SuspendedCounts, suspended_counts
from tests.scheduler.process.world import World, given_a_world, status


@given_a_world
async def test_a_kind_that_goes_while_it_is_counted_has_none(world: World) -> None:
    """A CRD that is removed between the look for its kind and the list of its objects ends no command."""
    world.transport.fault = lambda method, path: status(404, "NotFound") if path == "/apis/batch/v1/jobs" else None
    assert await suspended_counts(Client(world.transport, world.runtime)) == SuspendedCounts()
