"""Pods of a recording as a replay makes them again: what decides where they may run is kept, word for word.

What is left out belongs to one cluster and one run: name and node, gates that have opened, and claims, which are named
beside it.
"""

from typing import Final

import msgspec

from spinney.api.affinity import Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from spinney.api.core import Pod, PodStatus
from spinney.api.labels import EXPECTED_DURATION, GPU_FRACTION, GPU_MEMORY
from spinney.api.meta import Metadata
from spinney.api.struct import encode
from spinney.cluster.devices import DEVICE
from spinney.cluster.pods import GPU_GROUP_LABEL, PodRecord
from spinney.cluster.requests import requested
from spinney.cluster.resources import CPU_NAME, GPU_NAME, MEMORY_NAME
from spinney.gangs.sources.context import duration_of
from spinney.sim.replay.formats.recorded_nodes import MEBIBYTE
from spinney.sim.replay.objects import SCHEDULER
from spinney.sim.replay.trace import WHOLE, Ask

_NO_MEMORY: Final = 16_000
"""MiB of a device, where no node says how much its devices have."""


def stated_by(pod: Pod) -> float | None:
    """Return how many seconds a pod says it will run."""
    found = duration_of(pod.metadata.annotations, EXPECTED_DURATION)
    return found.total_seconds() if found is not None and found.total_seconds() > 0 else None


class PodTemplates:
    """Pods without what is only theirs, each kept once however many are like it. Mutable."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[Pod, Ask]] = {}

    def of(self, record: PodRecord, gpu_memory: int | None) -> tuple[Pod, Ask]:
        """Return the pod that is made in the place of one, and what it asks for.

        A share of a GPU that is stated in memory becomes that part of a device of ``gpu_memory`` MiB.
        """
        pod = _template(record)
        milli = WHOLE
        if record.request.share is not None:
            milli = min(max(record.request.share.parts_on(gpu_memory or _NO_MEMORY) * WHOLE // DEVICE, 1), WHOLE)
        annotations = dict(pod.metadata.annotations)
        if annotations.pop(GPU_MEMORY, None) is not None and record.request.share is not None:
            annotations[GPU_FRACTION] = f"{milli / WHOLE:.3f}"
            pod = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, annotations=annotations))
        return self._known.setdefault(encode(pod), (pod, _ask(pod, record, milli)))


def _template(record: PodRecord) -> Pod:
    metadata, spec = record.pod.metadata, record.pod.spec
    return Pod(
        metadata=Metadata(
            namespace=metadata.namespace,
            labels={key: text for key, text in metadata.labels.items() if not key.startswith(GPU_GROUP_LABEL)},
            annotations={key: text for key, text in metadata.annotations.items() if key != EXPECTED_DURATION},
        ),
        spec=msgspec.structs.replace(
            spec,
            scheduler_name=SCHEDULER,
            node_name="",
            affinity=_only_on(spec.node_name) if _is_of_its_node(record.pod) else spec.affinity,
            volumes=(),
            resource_claims=(),
            scheduling_gates=(),
            scheduling_group=None,
            workload_ref=None,
        ),
        status=PodStatus(phase="Pending"),
    )


def _is_of_its_node(pod: Pod) -> bool:
    """Tell whether a kubelet made a pod by itself, from a file of its node."""
    controller = pod.metadata.controller
    return controller is not None and controller.kind == "Node"


def _only_on(node: str) -> Affinity:
    named = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node,))
    required = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(named,)),))
    return Affinity(node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=required))


def _ask(pod: Pod, record: PodRecord, milli: int) -> Ask:
    amounts = requested(pod)
    share = record.request.share
    return Ask(
        cpu=amounts.pop(CPU_NAME, 0),
        memory=amounts.pop(MEMORY_NAME, 0) // MEBIBYTE,
        gpus=amounts.pop(GPU_NAME, 0) if share is None else share.devices,
        milli=milli,
        others=tuple((name, amount) for name, amount in sorted(amounts.items()) if amount),
    )
