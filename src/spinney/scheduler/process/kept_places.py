"""The places of jobs whose victims were asked to go: nominated on their pods, and why they wait.

A nomination tells other schedulers whose room it is, and the next process of this one where its search had placed the
pods.
"""

from spinney.api.time import timestamp
from spinney.cluster.pods import PodKey
from spinney.cluster.statuses import PodStatus
from spinney.gangs.tree import GangKey
from spinney.reporting.pods import PodStatusWriter
from spinney.reporting.verdicts import WAITING_FOR_ROOM
from spinney.scheduler.framework.results import CycleResult
from spinney.scheduler.intake.inventory import Inventory


class KeptPlaces:
    """Says which places are kept, and takes it back. Mutable: it knows whom it nominated a node for."""

    def __init__(self, inventory: Inventory, pod_status: PodStatusWriter) -> None:
        self._inventory = inventory
        self._pod_status = pod_status
        self._nominated: dict[PodKey, tuple[str, str]] = {}

    def __contains__(self, pod: PodKey) -> bool:
        """Tell whether a place is kept for a pod."""
        return pod in self._nominated

    def follow(self, result: CycleResult) -> None:
        """Say what a cycle has promised to jobs that wait for pods that were asked."""
        asked = self._inventory.requests.all()
        waiting: dict[GangKey, list[PodKey]] = {}
        for pod, request in asked.items():
            waiting.setdefault(request.beneficiary, []).append(pod)
        if not waiting and not self._nominated:
            return
        promised = {each.pod: each.node for each in result.pipelines if each.gang in waiting}
        for key, node in promised.items():
            record = self._inventory.cluster.pod(key)
            if record is not None and self._nominated.get(key) != (record.uid, node):
                self._nominated[key] = (record.uid, node)
                if record.pod.status.nominated_node_name != node:
                    self._pod_status.nominate(key, record.uid, node)
        for key in [key for key in self._nominated if key not in promised]:
            uid, _ = self._nominated.pop(key)
            record = self._inventory.cluster.pod(key)
            if record is not None and record.uid == uid and record.status is PodStatus.PENDING:
                self._pod_status.nominate(key, uid, "")
        for gang, pods in waiting.items():
            self._say_why(gang, pods)

    def _say_why(self, gang: GangKey, victims: list[PodKey]) -> None:
        found = self._inventory.gangs.members(gang)
        if found is None:
            return
        asked = self._inventory.requests.all()
        by = timestamp(max(asked[pod].by for pod in victims))
        message = f"its place is kept: {len(victims)} pods were asked to checkpoint and go, until {by} at the latest"
        kept = (record for _, record in found.pods.values() if record.key in self._nominated)
        waiting = (record for record in kept if record.status is PodStatus.PENDING)
        self._pod_status.all_wait(waiting, WAITING_FOR_ROOM, message)
