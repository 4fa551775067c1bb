"""A backend that cannot keep to a required constraint refuses it instead of ignoring it."""

import pytest

from spinney.kube.errors import Invalid
from tests.e2e.backends import WITHOUT_TOPOLOGY, on
from tests.e2e.harness import Stages
from tests.e2e.workloads import topology


@on(*WITHOUT_TOPOLOGY)
async def test_a_constraint_that_cannot_hold_is_refused(a_stage: Stages) -> None:
    """A backend that knows no topology refuses a required constraint instead of ignoring it."""
    async with a_stage(1) as stage:
        await stage.bind_topology()
        with pytest.raises(Invalid, match="topologyConstraint"):
            await stage.deploy(topology.hierarchy())
