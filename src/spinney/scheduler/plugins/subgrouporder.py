"""subgrouporder: members of a gang below their minimum go first, then those that have least of what they need.

Among satisfied members those with a minimum come before optional ones (minimum 0); two optional ones go by how many
pods they have, two others by how many they have for each they need. The name decides in the end.
"""

from collections.abc import Callable

from spinney.extensions.arguments import NoArguments
from spinney.gangs.tree import GroupSet, Member, PodSet, is_satisfied
from spinney.scheduler.evaluation.ordering import three_way
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.plugin import Plugin
from spinney.scheduler.framework.session import Session


class SubGroupOrder(Plugin):
    """Orders the members of group sets."""

    name = "subgrouporder"
    arguments_type = NoArguments
    treats_alike = True

    def on_session_open(self, session: Session) -> None:
        session.add_sub_group_order_fn(_compare)


def _compare(job: PodGroupInfo, left: Member, right: Member) -> int:
    return three_way(member_rank(left, job.active), member_rank(right, job.active))


def member_rank(member: Member, active: Callable[[PodSet], int]) -> tuple[int, float, str]:
    """Return the place of a member among its siblings, the first to be served first."""
    if isinstance(member, GroupSet):
        have = sum(is_satisfied(child, active) for child in member.members)
    else:
        have = active(member)
    if have < member.minimum:
        return (0, 0.0, member.name)
    if member.minimum == 0:
        return (2, float(have), member.name)
    return (1, have / member.minimum, member.name)
