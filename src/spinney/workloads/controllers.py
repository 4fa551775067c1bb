"""The controllers of workloads in one process: caches, queues and who wakes whom."""

from collections.abc import Mapping

from spinney.api.core import POD, Pod
from spinney.api.resource import Resource
from spinney.kube.cache import WatchCache
from spinney.kube.client import Client
from spinney.kube.controller import to_controller_of
from spinney.kube.expectations import Expectations
from spinney.kube.manager import Manager
from spinney.kube.reconciling import a_controller
from spinney.workloads.deployment import Deployments
from spinney.workloads.job import Jobs
from spinney.workloads.objects import BY_OWNER, DEPLOYMENT, JOB, REPLICA_SET, STATEFUL_SET, WorkloadObject, owner_uid
from spinney.workloads.replica_set import ReplicaSets
from spinney.workloads.stateful_set import StatefulSets
from spinney.workloads.upkeep import Upkeep

WORKERS = 4


class WorkloadControllers:
    """Runs the controllers of ReplicaSets, Deployments, StatefulSets and Jobs until stopped."""

    def __init__(self, client: Client) -> None:
        self.manager = Manager(client, client.runtime)
        pods = self.manager.cache(POD, Pod, indexes={BY_OWNER: owner_uid})
        sets = self.manager.cache(REPLICA_SET, WorkloadObject, indexes={BY_OWNER: owner_uid})
        deployments = self.manager.cache(DEPLOYMENT, WorkloadObject)

        events = self.manager.recorder("kube-controller-manager")

        def upkeep(resource: Resource, workloads: WatchCache[WorkloadObject]) -> Upkeep:
            expectations = Expectations(client.runtime)
            pods.subscribe(expectations.observe)
            return Upkeep(client, resource, workloads, pods, expectations, events)

        keepers: Mapping[Resource, type[ReplicaSets | StatefulSets | Jobs]] = {
            REPLICA_SET: ReplicaSets,
            STATEFUL_SET: StatefulSets,
            JOB: Jobs,
        }
        for resource, keeper in keepers.items():
            cache = sets if resource == REPLICA_SET else self.manager.cache(resource, WorkloadObject)
            reconcile = keeper(upkeep(resource, cache)).reconcile
            controller = a_controller(self.manager, resource.kind.lower(), reconcile, workers=WORKERS)
            controller.watch(cache)
            controller.watch(pods, to_controller_of(resource))
        rollouts = Deployments(sets, upkeep(DEPLOYMENT, deployments))
        controller = a_controller(self.manager, "deployment", rollouts.reconcile, workers=WORKERS)
        controller.watch(deployments)
        controller.watch(sets, to_controller_of(DEPLOYMENT))

    async def run(self) -> None:
        """Keep workloads until the manager is stopped."""
        await self.manager.run()
