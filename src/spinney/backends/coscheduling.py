"""The backend of the coscheduling plugin (scheduler-plugins): one PodGroup per gang.

A PodGroup counts one minimum for all its pods, so only the minimum of each group is in it (see
:mod:`spinney.backends.membership`). It also says what that minimum requests together, which lets the scheduler refuse a
gang that cannot fit before it tries.
"""

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from spinney.api import labels as marks
from spinney.api.core import Pod, PodSpec
from spinney.api.coscheduling import POD_GROUP, PodGroup, PodGroupSpec
from spinney.api.grove import PodCliqueSet
from spinney.api.podgang import PodGang
from spinney.api.quantity import RawQuantity
from spinney.api.struct import convert, without_nulls
from spinney.backends.ensuring import ensure, metadata_for, not_served, serves
from spinney.backends.interface import (
    Capabilities,
    Degradation,
    PodManifest,
    Right,
    SchedulerBackend,
)
from spinney.backends.membership import is_member, may_release_beyond, minimum_count
from spinney.backends.requirements import pod_spec_of, preferences_lost, reject_required_topology
from spinney.cluster.requests import requested


class CoschedulingConfig(msgspec.Struct, frozen=True, rename="camel"):
    """Configuration of the coscheduling backend."""

    scheduler_name: str = "coscheduling"
    """What the scheduler that runs the plugin is called; it becomes the pods' ``schedulerName``."""
    schedule_timeout_seconds: int | None = None
    """How long placed pods wait for the rest of their gang; the plugin's own setting when absent."""


class CoschedulingBackend(SchedulerBackend):
    """A scheduler that runs the coscheduling plugin."""

    name: ClassVar[str] = "coscheduling"
    validates_before_init: ClassVar[bool] = True
    rights: ClassVar[tuple[Right, ...]] = (Right(POD_GROUP.group, (POD_GROUP.plural,), ("get", "create", "patch")),)
    config_type: ClassVar[type[msgspec.Struct] | None] = CoschedulingConfig
    config: CoschedulingConfig

    async def init(self) -> None:
        """Check that the PodGroup of scheduler-plugins is installed."""
        if not await serves(self.context.client, POD_GROUP):
            raise not_served(POD_GROUP, install="the CRD of scheduler-plugins")

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(gang_scheduling=True, minimum_members_only=True, waits_for_group=True)

    def prepare_pod(self, pod: PodManifest, gang: PodGang) -> None:
        pod["spec"]["schedulerName"] = self.config.scheduler_name
        labels = pod["metadata"]["labels"]
        if is_member(labels, gang):
            labels[marks.COSCHEDULING_GROUP] = gang.metadata.name

    def may_release(self, pod: Pod, gang: PodGang) -> bool:
        return may_release_beyond(pod, gang)

    async def validate_pod_clique_set(self, pcs: PodCliqueSet, old: PodCliqueSet | None) -> list[Degradation]:
        reject_required_topology(pcs, "and the coscheduling plugin knows no topology")
        return preferences_lost(pcs)

    async def sync_pod_gang(self, gang: PodGang) -> None:
        client = self.context.client
        pcs = self.context.lookup.pod_clique_set(gang)
        existing = await client.find(POD_GROUP, gang.metadata.name, gang.metadata.namespace)
        group = PodGroup(
            metadata=metadata_for(gang, gang.metadata.name),
            spec=PodGroupSpec(
                min_member=max(1, minimum_count(gang)),
                min_resources={} if pcs is None else minimum_resources(gang, pcs),
                schedule_timeout_seconds=self.config.schedule_timeout_seconds,
            ),
        )
        await ensure(client, POD_GROUP, group, existing)


def minimum_resources(gang: PodGang, pcs: PodCliqueSet) -> Mapping[str, RawQuantity]:
    """Return what the minimum of a gang requests together, by Kubernetes' rules."""
    total: dict[str, int] = {}
    for group in gang.spec.pod_groups:
        spec = pod_spec_of(group.name, gang, pcs)
        one = {} if spec is None else requested(Pod(spec=convert(PodSpec, without_nulls(spec))))
        for resource, amount in one.items():
            total[resource] = total.get(resource, 0) + amount * group.min_replicas
    total.pop("pods", None)
    return {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in sorted(total.items()) if amount}
