"""Pods are told their gang while they are created, so that they need not be written a second time.

This saves a write per pod, and nothing depends on it. What it cannot decide at once it leaves as it is: an owner that
is not known, a rule that refuses, a gang that is named after a pod which has no name yet, an error. The controllers
then tell the pod as soon as they see it. They also see to every pod that was told here: they make its PodGang, and
correct what is no longer right. What a pod is told follows from its owners and its own labels, never from who asks.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, get_args

import msgspec
import structlog
from prometheus_client import Counter

from spinney.api import labels as marks
from spinney.api.core import Pod
from spinney.api.names import label_value_faults
from spinney.api.podgang import PodGang, PodGangSpec
from spinney.api.struct import JSON, convert
from spinney.backends.interface import SchedulerBackend
from spinney.grouping import joining, podgangs
from spinney.grouping.intake import LeftAlone, PodIntake, is_common, is_single
from spinney.grouping.joining import Marks
from spinney.grouping.likeness import Alike
from spinney.grouping.owner_cache import NotFetched
from spinney.grouping.owners import climb
from spinney.grouping.terms import RuleRefused
from spinney.kube.cache import WatchCache
from spinney.kube.errors import KubeError
from spinney.kube.keys import Key
from spinney.runtime.faults import raised_later

READ_SECONDS: Final = 1.0
"""How long reading the owners of a new pod may take: the client that creates it waits."""

Answer = Literal["gang", "alone", "later"]

_UNKNOWN: Final = "?"
"""Stands for the name and the uid of a pod that has none yet: no gang is called so."""
_READ: Final = ("schedulerName", "priorityClassName", "schedulingGroup", "workloadRef")
"""The fields of a pod's spec that say where it belongs."""

_NOTHING: Final[Marks] = {"labels": {}, "annotations": {}}

Changes = dict[str, dict[str, str]]
"""The labels and the annotations of a pod, whole, where they change."""

log = structlog.get_logger()


class _Told(NamedTuple):
    """What a pod is told."""

    scheduler: str
    marks: Marks
    counter: Counter | None = None
    """Counts the pods of its kind that are grouped; ``None`` for one that is left alone."""
    gang: Key | None = None
    """``None`` for a pod that is a gang of its own and needs no object."""
    spec: PodGangSpec | None = None
    """What the gang asks for, without its pods."""


class _Later(Exception):
    """The pod is left to the controllers; the message says why."""


@dataclass
class PodAdmission:
    """Answers for pods that are about to be created. Keeps what pods like them were told. Mutable."""

    intake: PodIntake
    gangs: WatchCache[PodGang]
    backends: Mapping[str, SchedulerBackend]
    """By the scheduler name of pods."""
    ready: Callable[[], bool]
    """Tells whether the caches are filled that decide what pods are told."""
    _told: Alike[_Told] = field(default_factory=Alike)
    _is_ready: bool = False

    def __post_init__(self) -> None:
        self._unable = {name: joining.unable(backend) for name, backend in self.backends.items()}
        self._answers = {answer: self.intake.metrics.admissions.labels(answer) for answer in get_args(Answer)}

    async def changes(self, manifest: JSON, namespace: str, *, dry_run: bool = False) -> Changes:
        """Return what a pod that is created in a namespace is told; nothing where that is left to the controllers."""
        try:
            if manifest["spec"].get("schedulerName") not in self.backends:
                return {}
            pod = _projected(manifest, namespace)
        except (msgspec.ValidationError, AttributeError, KeyError, TypeError):
            return {}  # the API server refuses it next, with the path of every fault
        if not self.intake.serves(pod) or not all(each.uid for each in pod.metadata.owner_references):
            return {}  # no API server stores a pod with an owner by name alone, and others are told no uids
        told: _Told | None = None
        try:
            told = await self._decided(pod)
        except (_Later, RuleRefused, KubeError, TimeoutError) as why:
            log.debug("pod is told its gang after its creation", namespace=namespace, why=str(why))
        except raised_later():
            log.exception("pod could not be told its gang at its creation", namespace=namespace)
        if not dry_run:
            self._count(told)
        return joining.marked(pod, told.marks) if told is not None else {}

    # -- deciding ------------------------------------------------------------------------------------------------------

    async def _decided(self, pod: Pod) -> _Told:
        """Return what a pod is told, after its owners were read where that takes no more than a moment."""
        if not self._is_ready:
            self._is_ready = self.ready()
        if not self._is_ready:
            raise _Later("the caches are not filled yet")
        try:
            return self._found(pod)
        except NotFetched as wanted:
            lacking = wanted
        async with asyncio.timeout(READ_SECONDS):
            while True:
                await self._fetch(lacking)
                try:
                    return self._found(pod)
                except NotFetched as wanted:
                    lacking = wanted

    async def _fetch(self, wanted: NotFetched) -> None:
        """Read one owner; kinds without a rule, of which there may be any number, are not looked for here."""
        owners = self.intake.owners
        if not owners.serves(wanted):
            await owners.learn(wanted)
        if not owners.serves(wanted):
            raise _Later(f"{wanted}: how its kind is served is not known yet")
        await owners.fetch(wanted)

    def _found(self, pod: Pod) -> _Told:
        backend = self.backends[pod.spec.scheduler_name]
        if unable := self._unable[pod.spec.scheduler_name]:
            raise _Later(unable)  # said in an event of the pod, which has to exist for that
        chain = climb(pod, self.intake.owners.find)
        told = self._told.get(pod, chain)
        if told is None or told.scheduler != pod.spec.scheduler_name:
            told = self._described(pod, backend)
        if told.gang is not None and (found := self.gangs.get(told.gang)) is not None:
            _check_stands(found, told, backend)
        return told

    def _described(self, pod: Pod, backend: SchedulerBackend) -> _Told:
        scheduler = pod.spec.scheduler_name
        try:
            grouping, chain = self.intake.applied(pod)
        except LeftAlone:
            if backend.capabilities.every_pod_in_a_group:
                raise
            return _Told(scheduler, joining.left_marks(pod) or _NOTHING)
        counter = self.intake.metrics.pods_grouped.labels(grouping.gang.rule.kind)
        if is_single(grouping) and not backend.capabilities.every_pod_in_a_group:
            alone = joining.alone_marks(pod, grouping.gang) or _NOTHING
            if any(label_value_faults(value) for value in alone["labels"].values() if value):
                raise _Later("its labels would not be valid")  # said in an event of the pod
            return _Told(scheduler, alone, counter)
        if not backend.capabilities.waits_for_group:
            raise _Later(f"{backend.name} may place a pod whose group does not exist yet")
        if grouping.gang.shape.starts_later:
            raise _Later("it belongs to a part that starts later than the rest of its gang")
        if _UNKNOWN in grouping.gang.name:
            raise _Later("its gang is named after the pod, which has no name yet")
        gang = podgangs.pod_gang(grouping.gang, backend.name, {})
        place = self.intake.remembered(pod, grouping, chain)
        marks = joining.gang_marks(pod.metadata.name, gang, place.group, backend)
        told = _Told(scheduler, marks, counter, place.gang, gang.spec)
        if is_common(grouping):
            self._told.put(pod, chain, told)
        return told

    def _count(self, told: _Told | None) -> None:
        self._answers["later" if told is None else "alone" if told.gang is None else "gang"].inc()
        if told is not None and told.counter is not None:
            told.counter.inc()


def _check_stands(found: PodGang, told: _Told, backend: SchedulerBackend) -> None:
    """See that a gang that exists is what new pods were told: until it is, they may not be counted in it."""
    if marks.GROUPED not in found.metadata.labels:
        raise _Later(f"PodGang {told.gang} exists and is not the grouper's")
    if found.metadata.deleting:
        raise _Later(f"PodGang {told.gang} is being deleted")
    if backend.has_own_objects or podgangs.without_pods(found.spec) != told.spec:
        raise _Later(f"PodGang {told.gang} is changed first")


def _projected(manifest: JSON, namespace: str) -> Pod:
    """Return of a pod that is not stored yet what says where it belongs; the namespace is that of the request."""
    metadata, spec = manifest["metadata"], manifest["spec"]
    known = {"name": metadata.get("name") or _UNKNOWN, "uid": metadata.get("uid") or _UNKNOWN, "namespace": namespace}
    read = {name: spec[name] for name in _READ if name in spec}
    return convert(Pod, {"metadata": {**metadata, **known}, "spec": read})
