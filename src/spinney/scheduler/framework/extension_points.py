"""The extension points: the functions that plugins can register, and what they may promise about them.

Every registration remembers the plugin it came from. A plugin fails closed: a predicate that raises means *does not
fit*, a score that raises drops the node, an order that raises counts as equal, an event handler that raises is reported
and the operation stands. Nothing a plugin does ever skips another plugin's filter.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from spinney.cluster.classes import RequestClass
from spinney.gangs.tree import Member
from spinney.scheduler.fairshare import Amounts, QueueInfo
from spinney.scheduler.fairshare.bounds import Lot
from spinney.scheduler.framework.events import CapacityVerdict, Scenario
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeInfo, NodeSet
from spinney.scheduler.framework.tasks import PodInfo

if TYPE_CHECKING:
    from spinney.scheduler.framework.session import Session

F = TypeVar("F")

Fit = bool | str | None
"""What a predicate answers: ``None`` or ``True`` for *fits*; ``False``, or the reason as text, for *does not fit*."""


class DoesNotFit(Exception):
    """Raised by a predicate to refuse, with the reason as its text; as good as returning the text."""


JobCompare = Callable[[PodGroupInfo, PodGroupInfo], int]
TaskCompare = Callable[[PodInfo, PodInfo], int]
MemberCompare = Callable[[PodGroupInfo, Member, Member], int]
JobKey = Callable[[PodGroupInfo], object]
DistinctionFn = Callable[[PodGroupInfo], tuple[object, ...]]
TaskKey = Callable[[PodInfo], object]
PrePredicateFn = Callable[[PodInfo, PodGroupInfo], Fit]
PredicateFn = Callable[[PodInfo, PodGroupInfo, NodeInfo], Fit]
PredicateColumns = Callable[[PodInfo, PodGroupInfo, NodeSet], npt.NDArray[np.bool_]]
NodeOrderFn = Callable[[PodInfo, NodeInfo], float]
NodeOrderColumns = Callable[[PodInfo, PodGroupInfo, NodeSet], npt.NDArray[np.float64]]
FewRows = Callable[[RequestClass, Sequence[int]], Sequence[float]]
"""Answers about a few rows of the node table that have room for the request, by numbers; predicates by truth values."""
GpuOrderFn = Callable[[PodInfo, NodeInfo, str], float]
SubsetNodesFn = Callable[[PodGroupInfo, Member, Sequence[PodInfo], NodeSet], Sequence[NodeSet] | None]
NodePreOrderFn = Callable[[PodInfo, NodeSet], None]
JobFn = Callable[[PodGroupInfo], None]
CapacityFn = Callable[[PodGroupInfo, Sequence[PodInfo]], CapacityVerdict]
NodeCapacityFn = Callable[[PodInfo, PodGroupInfo, NodeInfo], CapacityVerdict]
CanReclaimFn = Callable[[PodGroupInfo], bool]
VictimFilterFn = Callable[[PodGroupInfo, PodGroupInfo], bool]
ScenarioValidatorFn = Callable[[Scenario], bool | str]
"""Answers ``True``, or ``False`` or the reason as text to refuse."""
LossBoundFn = Callable[[PodGroupInfo, Mapping[str, Lot]], Amounts | None]
QueueAmountsFn = Callable[[str], Amounts]
BindMutateFn = Callable[[PodInfo, str], Mapping[str, str]]
InvariantFn = Callable[[PodInfo], str | None]
ScenarioGeneratorFactory = Callable[["Session", PodGroupInfo], Iterable[Sequence[PodInfo]]]
"""Makes scenarios for a pending job: each the tasks that would have to go, in the order in which to try them."""
HttpHandler = Callable[[Mapping[str, str]], bytes]


Taking = Literal["reclaim", "preempt"]
"""How a job takes from others: from other queues, or by its priority."""


class QueueTurn(msgspec.Struct, frozen=True):
    """A queue up for comparison: with its next job when jobs are placed, with its victims when they are taken."""

    queue: QueueInfo
    next_job: PodGroupInfo | None = None
    victims: Sequence[PodGroupInfo] = ()
    victims_hold: Amounts | None = None
    """What the victims hold together, where the caller has added it up."""


QueueCompare = Callable[[QueueTurn, QueueTurn], int]


def with_jobs_first(is_first: Callable[[PodGroupInfo], bool]) -> QueueCompare:
    """Return the order in which queues whose next job is to be first come before all others."""

    def rank(turn: QueueTurn) -> int:
        return 0 if turn.next_job is not None and is_first(turn.next_job) else 1

    return lambda left, right: rank(left) - rank(right)


class Hook(msgspec.Struct, Generic[F], frozen=True):
    """A registered function and whose it is."""

    plugin: str
    fn: F
    alike: bool = False
    """The plugin promises to treat alike what is alike (:attr:`.Plugin.treats_alike`)."""
    stateful: bool = False
    """It is to be asked each time."""
    per_job: bool = True
    """False promises that the answer is the same for every task of a request class, whatever is placed."""
    applies_to: Callable[[Any], bool] | None = None
    """It applies only to tasks, or groups, for which this is true."""
    across_queues: bool = False
    """It is asked about victims of other queues, too."""

    def applies(self, asked_about: Any) -> bool:
        """Tell whether the function applies to a task, or a group."""
        return self.applies_to is None or self.applies_to(asked_about)


class Order(msgspec.Struct, Generic[F], frozen=True):
    """A registered order: by comparison, or by a key, which is what hot paths want."""

    plugin: str
    compare: F | None = None
    key: Callable[..., object] | None = None
    labels: frozenset[str] | None = None
    """Where given, the key is the same for everything that has none of these labels."""
    alike: bool = False

    @property
    def fn(self) -> Callable[..., Any]:
        """Return the one of the two that was registered."""
        found = self.compare if self.key is None else self.key
        assert callable(found), "an order has a comparison or a key"
        return found


class NodeTraits(TypedDict, total=False):
    """What a predicate or score that is asked node by node may promise; :class:`NodeRule` says what each means."""

    per_pod: bool
    stateful: bool
    only_pod_rules: bool
    monotone: bool
    for_requests: Callable[[RequestClass], bool] | None
    applies_to: Callable[[PodInfo], bool] | None


class ColumnTraits(NodeTraits, total=False):
    """What one that is asked about all nodes at once may promise besides."""

    per_job: bool
    reads_usage: bool
    few: FewRows | None


class NodeRule(msgspec.Struct, Generic[F], frozen=True, kw_only=True):
    """A registered predicate or score, with what it promises about itself.

    ``columns`` tells the two forms apart. A rule that promises nothing is asked about every task, unless what it reads
    is known. ``per_pod=False`` promises that the answer is the same for all tasks of a pod set that make the same
    request, as ``alike`` does; ``per_job=False`` that it is so for all jobs; ``reads_usage=False`` besides that it does
    not depend on what is on the node. ``stateful`` has every question asked. ``only_pod_rules`` promises of a stateful
    rule that it depends on nothing but what pods say about each other (affinity, spreading, host ports, volumes): a
    placed task without such rules then changes nothing for others. ``monotone`` promises of a score that placing a task
    on a node never lowers the node's score. ``for_requests`` limits the rule to tasks that make some requests, and is
    asked once about each; ``applies_to`` limits it to some tasks, and is asked about every one. ``few``, of a rule with
    ``per_job=False``, says the same as its columns do, and is asked where few nodes have changed.
    """

    plugin: str
    fn: F
    columns: bool
    per_pod: bool = True
    per_job: bool = True
    reads_usage: bool = True
    stateful: bool = False
    only_pod_rules: bool = False
    monotone: bool = False
    for_requests: Callable[[RequestClass], bool] | None = None
    applies_to: Callable[[PodInfo], bool] | None = None
    few: FewRows | None = None
    alike: bool = False

    @property
    def particular(self) -> bool:
        """Tell whether the rule may tell apart pods of a pod set that make the same request."""
        return self.per_pod and self.per_job and not self.alike

    def applies(self, task: PodInfo) -> bool:
        """Tell whether the rule applies to ``task``."""
        if self.for_requests is not None and not self.for_requests(task.request):
            return False
        return self.applies_to is None or self.applies_to(task)


Predicate = NodeRule[PredicateFn] | NodeRule[PredicateColumns]
Score = NodeRule[NodeOrderFn] | NodeRule[NodeOrderColumns]
