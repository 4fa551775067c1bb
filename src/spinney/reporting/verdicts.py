"""What a scheduler says of a gang, whatever kind of object it is written to."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from spinney.api.podgang import SCHEDULED
from spinney.cluster.statuses import WAITING as WITHOUT_NODE
from spinney.cluster.statuses import PodStatus
from spinney.explain.amounts import first_few
from spinney.gangs.book import GangMembers, number_of_pods
from spinney.gangs.checkpoints import EVICTED
from spinney.gangs.tree import GangKey, is_satisfied_by

WAITING: Final = "Waiting"
"""The word for a gang that has less than it needs and was not refused."""

WAITING_FOR_ROOM: Final = "WaitingForRoom"
"""The gang was promised nodes where others are leaving."""


@dataclass(frozen=True, slots=True)
class GangVerdict:
    """Whether a gang has what it needs, the word for it and the one sentence about it."""

    scheduled: bool
    reason: str
    message: str
    event: str = ""
    """The sentence for events, of a gang that was refused."""
    causes: tuple[tuple[str, str], ...] = ()
    """Everything it was refused for, each with the word for it."""
    placement_score: float | None = None
    disruption: str = ""
    """For whom pods of the gang were evicted, while it has not recovered, or were asked to go."""
    disruption_reason: str = EVICTED


class GangStanding(NamedTuple):
    """How a gang stands: what is said of it, if anything, why it was refused last, and its pods."""

    said: GangVerdict | None
    refused: GangVerdict | None = None
    members: GangMembers | None = None


class Standings(Protocol):
    """How the gangs of a scheduler stand."""

    def standing(self, gang: GangKey, having_nodes: frozenset[PodStatus]) -> GangStanding:
        """Return how a gang stands, if pods in the statuses ``having_nodes`` count as placed."""

    def parts(self, gang: GangKey) -> list[str]:
        """Return the names of the groups that a composite consists of."""


def is_served(members: GangMembers | None, names: Collection[str]) -> bool:
    """Tell whether all pods of a gang ask for a scheduler of these names; without pods there is nothing to say no."""
    return members is None or all(record.pod.spec.scheduler_name in names for _, record in members.pods.values())


def verdict(members: GangMembers, refused: GangVerdict | None, having_nodes: frozenset[PodStatus]) -> GangVerdict:
    """Tell whether a gang has what it needs on nodes, and what it waits for if not."""
    placed = Counter(number_of_pods(members.counts, having_nodes))
    succeeded = _succeeded(members, placed, having_nodes)
    pods = len(members.pods)
    placed_of_all = f"{sum(placed.values())} of {pods} pods are placed" if pods else "it has no pods"
    if succeeded:
        count = sum(succeeded.values())
        placed_of_all += f", {count} {'has' if count == 1 else 'have'} succeeded"
    served = placed + succeeded
    if is_satisfied_by(members.gang.root, served):
        return GangVerdict(scheduled=True, reason=SCHEDULED, message=placed_of_all)
    if refused is not None:
        return refused
    parts = list(members.gang.root.pod_sets())
    short = [each for each in parts if served[each.name] < each.minimum]
    if not short:
        message = placed_of_all
    elif len(parts) == 1:
        message = f"{placed_of_all}, it needs {parts[0].minimum}"
    else:
        lacks = [f"{each.name} has {served[each.name]} of {each.minimum}" for each in short]
        message = f"{placed_of_all}: {first_few(lacks)}"
    return GangVerdict(scheduled=False, reason=WAITING, message=message)


def _succeeded(members: GangMembers, placed: Counter[str], having_nodes: frozenset[PodStatus]) -> Counter[str]:
    """Return how many pods of each pod set need no node any more: they had one, and succeeded.

    Not of a set of which pods wait and none has a node: there others take their turn, as those of a Job with more
    completions than pods at once. A pod that failed is never counted: most controllers make it anew.
    """
    waiting = number_of_pods(members.counts, WITHOUT_NODE)
    found = number_of_pods(members.counts, {PodStatus.SUCCEEDED} - having_nodes)
    return Counter({name: count for name, count in found.items() if placed[name] or name not in waiting})
