"""elastic: jobs below their minimum go before jobs exactly at it, and those before jobs that already have more."""

from spinney.extensions.arguments import NoArguments
from spinney.gangs.tree import GroupSet, PodSet, is_satisfied
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.plugin import Plugin
from spinney.scheduler.framework.session import Session


class Elastic(Plugin):
    """Orders jobs by how much of their minimum they have."""

    name = "elastic"
    arguments_type = NoArguments
    treats_alike = True

    def on_session_open(self, session: Session) -> None:
        session.add_job_order_key(_rank)


def _rank(job: PodGroupInfo) -> int:
    if not job.gang_satisfied:
        return 0
    return 2 if _has_surplus(job, job.root) else 1


def _has_surplus(job: PodGroupInfo, group: GroupSet) -> bool:
    if sum(is_satisfied(member, job.active) for member in group.members) > group.minimum:
        return True
    return any(
        job.active(member) > member.min_member if isinstance(member, PodSet) else _has_surplus(job, member)
        for member in group.members
    )
