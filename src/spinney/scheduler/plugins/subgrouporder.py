"""subgrouporder: members of a gang below their minimum go first, then those that have least of what they need."""

from spinney.gangs.order import member_rank
from spinney.gangs.tree import Member
from spinney.scheduler.evaluation.ordering import three_way
from spinney.scheduler.framework.arguments import NoArguments
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.plugin import Plugin
from spinney.scheduler.framework.session import Session


class SubGroupOrder(Plugin):
    """Orders the members of group sets."""

    name = "subgrouporder"
    arguments_type = NoArguments
    treats_alike = True

    def on_session_open(self, session: Session) -> None:
        """Register the order."""
        session.add_sub_group_order_fn(_compare)


def _compare(job: PodGroupInfo, left: Member, right: Member) -> int:
    return three_way(member_rank(left, job.active), member_rank(right, job.active))
