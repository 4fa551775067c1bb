"""JobSets made into pods by JobSet's own controller are gangs."""

from pathlib import Path

import pytest
import yaml

from spinney.api.struct import JSON
from tests.operators.conftest import Ground
from tests.operators.published import for_our_nodes
from tests.operators.staging import a_stage

pytestmark = [pytest.mark.real, pytest.mark.operators, pytest.mark.timeout(1800)]

DATA = Path(__file__).resolve().parents[1] / "data" / "operators"
PAIRED = {"leader-replica-0": 1, "workers-replica-0": 2, "workers-replica-1": 2}


def example(name: str) -> JSON:
    """Return an example whose pods ask for our scheduler and a node each."""
    return for_our_nodes(yaml.safe_load((DATA / name).read_text()))


async def test_a_jobset_comes_up_whole_and_restarts_whole(ground: Ground) -> None:
    """Nothing of it is bound before all five pods fit; when one fails, its policy makes all five anew, as one gang."""
    async with a_stage(ground, "jobset", nodes=4) as stage, stage.applied(example("jobset.yaml")):
        await stage.until_floors(PAIRED)
        await stage.until_refused(5)
        await stage.add_nodes(1)
        await stage.until_running(5)
        before = stage.uids()
        await stage.fail(next(name for name in sorted(stage.running()) if "workers-1" in name))
        await stage.until_made_anew(before)
        await stage.until_running(5)
        assert stage.floors() == [PAIRED]


async def test_a_job_that_starts_later_is_needed_later(ground: Ground) -> None:
    """The first job starts although nothing of the second exists; the second then starts whole or not at all."""
    async with a_stage(ground, "jobset", nodes=2) as stage, stage.applied(example("jobset-depends.yaml")):
        await stage.until(lambda: any("prepare" in name for name in stage.ever_bound))
        await stage.until_refused(3)
        await stage.add_nodes(1)
        await stage.until_running(3)
