"""What every gang gets, whatever its kind: labels, queue, priority, preemptibility, durations, topology.

Labels and annotations of the owners are looked at nearest first, then the pod's. Empty counts as absent. What is named
and does not exist is passed over and reported.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from spinney.api import interruption
from spinney.api import labels as marks
from spinney.api.core import Pod
from spinney.api.labels import KAI_PREEMPTIBILITY, KAI_PREEMPTION_DELAY, KAI_PRIORITY_CLASS, KAI_STALENESS_GRACE
from spinney.api.struct import Struct
from spinney.gangs.sources.context import DEFAULT_QUEUE, duration_of
from spinney.gangs.tree import TopologyConstraintInfo
from spinney.grouping.owners import Owner
from spinney.grouping.rules import Rule, text_at
from spinney.grouping.shapes import PREFERRED_LEVEL, REQUIRED_LEVEL
from spinney.grouping.world import World

MIN_MEMBER: Final = "kai.scheduler/min-member"
BATCH_MIN_MEMBER: Final = "kai.scheduler/batch-min-member"
SEGMENT_SIZE: Final = "kai.scheduler/segment-size"
SEGMENT_REQUIRED_LEVEL: Final = "kai.scheduler/segment-topology-required-placement"
SEGMENT_PREFERRED_LEVEL: Final = "kai.scheduler/segment-topology-preferred-placement"
PROJECT: Final = "project"
USER: Final = "user"

READ_ANNOTATIONS: Final = frozenset(
    {
        MIN_MEMBER,
        BATCH_MIN_MEMBER,
        marks.KAI_TOPOLOGY,
        marks.TOPOLOGY_NAME,
        REQUIRED_LEVEL,
        PREFERRED_LEVEL,
        SEGMENT_SIZE,
        SEGMENT_REQUIRED_LEVEL,
        SEGMENT_PREFERRED_LEVEL,
        KAI_PREEMPTION_DELAY,
        KAI_STALENESS_GRACE,
        marks.CHECKPOINT_GRACE,
        marks.LAST_CHECKPOINT,
        marks.MIN_RUNTIME,
        marks.VOLCANO_QUEUE,
        USER,
    }
)
"""The annotations of an owner that its gang carries on."""

PREEMPTIBILITIES: Final = ("preemptible", "non-preemptible")


class Conventions(Struct, frozen=True, kw_only=True):
    """Which labels mean what: part of the grouper's configuration."""

    queue_label: str = marks.KAI_QUEUE
    """The label in which workloads and pods name their queue; gangs name it in `kai.scheduler/queue`."""
    node_pool_label: str = marks.KAI_NODE_POOL
    """The label that names the node pool."""
    default_queue: str = DEFAULT_QUEUE
    """The queue of gangs that name none."""


@dataclass(frozen=True, kw_only=True)
class GangAttributes:
    """How a gang stands, and what it is marked with."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    queue: str
    priority_class: str
    preemptibility: str
    preemption_delay: timedelta | None
    staleness_grace: timedelta | None
    topology: TopologyConstraintInfo | None
    problems: tuple[str, ...]


def attributes(
    owner: Owner, chain: Sequence[Owner], pod: Pod, rule: Rule, *, conventions: Conventions, world: World
) -> GangAttributes:
    """Return the attributes of the gang of ``owner``; ``chain`` is what says how it stands, nearest first."""
    priority, problems = priority_class(chain, pod, rule, world)
    return GangAttributes(
        labels=_labels(owner, pod, conventions),
        annotations=_annotations(owner, pod),
        queue=queue(owner, pod, conventions),
        priority_class=priority,
        preemptibility=preemptibility(chain, pod, world),
        preemption_delay=duration(KAI_PREEMPTION_DELAY, chain, pod, least=timedelta()),
        staleness_grace=duration(KAI_STALENESS_GRACE, chain, pod),
        topology=whole_topology(owner.metadata.annotations),
        problems=problems + tuple(_undeclared(owner, pod)),
    )


def queue(owner: Owner, pod: Pod, conventions: Conventions) -> str:
    """Return the queue: as labelled, else that of the project in its node pool, else the default."""
    labels = (owner.metadata.labels, pod.metadata.labels)
    named = _first(labels, conventions.queue_label)
    if named:
        return named
    project = _first(labels, PROJECT)
    pool = pod.metadata.labels.get(conventions.node_pool_label) if conventions.node_pool_label else None
    if project:
        return f"{project}-{pool}" if pool else project
    return conventions.default_queue


def priority_class(chain: Sequence[Owner], pod: Pod, rule: Rule, world: World) -> tuple[str, tuple[str, ...]]:
    """Return the priority class, and the names that were passed over because there is no such class."""
    missing: list[str] = []
    for name, where in _named_classes(chain, pod, rule, world):
        if name in world.priority_classes:
            return name, tuple(missing)
        missing.append(f"{where} names priority class {name!r}, which does not exist")
    return rule.priority, tuple(missing)


def _undeclared(owner: Owner, pod: Pod) -> Iterator[str]:
    """Return which annotations about being disturbed cannot be read."""
    here = f"{owner.kind} {owner.metadata.name}"
    for where, annotations in ((here, owner.metadata.annotations), ("its pod", pod.metadata.annotations)):
        for key, fault in interruption.faults(annotations):
            yield f"annotation {key} of {where}: {fault}"


def preemptibility(chain: Sequence[Owner], pod: Pod, world: World) -> str:
    """Return ``preemptible``, ``non-preemptible``, or nothing: then the priority decides."""
    for metadata in (*(owner.metadata for owner in chain), pod.metadata):
        word = metadata.labels.get(KAI_PREEMPTIBILITY)
        if word in PREEMPTIBILITIES:
            return word
    for owner in chain:
        default = world.default_for(owner)
        if default is not None and default.preemptibility.lower() in PREEMPTIBILITIES:
            return default.preemptibility.lower()
    return ""


def duration(key: str, chain: Sequence[Owner], pod: Pod, *, least: timedelta | None = None) -> timedelta | None:
    """Return the first duration that an annotation of this key carries."""
    for metadata in (*(owner.metadata for owner in chain), pod.metadata):
        found = duration_of(metadata.annotations, key)
        if found is not None and (least is None or found >= least):
            return found
    return None


def whole_topology(annotations: Mapping[str, str]) -> TopologyConstraintInfo | None:
    """Return the topology constraint of a whole gang, which its owner's annotations give."""
    name = annotations.get(marks.KAI_TOPOLOGY) or annotations.get(marks.TOPOLOGY_NAME, "")
    required, preferred = annotations.get(REQUIRED_LEVEL, ""), annotations.get(PREFERRED_LEVEL, "")
    return TopologyConstraintInfo(name, required, preferred) if name or required or preferred else None


def node_pool(labels: Mapping[str, str], pod_labels: Mapping[str, str], key: str) -> str | None:
    """Return the node pool of a gang: as its owner says, else as the pod says."""
    return labels.get(key) or pod_labels.get(key) if key else None


def _labels(owner: Owner, pod: Pod, conventions: Conventions) -> dict[str, str]:
    labels = dict(owner.metadata.labels)
    if pod.metadata.labels.get(USER):
        labels.setdefault(USER, pod.metadata.labels[USER])
    pool = node_pool(labels, pod.metadata.labels, conventions.node_pool_label)
    if pool:
        labels[conventions.node_pool_label] = pool
    return labels


def _annotations(owner: Owner, pod: Pod) -> dict[str, str]:
    own = {key: value for key, value in owner.metadata.annotations.items() if key in READ_ANNOTATIONS}
    if pod.metadata.annotations.get(USER):
        own.setdefault(USER, pod.metadata.annotations[USER])
    return own


def _named_classes(chain: Sequence[Owner], pod: Pod, rule: Rule, world: World) -> Iterator[tuple[str, str]]:
    """Yield the priority classes that are named, the most explicit first, each with who names it."""
    for text in rule.priority_from:
        for owner in chain:
            if found := text_at(text, owner.content, owner.metadata.labels):
                yield found, f"{text} of {owner}"
    for owner in chain:
        if name := owner.metadata.labels.get(KAI_PRIORITY_CLASS):
            yield name, f"label {KAI_PRIORITY_CLASS} of {owner}"
    if name := pod.metadata.labels.get(KAI_PRIORITY_CLASS):
        yield name, f"label {KAI_PRIORITY_CLASS} of the pod"
    if pod.spec.priority_class_name:
        yield pod.spec.priority_class_name, "spec.priorityClassName of the pod"
    for owner in chain:
        default = world.default_for(owner)
        if default is not None and default.priority_name:
            yield default.priority_name, f"the default for kind {owner.kind}"


def _first(mappings: Sequence[Mapping[str, str]], key: str) -> str | None:
    return next((found for each in mappings if key and (found := each.get(key))), None)
