"""The extension points, each an abstract class with the one method a plugin fills.

A plugin subclasses as many as it needs; the profile calls them in its configured order. Filters and scores are
columnar: they see all nodes at once as masks and vectors over the rows of the node table; :class:`NodeFilter` is for a
rule that is easier to write for one node. Everything up to Permit runs in the scheduling cycle, one pod at a time, and
must not wait; PreBind, Bind and PostBind run in the pod's own binding cycle and may.

A plugin that raises has refused: the pod is tried again later, and its condition names the plugin.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Generic, TypeVar

import numpy as np

from spinney.api.core import Node, Pod
from spinney.cluster.filters import Refusal
from spinney.cluster.scores import Scores
from spinney.cluster.table import Mask, NodeTable
from spinney.coscheduling.framework.events import EventHint
from spinney.coscheduling.framework.faults import a_mask, a_status
from spinney.coscheduling.framework.handle import Handle
from spinney.coscheduling.framework.status import AnsweredError, Code, FrameworkPluginFailed, Status
from spinney.extensions.arguments import NoArguments, read_arguments
from spinney.kube.keys import Key, key_of

T = TypeVar("T")


@dataclass(slots=True)
class QueuedPod:
    """A pod in the scheduling queue, with its history there. Mutable; owned by the queue."""

    pod: Pod
    first_queued: float
    queued: float
    attempts: int = 0
    rejected_by: frozenset[str] = frozenset()
    returned: int = 0
    """The moment, as its queue counts them, at which it was last returned from flight."""
    key: Key = field(init=False)

    def __post_init__(self) -> None:
        self.key = key_of(self.pod)

    @property
    def priority(self) -> int:
        """Return the pod's priority; a pod without one counts as 0."""
        return self.pod.priority


class StateKey(Generic[T]):
    """Names a value of type ``T`` in a :class:`CycleState`; one ``of_group`` holds for all members of a group."""

    def __init__(self, name: str, *, of_group: bool = False) -> None:
        self.name = name
        self.of_group = of_group


class CycleState:
    """What plugins tell one another about one pod during one cycle. Mutable, gone with the cycle."""

    def __init__(self) -> None:
        self._values: dict[StateKey[Any], Any] = {}

    def write(self, key: StateKey[T], value: T) -> None:
        """Leave a value for later extension points."""
        self._values[key] = value

    def read(self, key: StateKey[T]) -> T | None:
        """Return what an earlier extension point left, if anything."""
        value: T | None = self._values.get(key)
        return value

    def for_another(self) -> "CycleState":
        """Return the state in which another member of the pod's group is looked at."""
        state = CycleState()
        state._values = {key: value for key, value in self._values.items() if key.of_group}
        return state

    @contextmanager
    def lending(self, key: StateKey[T], value: T) -> Iterator[None]:
        """Leave a value for the time of a block, in place of the one that is there."""
        before = dict(self._values)
        self._values[key] = value
        try:
            yield
        finally:
            self._values = before


ASKED_ABOUT: Final[StateKey[Mask]] = StateKey("nodes whose answer matters")
"""Where only some nodes are asked about; a filter that is dear may leave out the others."""


FILTER_FAILED: Final[StateKey[FrameworkPluginFailed]] = StateKey("the filter that failed")
"""Left for the message about why the pod fits nowhere: the filter refused because it failed."""


class FrameworkPlugin(ABC):
    """What every plugin is: a name, and the events that may change its mind."""

    name: str

    def __init__(self, handle: Handle, arguments: Mapping[str, Any]) -> None:
        """Be given the scheduler, and the arguments of the configuration: none, unless a subclass reads some."""
        read_arguments(NoArguments, arguments)
        self._handle = handle
        self._services = handle.services

    def events(self) -> tuple[EventHint, ...]:
        """Return the events that may make a pod schedulable that this plugin rejected."""
        return ()


class QueueSort(FrameworkPlugin):
    """Orders the active queue; a profile has exactly one."""

    @abstractmethod
    def sort_key(self, queued: QueuedPod) -> tuple[Any, ...]:
        """Return a key; the pod with the smallest is scheduled first."""


class PreEnqueue(FrameworkPlugin):
    """Decides whether a pod may enter the active queue at all."""

    @abstractmethod
    def pre_enqueue(self, pod: Pod) -> Status:
        """Refuse to keep the pod out until an event this plugin registered wakes it."""


class PreFilter(FrameworkPlugin):
    """Looks at the pod before any node is looked at."""

    decides_for_group: ClassVar[bool] = False
    """Whether it decides something about the whole group; it is then not asked about members that are only tried."""

    @abstractmethod
    def pre_filter(self, state: CycleState, pod: Pod) -> Status:
        """Refuse to end the cycle for this pod, or prepare what :meth:`Filter.filter` needs."""


class Filter(FrameworkPlugin):
    """Removes nodes the pod cannot run on."""

    reason: ClassVar[str] = "node(s) didn't satisfy a plugin's filter"
    alike: ClassVar[bool] = False
    """A promise: members of a part of a group that ask for the same get the same answer, and no pod that leaves a node
    changes it. Without it every member is asked about before its group is given up."""

    def concerns(self, state: CycleState, pod: Pod) -> bool:
        """Tell whether this filter has anything to say about the pod; if not, it is not asked."""
        return True

    @abstractmethod
    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Mask:
        """Return where the pod may run, ``[node]``."""

    def refusals(self, state: CycleState, pod: Pod, nodes: NodeTable) -> tuple[Refusal, ...]:
        """Return the nodes refused by reason; by default all for one reason, which an eviction might lift."""
        allowed = a_mask(self.filter(state, pod, nodes), nodes)
        return (Refusal.evictable(self.name, self.reason, nodes.alive & ~allowed),)


class NodeFilter(Filter):
    """A filter written for one node. It is called for every node, every time: keep it for rules that are rare."""

    @abstractmethod
    def filter_node(self, state: CycleState, pod: Pod, node: Node) -> Status:
        """Allow or refuse one node; the reasons are counted in the pod's condition. An error refuses all nodes."""

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Mask:
        """Return the nodes that no refusal names."""
        mask = nodes.alive.copy()
        for refusal in self.refusals(state, pod, nodes):
            mask &= ~refusal.nodes
        return mask

    def refusals(self, state: CycleState, pod: Pod, nodes: NodeTable) -> tuple[Refusal, ...]:
        """Ask about every node, and gather the answers by reason."""
        found: dict[str, tuple[Mask, Mask]] = {}
        for row in np.flatnonzero(nodes.alive).tolist():
            node = nodes.nodes[row]
            if node is None:
                continue
            status = a_status(self.filter_node(state, pod, node))
            if status.ok:
                continue
            if status.code is Code.ERROR:
                raise AnsweredError(f"{status.message} (about node {node.metadata.name})")
            for reason in status.reasons or (self.reason,):
                refused, final = found.setdefault(reason, (np.zeros_like(nodes.alive), np.zeros_like(nodes.alive)))
                refused[row] = True
                final[row] = status.code is not Code.UNSCHEDULABLE
        return tuple(Refusal(self.name, reason, *masks) for reason, masks in found.items())


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """What a post-filter found: room that is there now (success), a node that will have room, or why there is none.

    ``keep`` leaves an earlier nomination as it is: its victims are still on their way out.
    """

    status: Status
    nominated_node: str = ""
    keep: bool = False


class PostFilter(FrameworkPlugin):
    """Runs when no node is left; the first that makes room ends the round."""

    must_be_last: ClassVar[bool] = False
    """A profile that orders another post-filter after this one is refused."""

    @abstractmethod
    def post_filter(self, state: CycleState, pod: Pod) -> PostFilterResult:
        """Try to make room for the pod."""


class Score(FrameworkPlugin):
    """Prefers some feasible nodes over others."""

    @abstractmethod
    def score(self, state: CycleState, pod: Pod, nodes: NodeTable, feasible: Mask) -> Scores:
        """Return 0..100 per node, ``[node]``; what is outside ``feasible`` is ignored."""


class Reserve(FrameworkPlugin):
    """Called when a pod has been given a node, before it is bound, and when it lost the node again."""

    @abstractmethod
    def reserve(self, state: CycleState, pod: Pod, node: str) -> Status:
        """Note the reservation, or refuse it."""

    @abstractmethod
    def unreserve(self, state: CycleState, pod: Pod, node: str) -> None:
        """Forget the reservation; idempotent, must not raise."""


class Permit(FrameworkPlugin):
    """Decides when a pod that has a node may be bound to it."""

    @abstractmethod
    def permit(self, state: CycleState, pod: Pod, node: str) -> tuple[Status, float]:
        """Allow, refuse, or wait at most the returned number of seconds."""


class PreBind(FrameworkPlugin):
    """Prepares what the pod needs on its node."""

    @abstractmethod
    async def pre_bind(self, state: CycleState, pod: Pod, node: str) -> Status:
        """Prepare, or refuse."""


class Bind(FrameworkPlugin):
    """Binds the pod; the first that does not skip is the one."""

    @abstractmethod
    async def bind(self, state: CycleState, pod: Pod, node: str) -> Status:
        """Bind, refuse or skip."""


class PostBind(FrameworkPlugin):
    """Called when a pod was bound."""

    @abstractmethod
    async def post_bind(self, state: CycleState, pod: Pod, node: str) -> None:
        """Note it."""
