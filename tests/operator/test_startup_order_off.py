"""Where no start-up order is served, the operator has no use for Secrets of others."""

from spinney.api.core import SECRET
from spinney.api.grove import IN_ORDER, POD_CLIQUE_SET, PodCliqueSet
from spinney.kube.transport import Request, Response
from spinney.operator.configuration import InitContainer
from spinney.operator.operator import Settings
from spinney.sim.embedded.transport import InProcessTransport
from spinney.testing.builders import a_clique, a_pod_clique_set
from tests.operator.harness import SPINNEY, a_world
from tests.operator.test_admission import refused
from tests.operator.test_large_numbers import errors_of
from tests.scheduler.process.world import status
from tests.virtual_time import on_virtual_time

OFF = Settings(profiles=SPINNEY, init_container=InitContainer(image="spinney", enabled=False))
ORDERED = a_pod_clique_set("ordered", [a_clique("first"), a_clique("second")], startup=IN_ORDER)


class WithoutSecrets(InProcessTransport):
    """Refuses everything about Secrets, as an API server does where the right is missing."""

    async def request(self, request: Request) -> Response:
        """Pass on what is about something else."""
        return status(403, "Forbidden") if SECRET.plural in request.path else await super().request(request)


@on_virtual_time
async def test_a_set_with_a_start_up_order_is_refused() -> None:
    """Admission names the field, the switch, and what to write instead."""
    await refused(ORDERED, r"spec.template.cliqueStartupType: .*initContainer.enabled.*CliqueStartupTypeAnyOrder", OFF)


@on_virtual_time
async def test_the_operator_runs_without_any_right_to_secrets() -> None:
    """Sets without an order come up; one that was stored before says why it does not."""
    async with a_world(OFF, line=WithoutSecrets) as world:
        await world.apply(a_pod_clique_set("plain", [a_clique("worker")]))
        await world.bring_up(ORDERED)
        assert {pod.metadata.name.rpartition("-")[0] for pod in await world.pods()} == {"plain-0-worker"}
        told = await errors_of(world, POD_CLIQUE_SET, "ordered", PodCliqueSet)
        assert told.startswith("StartupOrderOff: PodCliqueSet test/ordered: start-up order is switched off")
