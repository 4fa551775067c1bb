"""Views of a task, its job and a node that note every fact a function reads of them.

They show what the originals show. What is not a fact of :mod:`~spinney.scheduler.knowledge.facts`, such as the other
tasks of the job or the pods on a node, can be read as well; then it is noted that the answer depends on more.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any, ClassVar, Final, Protocol, TypeVar

import numpy as np

from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeInfo, NodeObject, Nodes
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.knowledge import facts
from spinney.scheduler.knowledge.facts import Fact, NodeFact, PodFact
from spinney.scheduler.knowledge.refusals import Reasons

V = TypeVar("V")

_DEPTH: Final = 6
"""How many calls there are at most between a function and the note of what it reads."""
_OF_TASK: Final[Mapping[str, PodFact]] = {
    "request": facts.pod_attribute("request", "number"),
    "pod": facts.WHOLE_POD,
    **{
        name: facts.pod_attribute(name)
        for name in ("name", "namespace", "uid", "key", "created", "pod_set", "requires_gpu", "nominated_node")
    },
}
_OF_JOB: Final[Mapping[str, PodFact]] = {
    "gang": facts.pod_attribute("job", "key"),
    "root": facts.pod_attribute("job", "key"),
    **{
        name: facts.pod_attribute("job", name)
        for name in ("name", "namespace", "uid", "key", "created", "queue", "priority")
    },
}
_OF_NODE: Final[Mapping[str, NodeFact]] = {
    "name": facts.WHOLE_NODE,
    "row": facts.WHOLE_NODE,
    "gpus": facts.GPUS,
    "gpu_memory": facts.GPU_MEMORY,
    "idle_gpus": facts.IDLE_GPUS,
    "releasing_gpus": facts.RELEASING_GPUS,
    "has_available_gpus": facts.HAS_IDLE_GPU,
    "gpu_utilization": facts.GPU_UTILIZATION,
}
_AMOUNTS: Final = frozenset({"allocatable", "used", "idle", "releasing"})


class ReadingNotes:
    """What a function has read, in order, with the values it was given. Mutable."""

    __slots__ = ("_reasons", "moves", "moves_with_node", "read", "row", "task")

    def __init__(self, task: PodInfo, row: int, reasons: Reasons | None) -> None:
        self.task = task
        self.row = row
        self._reasons = reasons
        self.read: dict[Fact, Any] = {}
        self.moves = False
        """It read something that may change with any decision."""
        self.moves_with_node = False
        """It read something that changes with what is on the node, and of which no column is kept."""

    def pod(self, fact: PodFact) -> None:
        """Note a fact about the pod or its job."""
        if fact not in self.read and not self._is_for_reason():
            self.read[fact] = fact.of(self.task)

    def node(self, fact: NodeFact, nodes: Nodes) -> None:
        """Note a fact about the node."""
        if fact not in self.read and not self._is_for_reason():
            self.read[fact] = fact.of(nodes, np.array([self.row], dtype=np.intp)).tolist()[0]

    def _is_for_reason(self) -> bool:
        """Tell whether the function reads something only to tell why it refuses."""
        if self._reasons is None:
            return False
        frame: FrameType | None = sys._getframe(2)  # noqa: SLF001 - where the function stands
        for _ in range(_DEPTH):
            if frame is None:
                return False
            if frame.f_code is self._reasons.code:
                return frame.f_lasti in self._reasons.offsets
            frame = frame.f_back
        return False


class NotedMapping(Mapping[str, V]):
    """Labels, annotations or amounts that note which are read: one of them, or ``everything`` there is."""

    __slots__ = ("_all", "_each", "_real")

    def __init__(self, real: Mapping[str, V], each: Callable[[str], None], everything: Callable[[], None]) -> None:
        self._real = real
        self._each = each
        self._all = everything

    def __getitem__(self, key: str) -> V:
        self._each(key)
        return self._real[key]

    def get(self, key: str, default: Any = None) -> Any:
        self._each(key)
        return self._real.get(key, default)

    def __contains__(self, key: object) -> bool:
        if isinstance(key, str):
            self._each(key)
        return key in self._real

    def __iter__(self) -> Iterator[str]:
        self._all()
        return iter(self._real)

    def __len__(self) -> int:
        self._all()
        return len(self._real)

    def __eq__(self, other: object) -> bool:
        self._all()
        return self._real == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        self._all()
        return repr(self._real)


class PodReader(Protocol):
    """What a view of a task or job tells about its reader."""

    moves: bool

    def pod(self, fact: PodFact) -> None:
        """Note a fact about the pod or its job."""


class _View:
    """An object whose reader is watched, also when it compares or shows the object itself."""

    __slots__ = ("_real",)
    shown_as: ClassVar[type]
    _real: Any

    @property  # type: ignore[misc] # as isinstance sees it
    def __class__(self) -> type:
        return self.shown_as

    def note_whole(self) -> None:
        """Note that something about the object itself is read."""
        raise NotImplementedError

    def __repr__(self) -> str:
        self.note_whole()
        return repr(self._real)

    def __eq__(self, other: object) -> bool:
        self.note_whole()
        return self._real is getattr(other, "_real", other)

    def __hash__(self) -> int:
        self.note_whole()
        return hash(self._real)


class _PodView(_View):
    """A task or job. What is not ``known`` to stay may change."""

    __slots__ = ("_notes",)
    known: ClassVar[Mapping[str, PodFact]]

    def __init__(self, real: object, notes: PodReader) -> None:
        self._real = real
        self._notes = notes

    def __getattr__(self, name: str) -> Any:
        fact = self.known.get(name)
        if fact is not None:
            self._notes.pod(fact)
        else:
            self._notes.moves = True
        return getattr(self._real, name)

    def note_whole(self) -> None:
        """Note that something is read that may change."""
        self._notes.moves = True


class TaskView(_PodView):
    """A task whose reader is watched."""

    __slots__ = ("job",)
    shown_as = PodInfo
    known = _OF_TASK

    def __init__(self, real: PodInfo, job: "JobView", notes: PodReader) -> None:
        self._real = real
        self._notes = notes
        self.job = job

    @property
    def labels(self) -> NotedMapping[str]:
        return self._texts(self._real.labels, facts.pod_label)

    @property
    def annotations(self) -> NotedMapping[str]:
        return self._texts(self._real.annotations, facts.pod_annotation)

    def _texts(self, real: Mapping[str, str], fact: Callable[[str], PodFact]) -> NotedMapping[str]:
        notes = self._notes
        return NotedMapping(real, lambda key: notes.pod(fact(key)), lambda: notes.pod(facts.WHOLE_POD))


class JobView(_PodView):
    """A job whose reader is watched."""

    __slots__ = ()
    shown_as = PodGroupInfo
    known = _OF_JOB

    def __repr__(self) -> str:
        self._notes.pod(facts.pod_attribute("job", "key"))
        return repr(self._real)

    def is_preemptible_job(self, inference_preemptible: bool = False) -> bool:
        """Tell whether others may take what the job holds."""
        self._notes.pod(facts.preemptible(inference_preemptible))
        return bool(self._real.is_preemptible_job(inference_preemptible))


class NodeView(_View):
    """A node whose reader is watched."""

    __slots__ = ("_nodes", "_notes")
    shown_as = NodeInfo

    def __init__(self, real: NodeInfo, nodes: Nodes, notes: ReadingNotes) -> None:
        self._real = real
        self._nodes = nodes
        self._notes = notes

    @property
    def node(self) -> "NodeObjectView":
        return NodeObjectView(self._real.node, self)

    @property
    def labels(self) -> NotedMapping[str]:
        notes, nodes = self._notes, self._nodes
        return NotedMapping(self._real.labels, lambda key: notes.node(facts.node_label(key), nodes), self.note_whole)

    def __getattr__(self, name: str) -> Any:
        fact = _OF_NODE.get(name)
        if fact is not None:
            self._notes.node(fact, self._nodes)
        elif name in _AMOUNTS:
            return self._amounts(name)
        elif name in {"pods", "shared_gpus"}:
            self._notes.moves_with_node = True
        else:
            self._notes.moves = True
        return getattr(self._real, name)

    def _amounts(self, matrix: str) -> NotedMapping[int]:
        notes, nodes = self._notes, self._nodes

        def everything() -> None:
            notes.moves_with_node = True

        real: Mapping[str, int] = getattr(self._real, matrix)
        return NotedMapping(real, lambda name: notes.node(facts.node_amount(matrix, name), nodes), everything)

    def note_whole(self) -> None:
        """Note that something about the node itself is read."""
        self._notes.node(facts.WHOLE_NODE, self._nodes)


class NodeObjectView:
    """The object of a node whose reader is watched."""

    __slots__ = ("_real", "_view")

    def __init__(self, real: NodeObject, view: NodeView) -> None:
        self._real = real
        self._view = view

    @property
    def labels(self) -> NotedMapping[str]:
        return self._view.labels

    def __getattr__(self, name: str) -> Any:
        self._view.note_whole()
        return getattr(self._real, name)
