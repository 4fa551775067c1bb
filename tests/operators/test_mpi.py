"""MPIJobs made into pods by the MPI operator's own controller are gangs."""

import pytest

from tests.operators.conftest import Ground
from tests.operators.published import for_our_nodes, published
from tests.operators.staging import a_stage

pytestmark = [pytest.mark.real, pytest.mark.operators, pytest.mark.timeout(1800)]


async def test_an_mpi_job_comes_up_whole(ground: Ground) -> None:
    """Launcher and workers of the published example wait whole for three nodes; a lost worker joins the gang again."""
    (example,) = published("mpi").documents("examples/v2beta1/pi/pi.yaml")
    async with a_stage(ground, "mpi", nodes=2) as stage, stage.applied(for_our_nodes(example)):
        await stage.until_floors({"launcher": 1, "worker": 2})
        await stage.until_refused(3)
        await stage.add_nodes(1)
        await stage.until_running(3)
        before = stage.uids()
        await stage.lose("pi-worker-1")
        await stage.until(lambda: len(stage.running()) == 3 and len(stage.uids() & before) == 2)
        assert stage.floors() == [{"launcher": 1, "worker": 2}]


async def test_a_launcher_that_starts_later_is_needed_later(ground: Ground) -> None:
    """With WaitForWorkersReady two workers start on two nodes, and the launcher waits for a node of its own."""
    (example,) = published("mpi").documents("examples/v2beta1/pi/pi.yaml")
    example["spec"]["launcherCreationPolicy"] = "WaitForWorkersReady"
    async with a_stage(ground, "mpi", nodes=2) as stage, stage.applied(for_our_nodes(example)):
        await stage.until_running(2)
        await stage.until_refused(1)
        await stage.add_nodes(1)
        await stage.until_running(3)
