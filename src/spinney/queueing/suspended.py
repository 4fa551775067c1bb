"""What is read of a suspended workload, and where it stands. Its spec stays as it came until it is looked at."""

from typing import Final

import msgspec

from spinney.api.labels import ADMISSION, KAI_NODE_POOL, KAI_PRIORITY_CLASS, KAI_QUEUE, KUEUE_QUEUE, QUEUED
from spinney.api.meta import Metadata
from spinney.api.resource import Resource
from spinney.api.struct import JSON, Struct
from spinney.gangs.sources.context import DEFAULT_QUEUE, SourceContext
from spinney.grouping.attributes import PROJECT
from spinney.kube.depths import decoded
from spinney.queueing.backlog import QueuePlace

SELECTOR: Final = f"{ADMISSION}={QUEUED},!{KUEUE_QUEUE}"
"""Workloads of Kueue's are Kueue's to admit."""
GROUPS: Final = {"Job": "batch", "JobSet": "jobset.x-k8s.io", "TrainJob": "trainer.kubeflow.org"}
"""The kinds that can wait, and their API groups. Each has ``spec.suspend``."""
_ENDED: Final = frozenset({"Complete", "Completed", "Failed"})


class _PodSpec(Struct, frozen=True, kw_only=True):
    priority_class_name: str = ""


class _PodTemplate(Struct, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    spec: _PodSpec = _PodSpec()


class _JobSpec(Struct, frozen=True, kw_only=True):
    template: _PodTemplate = _PodTemplate()


class _JobTemplate(Struct, frozen=True, kw_only=True):
    spec: _JobSpec = _JobSpec()


class _ReplicatedJob(Struct, frozen=True, kw_only=True):
    template: _JobTemplate = _JobTemplate()


class _Spec(Struct, frozen=True, kw_only=True):
    suspend: bool = False
    template: _PodTemplate | None = None
    replicated_jobs: tuple[_ReplicatedJob, ...] = ()

    @property
    def pods(self) -> _PodTemplate:
        """Return the template of its first pods: of a Job, or of a JobSet."""
        made = self.template or next((each.template.spec.template for each in self.replicated_jobs), None)
        return made or _PodTemplate()


class _Condition(Struct, frozen=True, kw_only=True):
    type: str = ""
    status: str = ""


class _Status(Struct, frozen=True, kw_only=True):
    conditions: tuple[_Condition, ...] = ()


class SuspendedWorkload(Struct, frozen=True, kw_only=True):
    """A workload that can be suspended."""

    metadata: Metadata = Metadata()
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: _Status = _Status()

    @property
    def waits(self) -> bool:
        """Tell whether it is suspended and has not ended."""
        ended = any(each.type in _ENDED and each.status == "True" for each in self.status.conditions)
        return not ended and not self.metadata.deleting and _read(self.spec).suspend

    def place(self, context: SourceContext) -> QueuePlace:
        """Return where it stands. Its gang says the same more exactly, once it is made."""
        template = _read(self.spec).pods
        labels = {**template.metadata.labels, **self.metadata.labels}
        name = labels.get(KAI_PRIORITY_CLASS) or template.spec.priority_class_name
        priority = context.priorities.get(name, context.default_priority)
        return QueuePlace(self.queue, priority, self.metadata.creation_timestamp)

    @property
    def queue(self) -> str:
        """Return the queue that it waits in."""
        pods = _read(self.spec).pods.metadata.labels
        labels = {**pods, **self.metadata.labels}
        return labels.get(KAI_QUEUE) or _of_project(labels.get(PROJECT), pods.get(KAI_NODE_POOL))

    def manifest(self, resource: Resource) -> JSON:
        """Return the whole object, of a kind that is served as ``resource``."""
        metadata, spec = msgspec.to_builtins(self.metadata), decoded(bytes(self.spec), msgspec.json.decode)
        return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}


def _of_project(project: str | None, pool: str | None) -> str:
    """Return the queue of a workload that names none, as the grouper does."""
    return (f"{project}-{pool}" if pool else project) if project else DEFAULT_QUEUE


_specs: Final = msgspec.json.Decoder(_Spec)


def _read(spec: msgspec.Raw) -> _Spec:
    return decoded(bytes(spec), _specs.decode)
