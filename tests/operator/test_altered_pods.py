"""Admission by others that takes off pods what the operator finds them by is told, and makes no pods come and go."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from spinney.api import labels as marks
from spinney.api.core import POD
from spinney.api.grove import POD_CLIQUE
from spinney.api.struct import JSON
from spinney.operator.status.last_errors import TRIED_AGAIN_SECONDS
from spinney.server.admission.attributes import Attributes
from spinney.testing.builders import a_clique, a_pod_clique_set
from tests.operator.harness import World, a_world
from tests.virtual_time import on_virtual_time

ALTERATIONS: dict[str, Callable[[JSON], object]] = {
    f"label {marks.MANAGED_BY}": lambda pod: pod["metadata"]["labels"].pop(marks.MANAGED_BY),
    f"label {marks.POD_TEMPLATE_HASH}": lambda pod: pod["metadata"]["labels"].pop(marks.POD_TEMPLATE_HASH),
    f"label {marks.POD_GANG}": lambda pod: pod["metadata"]["labels"].update({marks.POD_GANG: "other"}),
    "metadata.ownerReferences": lambda pod: pod["metadata"].pop("ownerReferences"),
    f"gate {marks.POD_GANG_GATE}": lambda pod: pod["spec"].update({"schedulingGates": [{"name": "example.com/own"}]}),
}


@dataclass
class Policy:
    """Someone's mutating admission of pods, as long as it is in force. Mutable."""

    alter: Callable[[JSON], object]
    in_force: bool = True
    created: int = 0

    async def admit(self, attributes: Attributes) -> None:
        """Change a pod that is created, and count those that stay."""
        if attributes.operation != "CREATE" or attributes.kind.storage != "pods" or attributes.obj is None:
            return
        self.created += not attributes.dry_run
        if self.in_force:
            self.alter(attributes.obj)


@pytest.mark.parametrize("what", ALTERATIONS)
@on_virtual_time
async def test_what_a_policy_takes_off_pods_is_named_and_pods_come_when_it_is_gone(what: str) -> None:
    """The PodClique says what is changed and by whom, no pod is left, few were made, and all come within a minute."""
    policy = Policy(ALTERATIONS[what])
    async with a_world() as world:
        world.server.admit_with(policy)
        await world.apply(a_pod_clique_set("model", [a_clique("a", 2)]))
        await asyncio.sleep(600)
        said = await _said(world)
        assert (said["code"], what in said["description"]) == ("PodAltered", True)
        assert f"{marks.MANAGED_BY}=grove-operator" in said["description"]
        assert not (await world.client.list(POD, "test")).items
        assert policy.created <= 2
        policy.in_force = False
        world.witness.violations.clear()
        await asyncio.sleep(TRIED_AGAIN_SECONDS * 1.1 + 5)
        assert [pod.is_true("Ready") for pod in await world.pods()] == [True, True]


async def _said(world: World) -> JSON:
    found: JSON = await world.client.get(POD_CLIQUE, "model-0-a", "test")
    (said,) = found["status"]["lastErrors"]
    return dict(said)
