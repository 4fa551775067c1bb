"""What a cycle decided: binds, evictions and promises to carry out, and why the rest waits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import msgspec

from spinney.api.podgang import CONSTRAINT_NOT_HONOURED
from spinney.cluster.dra.allocating import GivenDevice
from spinney.cluster.dra.book import ClaimKey
from spinney.cluster.pods import PodKey
from spinney.explain.reasons import Explanation
from spinney.explain.rendering import condition_message, event_message
from spinney.gangs.checkpoints import Asked, Withdrawn
from spinney.gangs.tree import GangKey
from spinney.reporting.pods import (
    INADMISSIBLE,
    SCHEDULER_ERROR,
    UNSCHEDULABLE,
    WAITING_FOR_PODS,
    WAITING_FOR_QUOTA,
    WAITING_FOR_TURN,
)
from spinney.reporting.verdicts import GangVerdict

if TYPE_CHECKING:
    from spinney.scheduler.framework.jobs import PodGroupInfo
    from spinney.scheduler.framework.tasks import PodInfo

POD_SCHEDULING_ERRORS: Final = "PodSchedulingErrors"
"""The pods of the job find no nodes, each by itself or together."""
TOPOLOGY_CONSTRAINT: Final = "TopologyConstraint"
"""No domain of the level that the job requires has room for it."""
NOT_READY: Final = "NotReady"
"""The word for a job of which too few pods exist, or have no scheduling gate any more."""
OUT_OF_TIME: Final = "OutOfTime"
"""The cycle ended before the job's turn."""
NOTHING_TO_ALLOCATE: Final = "NothingToAllocate"
"""No pod of the job may be placed before others of it."""
PREEMPTION_DELAY: Final = "PreemptionDelay"
"""The job may not disturb others yet."""
NO_NODES_LEFT: Final = "NoNodesLeft"
"""Plugins that divide the nodes leave none for the job."""
PLUGIN_ERROR: Final = "PluginError"
"""A plugin that had to be asked about the job failed."""
_OF_QUEUES: Final = frozenset({"OverLimit", "NonPreemptibleOverQuota"})
_OF_NODES: Final = frozenset({POD_SCHEDULING_ERRORS, TOPOLOGY_CONSTRAINT, PREEMPTION_DELAY})
_FAILED: Final = frozenset({SCHEDULER_ERROR, PLUGIN_ERROR})

_NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})
"""Shared by all binds: a dictionary of its own for each takes longer to make than the rest of it."""


class Binding(msgspec.Struct, frozen=True, gc=False):
    """A pod to be bound to a node, with the shared devices and claim devices chosen for it."""

    pod: PodKey
    uid: str
    node: str
    gang: GangKey
    gpu_groups: tuple[str, ...] = ()
    annotations: Mapping[str, str] = _NOTHING
    claims: Mapping[ClaimKey, tuple[GivenDevice, ...]] = _NOTHING


class Eviction(msgspec.Struct, frozen=True, gc=False):
    """A pod to be evicted from a node, and why."""

    pod: PodKey
    uid: str
    node: str
    gang: GangKey
    message: str = ""
    beneficiary: GangKey | None = None
    """The job it is evicted for, if for one."""
    queue: str = ""
    """Its own queue."""
    action: str = ""
    """The action that decided it."""
    moves_to: str = ""
    """The node a pod made in its place was promised, if there is one."""

    @classmethod
    def of(cls, task: "PodInfo", node: str, beneficiary: GangKey | None, **said: str) -> "Eviction":
        """Return the eviction of a task; ``said`` are message, action and where it moves to."""
        job = task.job
        return cls(task.key, task.uid, node, job.key, beneficiary=beneficiary, queue=job.queue, **said)


class Pipeline(msgspec.Struct, frozen=True, gc=False):
    """A pod that was promised a node where something is terminating; nothing is written for it."""

    pod: PodKey
    node: str
    gang: GangKey


@dataclass(frozen=True, slots=True)
class FitError:
    """One reason why a job could not be placed in this cycle."""

    reason: str
    """A word for conditions: ``PodSchedulingErrors``, ``OverLimit``, ``QueueDoesNotExist``, ..."""
    message: str
    details: object = None
    rewrite: "Callable[[PodGroupInfo], str] | None" = field(default=None, compare=False, repr=False)
    """Writes the message about another job that is refused for the same reason; ``None``: it names no job or pod."""

    def about(self, job: "PodGroupInfo") -> "FitError":
        """Return the same reason as one of ``job``."""
        return self if self.rewrite is None else replace(self, message=self.rewrite(job))


class Unschedulable(msgspec.Struct, frozen=True):
    """A job that could not be placed, with its reasons as texts and as data."""

    gang: GangKey
    errors: tuple[FitError, ...]
    explanation: Explanation | None = None

    @property
    def reason(self) -> str:
        """Return the word for conditions and events: whether it does not fit, or something failed."""
        failed = any(error.reason in _FAILED for error in self.errors)
        if failed or (self.explanation is not None and self.explanation.plugin_errors):
            return SCHEDULER_ERROR
        return UNSCHEDULABLE

    @property
    def pod_reason(self) -> str:
        """Return the word for the condition of its pods: ``Unschedulable`` only where a new node could help.

        Autoscalers add nodes for pods with that word, so whatever else is in the way comes first.
        """
        reasons = {error.reason for error in self.errors}
        if self.reason == SCHEDULER_ERROR:
            return SCHEDULER_ERROR
        if NOT_READY in reasons:
            return WAITING_FOR_PODS
        if reasons & _OF_QUEUES or (self.explanation is not None and self.explanation.queue is not None):
            return WAITING_FOR_QUOTA
        if reasons & {OUT_OF_TIME, NOTHING_TO_ALLOCATE}:
            return WAITING_FOR_TURN
        if reasons - _OF_NODES or (self.explanation is not None and self.explanation.beyond_nodes):
            return INADMISSIBLE
        return UNSCHEDULABLE

    @property
    def cause(self) -> str:
        """Return one word for metrics: the filter that keeps most nodes from a pod that fits nowhere, else a reason."""
        pods = self.explanation.pods if self.explanation is not None else ()
        filters = next((pod.filters for pod in pods if pod.filters and not pod.feasible_nodes), ())
        if filters and self.errors[0].reason == POD_SCHEDULING_ERRORS:
            return max(filters, key=lambda report: report.nodes).filter
        return self.errors[0].reason

    @property
    def verdict(self) -> GangVerdict:
        """Return the word and the sentence for conditions."""
        unmet = any(error.reason == CONSTRAINT_NOT_HONOURED for error in self.errors)
        reason = CONSTRAINT_NOT_HONOURED if unmet else self.reason
        message = self.message
        causes = tuple(
            # The explanation has looked at the nodes, the attempt has not.
            (each.reason, message if self.explanation and each.reason == POD_SCHEDULING_ERRORS else each.message)
            for each in self.errors
        )
        return GangVerdict(scheduled=False, reason=reason, message=message, event=self.event, causes=causes)

    @property
    def message(self) -> str:
        """Return one bounded line for conditions; without an explanation, the errors' own texts."""
        if self.explanation is not None:
            return condition_message(self.explanation)
        reason = self.errors[0].reason if len(self.errors) == 1 else "Unable to schedule podgroup"
        texts = sorted({error.message for error in self.errors})
        return f"{reason}: {'. '.join(texts)}"

    @property
    def event(self) -> str:
        """Return one bounded line for events."""
        return event_message(self.explanation) if self.explanation is not None else self.message


class CycleResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one scheduling cycle decided."""

    binds: Sequence[Binding] = ()
    evictions: Sequence[Eviction] = ()
    asked: Sequence[Asked] = ()
    """Pods to be asked to go."""
    withdrawn: Sequence[Withdrawn] = ()
    """Pods that were asked, and need not go after all."""
    pipelines: Sequence[Pipeline] = ()
    unschedulable: Sequence[Unschedulable] = ()
    started: Sequence[GangKey] = ()
    """Gangs that got their first pods in this cycle."""
    next_moment: datetime | None = None
    """When time alone may change a decision: a session is worth opening then, though nothing may have happened."""
    seconds: Mapping[tuple[str, str], float] = msgspec.field(default_factory=dict)
    """Time spent, by plugin and extension point; actions count as plugin ``action``."""
    failures: Mapping[tuple[str, str], int] = msgspec.field(default_factory=dict)
    """How often plugins raised, or gave no proper answer, by plugin and extension point."""
    errors: Mapping[str, int] = msgspec.field(default_factory=dict)
    """How often looking at a gang failed, by what was being done."""
