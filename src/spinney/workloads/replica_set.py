"""ReplicaSet: as many pods of one template as it says."""

from dataclasses import dataclass

from spinney.kube.controller import Requeue
from spinney.kube.keys import Key
from spinney.workloads.objects import REPLICA_SET, dispensable_first, is_active, is_ready, pod_of
from spinney.workloads.upkeep import Upkeep


@dataclass(frozen=True)
class ReplicaSets:
    """Keeps the pods of ReplicaSets."""

    upkeep: Upkeep

    async def reconcile(self, key: Key) -> Requeue | None:
        """Create what is missing, delete what is too much, and count."""
        found = self.upkeep.due(key)
        if found is None:
            return None
        active = [pod for pod in self.upkeep.of(found) if is_active(pod)]
        missing = found.replicas - len(active)
        if missing > 0:
            manifest = pod_of(REPLICA_SET, found, generateName=f"{found.metadata.name}-")
            await self.upkeep.create(found, [manifest] * missing)
        elif missing < 0:
            await self.upkeep.delete(found, dispensable_first(active)[:-missing])
        ready = sum(map(is_ready, active))
        await self.upkeep.report(
            found,
            {
                "replicas": len(active),
                "fullyLabeledReplicas": len(active),
                "readyReplicas": ready,
                "availableReplicas": ready,
            },
        )
        return None
