"""The gang of a workload that has no pods: what its rule says its pods and their gang would be, as the scheduler reads.

Names end in a character that no name in Kubernetes has, so a virtual pod or gang is never taken for a real one.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from spinney.api.core import Pod
from spinney.api.labels import POD_GANG
from spinney.api.pod_rules.defaults import fill_pod_defaults
from spinney.api.podgang import PodGang
from spinney.api.struct import JSON, convert
from spinney.gangs.sources import podgang
from spinney.gangs.tree import GangKey
from spinney.grouping.made_gangs import grouped, rule_for
from spinney.grouping.made_workloads import workload_made
from spinney.grouping.terms import RuleRefused

MARK: Final = "~"
_UID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


@dataclass(frozen=True)
class VirtualGang:
    """The pods and the gang that a workload would have."""

    pods: tuple[Pod, ...]
    gang: PodGang
    real_name: str
    """What the real PodGang will be called."""

    @property
    def key(self) -> GangKey:
        """Return what the scheduler calls the gang."""
        return GangKey.of(podgang.SOURCE, self.gang.metadata)

    @property
    def expected(self) -> tuple[str, str]:
        """Return namespace and name by which the pods of the real gang are recognised (:func:`without_uid`)."""
        return self.gang.metadata.namespace or "", without_uid(self.real_name)


def without_uid(name: str) -> str:
    """Return the name of a gang without the uid of what it is for: of a TrainJob's that is the JobSet made later."""
    return _UID.sub("", name)


def virtual_gang(
    manifest: JSON, others: Iterable[JSON], *, names: Collection[str], priorities: Mapping[str, int], born: datetime
) -> VirtualGang:
    """Return the gang that a workload would be; raises :class:`RuleRefused` where that cannot be said.

    ``others`` are the runtimes that a TrainJob may name, ``names`` the schedulers that are served.
    """
    try:
        found = _made(manifest, others, priorities, born)
    except RuleRefused:
        raise
    except (msgspec.ValidationError, AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        # A CRD without a schema lets anything through, and one object must not keep others from waiting.
        raise RuleRefused(
            f"it, or the runtime it names, does not have the fields of a {manifest['kind']}: {error}"
        ) from error
    pods = [each for each in found if isinstance(each, Pod)]
    gangs = [each for each in found if isinstance(each, PodGang)]
    strange = sorted({pod.spec.scheduler_name for pod in pods} - set(names))
    if strange:
        raise RuleRefused(
            f"its pods ask for the scheduler {', '.join(strange)}; name one of {', '.join(sorted(names))} "
            "in the template's schedulerName, or do not let it wait in a queue"
        )
    if len(gangs) != 1 or any(pod.metadata.labels.get(POD_GANG) != gangs[0].metadata.name for pod in pods):
        raise RuleRefused("its pods would not be one gang, and only workloads that are one gang can wait in a queue")
    real = gangs[0].metadata.name
    gang = msgspec.structs.replace(gangs[0], metadata=msgspec.structs.replace(gangs[0].metadata, name=real + MARK))
    return VirtualGang(tuple(_marked(pod, real + MARK) for pod in pods), gang, real)


def _made(manifest: JSON, others: Iterable[JSON], priorities: Mapping[str, int], born: datetime) -> list[Pod | PodGang]:
    written = workload_made(manifest, others)
    rule = rule_for(written)
    if rule is None:
        raise RuleRefused(f"no rule of the grouper says which pods a {manifest['kind']} makes")
    return list(grouped(written, rule, lambda made: _pod(made, priorities, born), set(priorities), born))


def _pod(made: JSON, priorities: Mapping[str, int], born: datetime) -> Pod:
    fill_pod_defaults(made["spec"])
    pod = convert(Pod, {**made, "status": {"phase": "Pending"}})
    name = f"{pod.metadata.name}{MARK}"
    uid = f"{pod.metadata.owner_references[0].uid}/{name}"
    changes: dict[str, Any] = {"name": name, "uid": uid, "creation_timestamp": born}
    spec = pod.spec
    if spec.priority is None:
        spec = msgspec.structs.replace(spec, priority=priorities.get(spec.priority_class_name))
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, **changes), spec=spec)


def _marked(pod: Pod, gang: str) -> Pod:
    labels = {**pod.metadata.labels, POD_GANG: gang}
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, labels=labels))
