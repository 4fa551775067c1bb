"""Workloads on a cluster where our grouper and scheduler run: applied, seen, taken away."""

from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from spinney.api.core import POD, Pod
from spinney.api.quantity import RawQuantity
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.kube.discovery import find_kind
from spinney.nodes import NodeGroup
from tests.grouping.world import World

WITHIN = 300.0  # seconds for what takes a few on a quiet machine
CAPACITY: Mapping[str, RawQuantity] = {"cpu": 96, "memory": "1Ti", "nvidia.com/gpu": 8}


@dataclass
class Stage:
    """A cluster with some nodes of 8 GPUs, watched from the beginning. Mutable: it remembers what was ever bound."""

    world: World
    logs: Callable[[], str] = lambda: ""
    """What others that take part have logged, to be shown when something does not come about."""
    ever_bound: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.world.pods.subscribe(lambda change: self._note(change.new))

    def _note(self, pod: Pod | None) -> None:
        if pod is not None and pod.spec.node_name:
            self.ever_bound.add(pod.metadata.name)

    async def create(self, manifest: JSON) -> Resource:
        """Create an object of any kind in the test's namespace, or beside all namespaces."""
        group, _, version = manifest["apiVersion"].rpartition("/")
        resource = await find_kind(self.world.client, group, manifest["kind"], version)
        assert resource is not None, f"{manifest['apiVersion']} {manifest['kind']} is not served"
        await self.world.client.create(resource, manifest, self.world.namespace if resource.namespaced else None)
        return resource

    @asynccontextmanager
    async def applied(self, manifest: JSON) -> AsyncIterator[Resource]:
        """Have a workload for the time of the block; afterwards it is gone with all its pods."""
        resource = await self.create(manifest)
        yield resource
        name = manifest["metadata"]["name"]
        await self.world.client.delete(resource, name, self.world.namespace, propagation_policy="Background")
        await self.until(lambda: not self.pods())

    async def patch(self, resource: Resource, name: str, patch: JSON) -> None:
        """Change a workload as its user would."""
        await self.world.client.patch(resource, name, patch, self.world.namespace)

    async def add_nodes(self, count: int) -> None:
        """Add nodes of 8 GPUs."""
        joined = len(self.world.fleet.names)
        await self.world.fleet.add(NodeGroup(name=f"more-{joined}-{{index}}", count=count, capacity=CAPACITY))

    async def remove_node(self) -> None:
        """Take the node away that came last."""
        await self.world.fleet.remove(self.world.fleet.names[-1])

    async def lose(self, pod: str) -> None:
        """Have a pod deleted at once, as by somebody's hand."""
        await self.world.client.delete(POD, pod, self.world.namespace, grace_period_seconds=0)

    async def restart(self, pod: str) -> None:
        """Have the node say that the container of a pod was restarted."""
        found = await self.world.client.get(POD, pod, self.world.namespace)
        containers = [{**each, "restartCount": 1} for each in found["status"]["containerStatuses"]]
        status = {"status": {"containerStatuses": containers}}
        await self.world.client.patch(POD, pod, status, self.world.namespace, subresource="status")

    async def fail(self, pod: str) -> None:
        """Have the containers of a pod end with an error."""
        status = {"status": {"phase": "Failed", "reason": "Error"}}
        await self.world.client.patch(POD, pod, status, self.world.namespace, subresource="status")

    def pods(self) -> dict[str, Pod]:
        """Return the pods of the namespace that live, by name."""
        found = (self.world.pods.get(key) for key in self.world.pods if key.namespace == self.world.namespace)
        return {pod.metadata.name: pod for pod in found if pod is not None and not pod.metadata.deleting}

    def running(self) -> set[str]:
        """Return the pods that run."""
        return {name for name, pod in self.pods().items() if pod.status.phase == "Running"}

    def refused(self) -> set[str]:
        """Return the pods of which the scheduler has said that they cannot be placed."""
        return {
            name
            for name, pod in self.pods().items()
            if any((each.type, each.reason) == ("PodScheduled", "Unschedulable") for each in pod.status.conditions)
        }

    def floors(self) -> list[dict[str, int]]:
        """Return of each gang its groups with their minimum, in order of the gangs' names."""
        found = {key: self.world.gangs.get(key) for key in self.world.gangs if key.namespace == self.world.namespace}
        return [
            {group.name: group.min_replicas for group in gang.spec.pod_groups}
            for _, gang in sorted(found.items())
            if gang is not None
        ]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until what was seen meets a condition; a failure says what there was instead."""
        try:
            await self.world.until(condition, WITHIN)
        except TimeoutError:
            raise AssertionError(f"not within {WITHIN:.0f} s; there was:\n{self._seen()}") from None

    def _seen(self) -> str:
        pods = [
            f"{name} {pod.status.phase} on {pod.spec.node_name or '-'}, "
            + ", ".join(f"{each.type}={each.status} ({each.reason})" for each in pod.status.conditions)
            for name, pod in sorted(self.pods().items())
        ]
        return "\n".join([*pods, *map(str, self.floors()), self.logs()])

    async def until_refused(self, pods: int) -> None:
        """Wait until the scheduler has refused as many pods, and see that none of them was ever bound."""
        await self.until(lambda: len(self.refused()) == pods)
        assert not self.ever_bound & self.refused()

    async def until_running(self, pods: int) -> None:
        """Wait until exactly so many pods run."""
        await self.until(lambda: len(self.running()) == pods)

    async def until_floors(self, *floors: dict[str, int]) -> None:
        """Wait until the gangs are these."""
        await self.until(lambda: self.floors() == list(floors))

    async def until_made_anew(self, before: Collection[str | None]) -> None:
        """Wait until there are pods, and none of them has one of these uids."""
        await self.until(lambda: bool(self.pods()) and not self.uids() & set(before))

    def uids(self) -> set[str | None]:
        """Return the uids of the pods that live."""
        return {pod.metadata.uid for pod in self.pods().values()}
