"""A backend for the (imaginary) ACME scheduler, which reads one ``AcmeGang`` object per gang.

The whole backend: what it can do, what it puts on pods, and what it makes of a gang.
"""

from typing import ClassVar

import msgspec

from spinney.api.grove import PodCliqueSet
from spinney.api.meta import owner_reference
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.resource import Resource
from spinney.api.struct import to_json
from spinney.backends import (
    BackendUnavailable,
    Capabilities,
    Degradation,
    PodManifest,
    Rejected,
    Right,
    SchedulerBackend,
)
from spinney.backends.ensuring import serves
from spinney.kube.errors import NotFound

ACME_GANG = Resource("acme.example", "v1", "AcmeGang", "acmegangs")


class AcmeConfig(msgspec.Struct, frozen=True, rename="camel"):
    """What may stand under ``config`` of the profile."""

    pool: str = "shared"


class AcmeScheduler(SchedulerBackend):
    """Gangs on ACME: all or nothing, without topology."""

    name: ClassVar[str] = "acme-scheduler"
    rights: ClassVar[tuple[Right, ...]] = (Right(ACME_GANG.group, (ACME_GANG.plural,), ("get", "create", "patch")),)
    config_type: ClassVar[type[msgspec.Struct] | None] = AcmeConfig
    config: AcmeConfig

    async def init(self) -> None:
        """Refuse to start on a cluster without ACME."""
        if not await serves(self.context.client, ACME_GANG):
            raise BackendUnavailable("the cluster does not serve acmegangs.acme.example; install ACME")

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(gang_scheduling=True)

    def prepare_pod(self, pod: PodManifest, gang: PodGang) -> None:
        pod["spec"]["schedulerName"] = self.name
        pod["metadata"]["labels"]["acme.example/gang"] = gang.metadata.name

    async def validate_pod_clique_set(self, pcs: PodCliqueSet, old: PodCliqueSet | None) -> list[Degradation]:
        template = pcs.spec.template
        constraints = [
            template.topology_constraint,
            *(each.topology_constraint for each in template.pod_clique_scaling_groups),
            *(each.topology_constraint for each in template.cliques),
        ]
        for each in constraints:
            if each is not None and each.required is not None:
                raise Rejected(f"ACME knows no topology, and domain {each.required!r} is required")
        return [Degradation("preferred_topology", "ACME knows no topology") for each in constraints if each is not None]

    async def sync_pod_gang(self, gang: PodGang) -> None:
        wanted = {
            "metadata": {
                "name": gang.metadata.name,
                "namespace": gang.metadata.namespace,
                "ownerReferences": [to_json(owner_reference(POD_GANG, gang.metadata))],
            },
            "spec": {
                "pool": self.config.pool,
                "minimums": {group.name: group.min_replicas for group in gang.spec.pod_groups},
            },
        }
        client = self.context.client
        try:
            found = await client.get(ACME_GANG, gang.metadata.name, gang.metadata.namespace)
        except NotFound:
            found = {}
        if found.get("spec") != wanted["spec"]:
            await client.apply(ACME_GANG, wanted, field_manager="acme-backend")
