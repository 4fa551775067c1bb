"""The backend of the KAI scheduler: one KAI PodGroup per gang, with a tree of sub-groups.

KAI finds a pod's group by annotation and its sub-group by label, so references play no part. Its own pod grouper is
told to leave gangs alone. The queue of a PodGroup is settled when it is created and later KAI's to change. A topology
binding becomes a KAI Topology of the same name, unless the binding refers to one that is managed outside Spinney.
"""

from typing import ClassVar

import msgspec

from spinney.api import labels as marks
from spinney.api.grove import PodCliqueSet
from spinney.api.kai import (
    POD_GROUP,
    TOPOLOGY,
    GroupTopologyConstraint,
    PodGroup,
    PodGroupSpec,
    SubGroup,
    Topology,
    TopologyLevel,
    TopologySpec,
)
from spinney.api.labels import KAI_PREEMPTIBILITY, KAI_PREEMPTION_DELAY, KAI_STALENESS_GRACE
from spinney.api.meta import ObjectMeta, owner_reference
from spinney.api.podgang import POD_GANG, GangTopologyConstraint, PodGang
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.api.topology_binding import CLUSTER_TOPOLOGY_BINDING, ClusterTopologyBinding
from spinney.backends.ensuring import ForeignObject, ensure, metadata_for, served_fields
from spinney.backends.interface import (
    Capabilities,
    Degradation,
    PodManifest,
    Rejected,
    Right,
    SchedulerBackend,
    TopologyAware,
    TopologyState,
)
from spinney.backends.membership import minimum_count
from spinney.backends.requirements import between_gangs, queue_of
from spinney.gangs.sources.context import DEFAULT_QUEUE

NEVER_STALE = "-1s"
"""A gang that lost members is the operator's to recycle, not KAI's to evict."""


class KaiScheduler(SchedulerBackend, TopologyAware):
    """KAI, with queues and topology."""

    name: ClassVar[str] = "kai-scheduler"
    validates_before_init: ClassVar[bool] = True
    rights: ClassVar[tuple[Right, ...]] = (
        Right(POD_GROUP.group, (POD_GROUP.plural,), ("get", "list", "watch", "create", "update", "patch")),
        Right(TOPOLOGY.group, (TOPOLOGY.plural,), ("get", "list", "watch", "create", "patch", "delete")),
    )
    _can_stay = False

    async def init(self) -> None:
        """Check that KAI's PodGroup is installed, and whether it can be told never to go stale."""
        fields = await served_fields(self.context.client, POD_GROUP, install="the KAI scheduler")
        self._can_stay = "stalenessGracePeriod" in fields

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            gang_scheduling=True,
            required_topology=True,
            preferred_topology=True,
            group_topology=True,
            queues=True,
            every_pod_in_a_group=True,
            waits_for_group=True,
        )

    def prepare_pod(self, pod: PodManifest, gang: PodGang) -> None:
        metadata = pod["metadata"]
        pod["spec"]["schedulerName"] = self.name
        annotations = metadata.setdefault("annotations", {})
        annotations[marks.KAI_SKIP_POD_GROUPER] = "true"
        annotations[marks.KAI_POD_GROUP] = gang.metadata.name
        metadata["labels"][marks.KAI_SUB_GROUP] = metadata["labels"][marks.POD_CLIQUE]

    async def validate_pod_clique_set(self, pcs: PodCliqueSet, old: PodCliqueSet | None) -> list[Degradation]:
        if queue_of(pcs, marks.KAI_QUEUE, label=True) is None:
            raise Rejected(
                f"no queue is named; put the label {marks.KAI_QUEUE} on the PodCliqueSet", path="metadata.labels"
            )
        return between_gangs(pcs)

    async def sync_pod_gang(self, gang: PodGang) -> None:
        client = self.context.client
        existing = await client.find(POD_GROUP, gang.metadata.name, gang.metadata.namespace)
        queue = None
        if existing is not None and marks.GROUPED not in gang.metadata.labels:
            queue = existing["spec"].get("queue")
        await ensure(client, POD_GROUP, self.pod_group(gang, queue or self._queue(gang)), existing)
        if marks.KAI_SKIP_POD_GROUPER not in gang.metadata.annotations:
            patch = {"metadata": {"uid": gang.metadata.uid, "annotations": {marks.KAI_SKIP_POD_GROUPER: "true"}}}
            await client.patch(POD_GANG, gang.metadata.name, patch, gang.metadata.namespace)

    def pod_group(self, gang: PodGang, queue: str) -> PodGroup:
        """Return the PodGroup of a gang: topology groups first, then a leaf for each group of pods."""
        parents = {
            name: config.name
            for config in gang.spec.topology_constraint_group_configs
            for name in config.pod_group_names
        }
        inner = tuple(
            SubGroup(
                name=config.name,
                min_sub_group=len(config.pod_group_names),
                topology_constraint=self._constraint(gang, config.topology_constraint),
            )
            for config in gang.spec.topology_constraint_group_configs
            if config.pod_group_names
        )
        leaves = tuple(
            SubGroup(
                name=group.name,
                parent=parents.get(group.name),
                min_member=group.min_replicas,
                topology_constraint=self._constraint(gang, group.topology_constraint),
            )
            for group in gang.spec.pod_groups
        )
        metadata = metadata_for(gang, gang.metadata.name, labels=gang.metadata.labels)
        annotations = {**gang.metadata.annotations, marks.KAI_SKIP_POD_GROUPER: "true"}
        floor = gang.metadata.annotations.get(marks.MIN_GROUPS)
        spec = PodGroupSpec(
            queue=queue,
            min_member=minimum_count(gang) if floor is None else None,
            min_sub_group=None if floor is None else int(floor),
            priority_class_name=gang.spec.priority_class_name,
            topology_constraint=self._constraint(gang, gang.spec.topology_constraint),
            sub_groups=inner + leaves,
        )
        return PodGroup(
            metadata=msgspec.structs.replace(metadata, annotations=annotations),
            spec=msgspec.structs.replace(spec, **self._standing(gang)),
        )

    def _standing(self, gang: PodGang) -> dict[str, str | None]:
        """Return how long a gang may be broken and who may preempt it; a workload's gang has no operator behind it."""
        if marks.GROUPED not in gang.metadata.labels:
            return {"staleness_grace_period": NEVER_STALE if self._can_stay else None}
        annotations = gang.metadata.annotations
        return {
            "preemptibility": gang.metadata.labels.get(KAI_PREEMPTIBILITY),
            "preemption_delay": annotations.get(KAI_PREEMPTION_DELAY),
            "staleness_grace_period": annotations.get(KAI_STALENESS_GRACE) if self._can_stay else None,
        }

    # -- topology ------------------------------------------------------------------------------------------------------

    @property
    def topology_resource(self) -> Resource:
        return TOPOLOGY

    def topology_name(self, binding: ClusterTopologyBinding) -> str:
        for reference in binding.spec.scheduler_topology_bindings:
            if reference.scheduler_name == self.name:
                return reference.topology_reference
        return binding.metadata.name

    async def sync_topology(self, binding: ClusterTopologyBinding) -> TopologyState:
        client, name = self.context.client, binding.metadata.name
        existing = await client.find(TOPOLOGY, name)
        if existing is not None:
            owners = {owner["uid"] for owner in existing["metadata"].get("ownerReferences", ())}
            if binding.metadata.uid not in owners:
                raise ForeignObject(
                    f"Topology {name} exists and is not managed for ClusterTopologyBinding {name}; "
                    "refer to it in spec.schedulerTopologyBindings, or rename one of the two"
                )
            if _levels(existing) == [level.key for level in binding.spec.levels]:
                return TopologyState(True, observed_generation=existing["metadata"].get("generation"))
            await client.delete(TOPOLOGY, name, uid=existing["metadata"]["uid"])  # its levels cannot be changed
        topology = Topology(
            metadata=ObjectMeta(
                name=name, owner_references=(owner_reference(CLUSTER_TOPOLOGY_BINDING, binding.metadata),)
            ),
            spec=TopologySpec(levels=tuple(TopologyLevel(node_label=level.key) for level in binding.spec.levels)),
        )
        created: JSON = await client.create(TOPOLOGY, topology)
        return TopologyState(True, observed_generation=created["metadata"].get("generation"))

    async def check_topology(self, binding: ClusterTopologyBinding, reference: str) -> TopologyState:
        existing = await self.context.client.find(TOPOLOGY, reference)
        if existing is None:
            return TopologyState(False, f"Topology {reference!r} does not exist")
        generation = existing["metadata"].get("generation")
        wanted = [level.key for level in binding.spec.levels]
        if _levels(existing) == wanted:
            return TopologyState(True, observed_generation=generation)
        return TopologyState(
            False, f"Topology {reference!r} has levels {_levels(existing)}, the binding {wanted}", generation
        )

    # -- translating ---------------------------------------------------------------------------------------------------

    def _queue(self, gang: PodGang) -> str:
        if marks.GROUPED in gang.metadata.labels:
            return gang.metadata.labels.get(marks.KAI_QUEUE, DEFAULT_QUEUE)
        pcs = self.context.lookup.pod_clique_set(gang)
        queue = queue_of(pcs, marks.KAI_QUEUE, label=True) if pcs is not None else None
        if queue is None:
            raise Rejected(f"no queue is named; put the label {marks.KAI_QUEUE} on the PodCliqueSet")
        return queue

    def _constraint(self, gang: PodGang, constraint: GangTopologyConstraint | None) -> GroupTopologyConstraint | None:
        pack = constraint.pack_constraint if constraint is not None else None
        if pack is None or (pack.required is None and pack.preferred is None):
            return None
        annotations = gang.metadata.annotations
        name = annotations.get(marks.TOPOLOGY_NAME) or annotations.get(marks.KAI_TOPOLOGY)
        if name is None:
            raise Rejected(
                f"PodGang {gang.metadata.name} has a topology constraint and no annotation {marks.TOPOLOGY_NAME}"
            )
        binding = self.context.lookup.topology_binding(name)
        return GroupTopologyConstraint(
            topology=self.topology_name(binding) if binding is not None else name,
            required_topology_level=pack.required,
            preferred_topology_level=pack.preferred,
        )


def _levels(topology: JSON) -> list[str]:
    return [level["nodeLabel"] for level in topology["spec"]["levels"]]
