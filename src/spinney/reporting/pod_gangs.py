"""What PodGangs say: Scheduled, DisruptionTarget and the placement score, of the gangs that are placed here.

Gangs of other schedulers are left to the operator, which derives the condition from pods.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from spinney.api.conditions import find_condition, set_condition
from spinney.api.labels import SCHEDULER_NAME
from spinney.api.meta import Condition
from spinney.api.podgang import CONSTRAINT_NOT_HONOURED, DISRUPTION_TARGET, POD_GANG, SCHEDULED, PodGang
from spinney.api.struct import JSON, to_json
from spinney.cluster.statuses import TERMINAL, PodStatus
from spinney.gangs.book import GangMembers
from spinney.gangs.checkpoints import EVICTED, REQUESTED, request_of
from spinney.gangs.sources import podgang
from spinney.gangs.tree import GangKey
from spinney.kube.client import Client
from spinney.kube.keys import Key, key_of
from spinney.kube.reconciling import GatheringTime
from spinney.reporting.controller import ObjectEvent, StatusKind
from spinney.reporting.pods import SCHEDULER_ERROR, UNSCHEDULABLE
from spinney.reporting.verdicts import WAITING, GangStanding, GangVerdict
from spinney.runtime import Runtime

BACKEND = "spinney-scheduler"
ENDED = "Ended"
"""The word for a gang whose pods have all ended: it waits for nothing."""
_REFUSED = frozenset({UNSCHEDULABLE, SCHEDULER_ERROR, CONSTRAINT_NOT_HONOURED})

GATHERING = GatheringTime(0.02, seconds_per_part=0.0002)
"""How long changes of pods are gathered.

The pods of a gang are placed one after the other, and what refers to thousands of pods is expensive to write.
"""


class PodGangStatusKind(StatusKind[PodGang]):
    """The scheduler's part of the status of PodGangs. Mutable: it remembers for whom gangs were disrupted."""

    name = "gang-conditions"
    resource = POD_GANG
    sources = frozenset({podgang.SOURCE})
    having_nodes = frozenset({PodStatus.BOUND, PodStatus.RUNNING})
    follows_objects = True
    follows_pods = True

    def __init__(self, score: Callable[[GangMembers], float], exists: Callable[[Key], bool]) -> None:
        self._score = score
        self._exists = exists
        self._disruptions: dict[GangKey, str] = {}

    def disrupted(self, gang: GangKey, message: str) -> None:
        """Note that pods of a gang were evicted, and why; forgotten when the gang has all it needs again."""
        if gang.source in self.sources:
            self._disruptions[gang] = message

    def gang_of(self, found: PodGang) -> GangKey:
        return GangKey.of(podgang.SOURCE, found.metadata)

    def patch(self, found: PodGang, standing: GangStanding, runtime: Runtime) -> JSON | None:
        """Return the status, unless the gang is another scheduler's."""
        if standing.said is None or found.metadata.labels.get(SCHEDULER_NAME, BACKEND) != BACKEND:
            return None
        if self._has_pods_of_others(found, standing.members):
            return None
        # An absent condition means False: a gang that has only just come needs no word.
        if standing.said.reason == WAITING and find_condition(found.status.conditions, SCHEDULED) is None:
            return None
        return gang_status(found, self._completed(standing.said, standing.members), now=runtime.clock.now())

    def _has_pods_of_others(self, found: PodGang, members: GangMembers | None) -> bool:
        """Tell whether none of the pods of a gang is ours, and there are some: they ask for another of its backend."""
        if members is not None and members.pods:
            return False
        pods = (pod for group in found.spec.pod_groups for pod in group.pod_references)
        return any(self._exists(Key(pod.namespace, pod.name)) for pod in pods)

    def gathering_seconds(self, found: PodGang) -> float:
        """Return a moment, and more for a large gang."""
        return GATHERING.of(found.size)

    def event_with(self, found: PodGang, standing: GangStanding, patch: JSON) -> ObjectEvent | None:
        """Tell that a gang is scheduled now, or why it is not."""
        said, was = standing.said, find_condition(found.status.conditions, SCHEDULED)
        if said is not None and said.scheduled and (was is None or was.status != "True"):
            return ObjectEvent("Normal", SCHEDULED, said.message)
        if said is not None and said.reason in _REFUSED and (was is None or was.message != said.message):
            return ObjectEvent("Warning", said.reason, said.message)
        return None

    def gone(self, key: Key) -> None:
        """Forget who disrupted a gang."""
        self._disruptions.pop(GangKey(podgang.SOURCE, *key), None)

    async def write(self, client: Client, found: PodGang, patch: JSON) -> None:
        """Apply the scheduler's part: others have theirs."""
        key = key_of(found)
        body: JSON = {"metadata": {"name": key.name, "namespace": key.namespace}, "status": patch}
        await client.apply(POD_GANG, body, subresource="status")

    def _completed(self, said: GangVerdict, members: GangMembers | None) -> GangVerdict:
        assert members is not None, "whatever is said is said of pods"
        if members.counts and all(status in TERMINAL for _, status in members.counts):
            succeeded, message = members.has_minimum({PodStatus.SUCCEEDED}), "all its pods have ended"
            return GangVerdict(scheduled=succeeded, reason=ENDED, message=message)
        if said.scheduled:
            self._disruptions.pop(members.gang.key, None)
            said = replace(said, placement_score=self._score(members))
            asked = next(filter(None, (request_of(record.annotations) for _, record in members.pods.values())), None)
            if asked is not None:
                return replace(said, disruption=asked.message, disruption_reason=REQUESTED)
        return replace(said, disruption=self._disruptions.get(members.gang.key, ""), disruption_reason=EVICTED)


def gang_status(gang: PodGang, verdict: GangVerdict, *, now: datetime) -> JSON | None:
    """Return the scheduler's part of a PodGang's status, or None if it stands there already."""
    present = gang.status
    condition = Condition(
        type=SCHEDULED,
        status="True" if verdict.scheduled else "False",
        reason=verdict.reason,
        message=verdict.message,
        observed_generation=gang.metadata.generation,
    )
    was = find_condition(present.conditions, SCHEDULED)
    known = find_condition(present.conditions, DISRUPTION_TARGET)
    if (
        was is not None
        and (was.status, was.reason, was.message) == (condition.status, condition.reason, condition.message)
        and present.placement_score == verdict.placement_score
        and (known.reason if known is not None else "") == (verdict.disruption_reason if verdict.disruption else "")
    ):
        return None
    conditions = [condition]
    if verdict.disruption:
        reason, message = verdict.disruption_reason, verdict.disruption
        conditions.append(Condition(type=DISRUPTION_TARGET, status="True", reason=reason, message=message))
    before = [each for each in (was, known) if each is not None]
    settled = [each for new in conditions for each in set_condition(before, new, now) if each.type == new.type]
    status: JSON = {"conditions": to_json(settled)}
    if verdict.placement_score is not None:
        status["placementScore"] = verdict.placement_score
    return status
