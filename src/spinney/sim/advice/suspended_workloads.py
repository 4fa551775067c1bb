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
from spinney.kube.errors import Forbidden, InternalError, NotFound
from spinney.queueing.suspended import GROUPS
from spinney.queueing.virtual_gang import virtual_gang
from spinney.runtime.tasks import together
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
    """Return what ``KIND/NAME`` or ``NAME`` names, if it is one that is suspended, not Kueue's, and may be read."""
    word, slash, name = text.rpartition("/")
    called = {each.lower(): each for each in GROUPS}.get(word.lower().split(".")[0].removesuffix("s"))
    kinds = [called] if called is not None else [] if slash else list(GROUPS)
    ask = _suspended if slash else _suspended_if_listed
    listed = await together(*(ask(client, kind, name, namespace) for kind in kinds))
    found = [each for some in listed for each in some]
    found = [
        each for each in found if not each["metadata"].get("ownerReferences")
    ] or found  # a TrainJob, not its JobSet
    try:
        return SuspendedSubject(found[0], await _runtimes(client, found[0])) if len(found) == 1 else None
    except (Forbidden, NotFound):
        return None  # the answer is then that of a workload without pods


async def _suspended(client: Client, kind: str, name: str, namespace: str | None) -> list[JSON]:
    """Return the suspended workloads of a kind and name that may be read and are not Kueue's."""
    try:
        resource = await find_kind(client, GROUPS[kind], kind)
        if resource is None:
            return []
        listed = (await client.list(resource, namespace, field_selector=f"metadata.name={name}")).items
    except (Forbidden, NotFound):
        return []
    return [
        {**each, "apiVersion": resource.api_version, "kind": kind}
        for each in listed
        if (each.get("spec") or {}).get("suspend") and KUEUE_QUEUE not in _labels(each)
    ]


async def _suspended_if_listed(client: Client, kind: str, name: str, namespace: str | None) -> list[JSON]:
    """Return the same of a kind that nobody named: if the API server cannot list it, the answer does not need it."""
    try:
        return await _suspended(client, kind, name, namespace)
    except InternalError:
        return []


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
