"""When workloads were created: what happened to one of the same name before is of no concern."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from spinney.api.events import Event
from spinney.api.labels import GROUPED
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.time import parse_timestamp
from spinney.gangs.source_workloads import SourceWorkload, top_owner, workload
from spinney.kube.client import Client
from spinney.kube.discovery import find_kind
from spinney.kube.errors import Forbidden, InternalError, NotFound
from spinney.sim.overview.history import is_of_eviction


async def births(client: Client, namespace: str, events: Iterable[Event]) -> dict[SourceWorkload, datetime]:
    """Return when workloads of a namespace were created whose gangs events may tell of, where that may be read."""
    evicted = [each.involved_object.name for each in events if is_of_eviction(each)]
    if not evicted:
        return {}
    try:
        gangs = (await client.list(POD_GANG, namespace, type=PodGang, label_selector=GROUPED)).items
    except (Forbidden, NotFound, InternalError):
        return {}
    owners = {made: top_owner(gang.metadata) for gang in gangs if (made := workload(gang)) is not None}
    asked = {made: said for made, said in owners.items() if any(name.startswith(made.name) for name in evicted)}
    found = {made: await _birth(client, namespace, said) for made, said in asked.items()}
    return {made: born for made, born in found.items() if born is not None}


async def _birth(client: Client, namespace: str, said: Mapping[str, str]) -> datetime | None:
    try:
        resource = await find_kind(client, said.get("group", ""), said["kind"], said.get("version"))
        if resource is None:
            return None
        metadata = (await client.get(resource, said["name"], namespace))["metadata"]
    except (Forbidden, NotFound, InternalError):
        return None
    return parse_timestamp(metadata["creationTimestamp"]) if metadata["uid"] == said.get("uid") else None
