"""The backend of Volcano: one Volcano PodGroup per gang, with a sub-group policy for each group of pods.

The policies hold each group's own minimum; they exist since Volcano 1.14, so the CRD is checked at start. The queue
must exist and be open. Topology is not translated: Volcano's HyperNodes are another model.
"""

from typing import ClassVar

from spinney.api import labels as marks
from spinney.api.grove import PodCliqueSet
from spinney.api.names import dns_subdomain_faults
from spinney.api.podgang import PodGang
from spinney.api.selectors import LabelSelector
from spinney.api.volcano import DEFAULT_QUEUE, POD_GROUP, QUEUE, PodGroup, PodGroupSpec, SubGroupPolicy
from spinney.backends.ensuring import ensure, metadata_for, served_fields
from spinney.backends.interface import (
    BackendUnavailable,
    Capabilities,
    Degradation,
    PodManifest,
    Rejected,
    Right,
    SchedulerBackend,
)
from spinney.backends.membership import minimum_count
from spinney.backends.requirements import preferences_lost, queue_of, reject_required_topology


class Volcano(SchedulerBackend):
    """Volcano 1.14 or later."""

    name: ClassVar[str] = "volcano"
    validates_before_init: ClassVar[bool] = True
    rights: ClassVar[tuple[Right, ...]] = (
        Right(POD_GROUP.group, (POD_GROUP.plural,), ("get", "create", "patch")),
        Right(QUEUE.group, (QUEUE.plural,), ("get",)),
    )

    async def init(self) -> None:
        """Check that Volcano's PodGroup is installed and knows sub-group policies."""
        fields = await served_fields(self.context.client, POD_GROUP, install="Volcano 1.14 or later")
        if "subGroupPolicy" not in fields:
            raise BackendUnavailable(
                f"the installed {POD_GROUP} has no spec.subGroupPolicy in a served {POD_GROUP.version}; "
                "upgrade Volcano to 1.14 or later, or remove the profile"
            )

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(gang_scheduling=True, queues=True, waits_for_group=True)

    def prepare_pod(self, pod: PodManifest, gang: PodGang) -> None:
        pod["spec"]["schedulerName"] = self.name
        annotations = pod["metadata"].setdefault("annotations", {})
        annotations[marks.VOLCANO_GROUP] = gang.metadata.name
        annotations[marks.LEGACY_GROUP] = gang.metadata.name

    async def validate_pod_clique_set(self, pcs: PodCliqueSet, old: PodCliqueSet | None) -> list[Degradation]:
        reject_required_topology(pcs, "and topology is not translated for Volcano")
        await self._check_queue(queue_of(pcs, marks.VOLCANO_QUEUE, label=False) or DEFAULT_QUEUE)
        return preferences_lost(pcs)

    async def sync_pod_gang(self, gang: PodGang) -> None:
        client = self.context.client
        pcs = self.context.lookup.pod_clique_set(gang)
        queue = gang.metadata.annotations.get(marks.VOLCANO_QUEUE)
        if pcs is not None:
            queue = queue_of(pcs, marks.VOLCANO_QUEUE, label=False)
        existing = await client.find(POD_GROUP, gang.metadata.name, gang.metadata.namespace)
        await ensure(client, POD_GROUP, pod_group(gang, queue or DEFAULT_QUEUE), existing)

    async def _check_queue(self, name: str) -> None:
        path = f"metadata.annotations[{marks.VOLCANO_QUEUE}]"
        if problems := dns_subdomain_faults(name):
            raise Rejected(f"{name!r} cannot be the name of a queue: {problems[0]}", path=path)
        queue = await self.context.client.find(QUEUE, name)
        if queue is None:
            raise Rejected(f"Volcano queue {name!r} does not exist", path=path)
        state = queue.get("status", {}).get("state")
        if state != "Open":
            raise Rejected(f"Volcano queue {name!r} is {state or 'not open yet'}; it must be Open", path=path)


def pod_group(gang: PodGang, queue: str) -> PodGroup:
    """Return the PodGroup of a gang."""
    return PodGroup(
        metadata=metadata_for(gang, gang.metadata.name, labels=gang.metadata.labels),
        spec=PodGroupSpec(
            min_member=max(1, minimum_count(gang)),
            queue=queue,
            priority_class_name=gang.spec.priority_class_name,
            sub_group_policy=tuple(
                SubGroupPolicy(
                    name=group.name,
                    label_selector=LabelSelector(match_labels={marks.POD_CLIQUE: group.name}),
                    match_label_keys=(marks.POD_CLIQUE,),
                    sub_group_size=max(1, group.min_replicas),
                    min_sub_groups=1,
                )
                for group in gang.spec.pod_groups
            ),
        ),
    )
