"""What a backend is tried on: a gang and its pods as the operator makes them, and an API server that is overheard."""

import re
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

import msgspec

from spinney.api import labels as marks
from spinney.api.core import NAMESPACE
from spinney.api.grove import PodCliqueSet
from spinney.api.meta import ObjectMeta
from spinney.api.podgang import PodGang, PodGangSpec, PodGroup
from spinney.api.struct import JSON
from spinney.api.topology_binding import ClusterTopologyBinding
from spinney.backends import SchedulerBackend
from spinney.kube.client import Client
from spinney.kube.transport import Request, Response, StreamingResponse, Transport

NAME_OF_GANG = "model-0"

_CREATED = 201
_RESOURCE_PATH = re.compile(
    r"/api(?:s/(?P<group>[^/]+))?/[^/]+/(?:namespaces/[^/]+/)?(?P<resource>[^/]+)(?:/(?P<name>[^/]+)(?:/.*)?)?"
)


@dataclass
class Lookup:
    """What the operator's caches would answer. Mutable."""

    gangs: dict[str, PodGang] = field(default_factory=dict)
    sets: dict[str, PodCliqueSet] = field(default_factory=dict)
    bindings: dict[str, ClusterTopologyBinding] = field(default_factory=dict)

    def pod_gang(self, namespace: str, name: str) -> PodGang | None:
        return self.gangs.get(name)

    def pod_clique_set(self, gang: PodGang) -> PodCliqueSet | None:
        return self.sets.get(gang.metadata.labels.get(marks.PART_OF, ""))

    def topology_binding(self, name: str) -> ClusterTopologyBinding | None:
        return self.bindings.get(name)


@dataclass
class Overheard:
    """A transport that notes what is asked of the API server. Mutable: the notes grow."""

    inner: Transport
    asked: set[tuple[str, str, str]] = field(default_factory=set)

    async def request(self, request: Request) -> Response:
        """Pass a request on."""
        response = await self.inner.request(request)
        self._note(request, created=response.status == _CREATED)
        return response

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamingResponse]:
        """Pass a watch on."""
        self._note(request, created=False)
        return self.inner.stream(request)

    async def close(self) -> None:
        """Leave the connection to its owner."""

    def _note(self, request: Request, *, created: bool) -> None:
        found, method = _RESOURCE_PATH.fullmatch(request.path), request.method
        if found is None:
            return
        group, resource = found["group"] or "", found["resource"]
        named = found["name"] is not None
        verb = {"GET": "get" if named else "list", "POST": "create", "PUT": "update"}.get(method, method.lower())
        self.asked.add((verb, group, resource))
        if created:
            self.asked.add(("create", group, resource))


@dataclass(frozen=True)
class Bench:
    """A backend on a cluster, ready to be asked."""

    backend: SchedulerBackend
    client: Client
    lookup: Lookup
    gang: PodGang
    asked: set[tuple[str, str, str]]
    """What the backend asked of the API server: verb, API group, resource."""

    async def revision(self) -> int:
        """Return a number that grows with every write to the cluster."""
        listing = await self.client.list(NAMESPACE)
        return int(listing.resource_version)

    async def everything(self) -> set[tuple[str, str]]:
        """Return all namespaced objects of the test's namespace, whatever their kind, by plural and name."""
        found: set[tuple[str, str]] = set()
        groups = await self._get("/apis")
        paths = [f"/apis/{version['groupVersion']}" for group in groups["groups"] for version in group["versions"]]
        for path in ["/api/v1", *paths]:
            for resource in (await self._get(path)).get("resources", ()):
                if not resource["namespaced"] or "list" not in resource["verbs"] or "/" in resource["name"]:
                    continue
                listed = await self._get(f"{path}/namespaces/test/{resource['name']}")
                found |= {(resource["name"], each["metadata"]["name"]) for each in listed.get("items", ())}
        return found

    async def _get(self, path: str) -> JSON:
        answer: JSON = msgspec.json.decode((await self.client.raw("GET", path)).body)
        return answer


def a_gang(pcs: PodCliqueSet, *, name: str = NAME_OF_GANG) -> PodGang:
    """Return the base gang of a set's first replica, as the operator would create it."""
    template = pcs.spec.template
    homes = {clique: group for group in template.pod_clique_scaling_groups for clique in group.clique_names}
    groups: list[PodGroup] = []
    for clique in template.cliques:
        minimum = clique.spec.minimum
        home = homes.get(clique.name)
        stems = [name] if home is None else [f"{name}-{home.name}-{j}" for j in range(home.min_available or 1)]
        groups += [PodGroup(name=f"{stem}-{clique.name}", min_replicas=minimum) for stem in stems]
    labels = {marks.MANAGED_BY: marks.MANAGED_BY_GROVE, marks.PART_OF: pcs.metadata.name, marks.REPLICA_INDEX: "0"}
    return PodGang(
        metadata=ObjectMeta(name=name, namespace="test", labels={**pcs.metadata.labels, **labels}),
        spec=PodGangSpec(pod_groups=tuple(groups), priority_class_name=template.priority_class_name),
    )


def a_pod(gang: PodGang, group: PodGroup, index: int) -> JSON:
    """Return a pod of a gang as the operator hands it to ``prepare_pod``."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{group.name}-{index}",
            "namespace": "test",
            "labels": {
                marks.POD_GANG: gang.metadata.name,
                marks.POD_CLIQUE: group.name,
                marks.POD_INDEX: str(index),
                marks.PART_OF: gang.metadata.labels[marks.PART_OF],
            },
            "annotations": {},
            "ownerReferences": [{"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "name": "x", "uid": "x"}],
        },
        "spec": {
            "containers": [{"name": "main", "image": "main"}],
            "schedulingGates": [{"name": marks.POD_GANG_GATE}],
        },
    }
