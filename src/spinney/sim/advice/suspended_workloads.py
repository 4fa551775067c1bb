"""A suspended workload has no pods, so a question about it is one about the gang that it would be."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from spinney.api.labels import ADMISSION, KUEUE_QUEUE, QUEUED
from spinney.api.struct import JSON
from spinney.api.time import parse_timestamp
from spinney.grouping.made_workloads import RUNTIMES
from spinney.grouping.terms import RuleRefused
from spinney.kube.client import Client
from spinney.kube.discovery import find_kind
from spinney.kube.errors import Forbidden, NotFound
from spinney.queueing.suspended import GROUPS
from spinney.queueing.virtual_gang import virtual_gang
from spinney.sim.snapshots.expanding import ExpansionContext, expand
from spinney.sim.snapshots.snapshot import ClusterSnapshot


@dataclass(frozen=True)
class SuspendedSubject:
    """A suspended workload that is asked about, and the runtime that describes its pods, if one does."""

    manifest: JSON
    runtimes: tuple[JSON, ...] = ()

    def sentence(self, served: Collection[str], now: datetime) -> str:
        """Return what it waits for, where the session scheduler places pods of the schedulers that are ``served``."""
        kind, labels = self.manifest["kind"], _labels(self.manifest)
        if labels.get(ADMISSION) == QUEUED:
            try:
                virtual_gang(self.manifest, self.runtimes, names=served, priorities={}, born=now)
            except RuleRefused as error:
                return f"the {kind} is suspended, and stays so: {error}"
            return f"the {kind} is suspended, and is resumed when the gang that it would be, this one, can start"
        return (
            f"the {kind} is suspended until it is resumed; this is the gang that it would be. With the label "
            f"{ADMISSION}={QUEUED} it is resumed when that can start, where the scheduler admits suspended workloads"
        )

    def added_to(self, snapshot: ClusterSnapshot, now: datetime) -> ClusterSnapshot:
        """Return the snapshot with its gang, as old as the workload; raises :class:`InvalidWorkload`."""
        metadata = self.manifest["metadata"]
        created = metadata.get("creationTimestamp")
        context = ExpansionContext.of(
            snapshot, parse_timestamp(created) if created else now, namespace=metadata.get("namespace", "default")
        )
        return snapshot.with_objects(expand([self.manifest, *self.runtimes], context))


async def suspended_workload(client: Client, text: str, namespace: str | None) -> SuspendedSubject | None:
    """Return what ``KIND/NAME`` names, if it is suspended, not Kueue's, and may be read; ``None`` otherwise."""
    word, _, name = text.rpartition("/")
    kind = {each.lower(): each for each in GROUPS}.get(word.lower().split(".")[0].removesuffix("s"))
    try:
        resource = await find_kind(client, GROUPS[kind], kind) if kind is not None else None
        if resource is None or kind is None:
            return None
        found = (await client.list(resource, namespace, field_selector=f"metadata.name={name}")).items
        if len(found) != 1 or not (found[0].get("spec") or {}).get("suspend") or KUEUE_QUEUE in _labels(found[0]):
            return None
        manifest = {**found[0], "apiVersion": resource.api_version, "kind": kind}
        return SuspendedSubject(manifest, await _runtimes(client, manifest))
    except (Forbidden, NotFound):
        return None  # the answer is then that of a workload without pods


async def _runtimes(client: Client, manifest: JSON) -> tuple[JSON, ...]:
    """Return the runtime that a TrainJob names."""
    reference = manifest["spec"].get("runtimeRef") if manifest["kind"] == "TrainJob" else None
    if not reference:
        return ()
    resource = await find_kind(client, GROUPS["TrainJob"], reference.get("kind", RUNTIMES[0]))
    if resource is None:
        return ()
    namespace = manifest["metadata"]["namespace"] if resource.namespaced else None
    return ({**await client.get(resource, reference.get("name", ""), namespace), "kind": resource.kind},)


def _labels(manifest: JSON) -> Mapping[str, str]:
    labels: Mapping[str, str] = manifest["metadata"].get("labels") or {}
    return labels
