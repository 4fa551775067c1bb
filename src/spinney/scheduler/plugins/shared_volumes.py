"""Pods that share a claim without a volume are tried together where one volume reaches all of them.

A claim that waits for its first consumer gets its volume where the first pod is. Placed one by one, each pod would find
a volume for itself; so nodes are divided by the volumes that the claim could get, in the order it prefers them. A claim
that one pod may use at a time keeps such a gang waiting for ever, which is said.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from spinney.api.storage import PersistentVolumeClaim
from spinney.cluster.filters.storage import READ_WRITE_ONCE_POD, claim_uses
from spinney.cluster.filters.volume_binding import places_for
from spinney.cluster.pods import PodRecord
from spinney.gangs.tree import Member
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeSet
from spinney.scheduler.framework.results import FitError
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo

SHARED_CLAIM: Final = "SharedVolumeClaim"


def divide_by_shared_volumes(session: Session) -> None:
    """Have nodes divided for gangs of which pods share a claim; where there are none, nothing is asked."""
    if not session.nodes.surroundings.storage.claims:
        return
    concerned = {part for root in _roots_that_share(session) for part in root.parts()}
    if not concerned:
        return

    def divide(
        job: PodGroupInfo, group: Member, tasks: Sequence[PodInfo], node_set: NodeSet
    ) -> Sequence[NodeSet] | None:
        uses = _shared(session, [task.record for task in tasks])
        for claim, count in uses if group is job.root else ():
            if _is_exclusive(claim):
                message = (
                    f"claim {claim.metadata.name} is ReadWriteOncePod, for one pod, and {count} of its pods use it"
                )
                session.record_fit_error(job, FitError(SHARED_CLAIM, message))
        shared = [claim for claim, count in uses if count == len(tasks) and not (claim.bound or _is_exclusive(claim))]
        sets = [node_set]
        for claim in shared:
            places = places_for(session.nodes.view, claim)
            divided = (each.where(place[each.rows]) for each in sets for place in places)
            sets = [*dict.fromkeys(each for each in divided if len(each))]
        if not sets or sets == [node_set]:
            return None
        names = ", ".join(claim.metadata.name for claim in shared)
        message = f"its pods share {names}, which has no volume yet: they need nodes that all reach the same volume"
        session.record_fit_error(job, FitError(SHARED_CLAIM, message))
        return sets

    session.add_subset_nodes_fn(divide, applies_to=concerned.__contains__)


def _roots_that_share(session: Session) -> Iterator[Member]:
    gangs = session.snapshot.gangs
    for key in gangs.pending:
        members = gangs.gangs[key]
        records = [record for _, record in members.pods.values() if record.request.constraints.volumes]
        if len(records) > 1 and _shared(session, records):
            yield members.gang.root


def _shared(session: Session, records: Sequence[PodRecord]) -> list[tuple[PersistentVolumeClaim, int]]:
    """Return the claims that several of these pods use, and how many, of those for which that plays a part."""
    uses: Counter[tuple[str, str]] = Counter()
    for record in records:
        uses.update({(record.key.namespace, use.name) for use in claim_uses(record.pod) if not use.ephemeral})
    storage = session.nodes.surroundings.storage
    found = ((storage.claims.get(key), count) for key, count in uses.items() if count > 1)
    return [
        (claim, count)
        for claim, count in found
        if claim is not None and (_is_exclusive(claim) or (storage.waits_for_consumer(claim) and not claim.bound))
    ]


def _is_exclusive(claim: PersistentVolumeClaim) -> bool:
    return READ_WRITE_ONCE_POD in claim.spec.access_modes
