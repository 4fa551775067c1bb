"""Manifests of our custom resource definitions, generated from the struct types.

The names, fields and meaning of each kind belong to the project that defined it; what stands here beside the type is
how ``kubectl`` shows it and which subresources it has. The generated files are committed under ``deploy/crds`` and a
test keeps them in step; :func:`manifests` is what programs use.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import msgspec
import yaml

from spinney.api import coscheduling, grove, kai, podgang, topology_binding, volcano
from spinney.api.apiextensions import (
    CustomResourceDefinition,
    CustomResourceDefinitionSpec,
    CustomResourceNames,
    CustomResourceSchema,
    CustomResourceSubresources,
    CustomResourceVersion,
    PrinterColumn,
    ScaleSubresource,
    StatusSubresource,
)
from spinney.api.labels import KAI_QUEUE, SCHEDULER_NAME
from spinney.api.meta import ObjectMeta
from spinney.api.resource import Resource
from spinney.api.schema.structural import structural_schema
from spinney.api.struct import JSON, to_json

OWNERS: Final = {
    grove.POD_CLIQUE_SET.group: "grove",
    podgang.POD_GANG.group: "grove",
    kai.QUEUE.group: "kai",
    kai.TOPOLOGY.group: "kai",
    volcano.POD_GROUP.group: "volcano",
    coscheduling.POD_GROUP.group: "scheduler-plugins",
}
"""Which project defines the kinds of a group."""


@dataclass(frozen=True, slots=True)
class CustomKind:
    """A kind, and how it is served and shown."""

    resource: Resource
    type: type
    columns: tuple[PrinterColumn, ...]
    scale: ScaleSubresource | None = None

    @property
    def crd_name(self) -> str:
        """Return the name of the CRD object."""
        return f"{self.resource.plural}.{self.resource.group}"

    @property
    def owner(self) -> str:
        """Return the project whose installation brings the kind; ours brings Grove's only."""
        return OWNERS[self.resource.group]

    @property
    def file_name(self) -> str:
        """Return the name of the committed file."""
        return f"{self.resource.group}_{self.resource.plural}.yaml"


def _column(name: str, path: str, kind: str = "integer", priority: int = 0) -> PrinterColumn:
    return PrinterColumn(name=name, type=kind, json_path=path, priority=priority)


def _label(name: str, key: str) -> PrinterColumn:
    escaped = key.replace(".", "\\.")
    return _column(name, f".metadata.labels.{escaped}", "string")


def _scale(selector: str) -> ScaleSubresource:
    return ScaleSubresource(
        spec_replicas_path=".spec.replicas", status_replicas_path=".status.replicas", label_selector_path=selector
    )


_AGE: Final = _column("Age", ".metadata.creationTimestamp", "date")
_BREACHED: Final = _column(
    "MinBreached", '.status.conditions[?(@.type=="MinAvailableBreached")].status', "string", priority=1
)

KINDS: Final = (
    CustomKind(
        grove.POD_CLIQUE_SET,
        grove.PodCliqueSet,
        (
            _column("Replicas", ".spec.replicas"),
            _column("Available", ".status.availableReplicas"),
            _column("Updated", ".status.updatedReplicas"),
            _column("PCLQs-Updated", ".status.updateProgress.updatedPodCliquesCount"),
            _column("PCLQs-Total", ".status.updateProgress.totalPodCliquesCount"),
            _column("PCSGs-Updated", ".status.updateProgress.updatedPodCliqueScalingGroupsCount"),
            _column("PCSGs-Total", ".status.updateProgress.totalPodCliqueScalingGroupsCount"),
            _AGE,
        ),
        _scale(".status.hpaPodSelector"),
    ),
    CustomKind(
        grove.POD_CLIQUE,
        grove.PodClique,
        (
            _column("MinAvail", ".spec.minAvailable"),
            _column("Replicas", ".spec.replicas"),
            _column("Ready", ".status.readyReplicas"),
            _column("Scheduled", ".status.scheduledReplicas"),
            _column("Updated", ".status.updatedReplicas"),
            _column("Gated", ".status.scheduleGatedReplicas", priority=1),
            _BREACHED,
            _AGE,
        ),
        _scale(".status.hpaPodSelector"),
    ),
    CustomKind(
        grove.POD_CLIQUE_SCALING_GROUP,
        grove.PodCliqueScalingGroup,
        (
            _column("MinAvail", ".spec.minAvailable"),
            _column("Replicas", ".spec.replicas"),
            _column("Available", ".status.availableReplicas"),
            _column("Scheduled", ".status.scheduledReplicas"),
            _column("Updated", ".status.updatedReplicas"),
            _column("PCLQs-Updated", ".status.updateProgress.updatedPodCliquesCount"),
            _column("PCLQs-Total", ".status.updateProgress.totalPodCliquesCount"),
            _BREACHED,
            _AGE,
        ),
        _scale(".status.selector"),
    ),
    CustomKind(
        topology_binding.CLUSTER_TOPOLOGY_BINDING,
        topology_binding.ClusterTopologyBinding,
        (_column("Domains", ".spec.levels[*].domain", "string"), _AGE),
    ),
    CustomKind(
        podgang.POD_GANG,
        podgang.PodGang,
        (
            _column("Phase", ".status.phase", "string"),
            _column("Scheduled", ".status.scheduled", "string"),
            _label("Backend", SCHEDULER_NAME),
            _label("Queue", KAI_QUEUE),
            _AGE,
        ),
    ),
    CustomKind(
        kai.QUEUE,
        kai.Queue,
        (
            _column("Priority", ".spec.priority"),
            _column("Parent", ".spec.parentQueue", "string"),
            _column("Children", ".status.childQueues", "string"),
            _column("DisplayName", ".spec.displayName", "string"),
            _AGE,
        ),
    ),
    CustomKind(
        kai.POD_GROUP,
        kai.PodGroup,
        (
            _column("Queue", ".spec.queue", "string"),
            _column("MinMember", ".spec.minMember"),
            _column("Priority", ".spec.priorityClassName", "string"),
            _AGE,
        ),
    ),
    CustomKind(
        kai.BIND_REQUEST,
        kai.BindRequest,
        (
            _column("Pod", ".spec.podName", "string"),
            _column("Node", ".spec.selectedNode", "string"),
            _column("Phase", ".status.phase", "string"),
            _AGE,
        ),
    ),
    CustomKind(kai.TOPOLOGY, kai.Topology, (_column("Levels", ".spec.levels[*].nodeLabel", "string"), _AGE)),
    CustomKind(
        coscheduling.POD_GROUP,
        coscheduling.PodGroup,
        (
            _column("Phase", ".status.phase", "string"),
            _column("MinMember", ".spec.minMember"),
            _column("Scheduled", ".status.scheduled"),
            _column("Running", ".status.running"),
            _column("Succeeded", ".status.succeeded"),
            _column("Failed", ".status.failed"),
            _AGE,
        ),
    ),
    CustomKind(
        volcano.POD_GROUP,
        volcano.PodGroup,
        (
            _column("STATUS", ".status.phase", "string"),
            _column("minMember", ".spec.minMember"),
            _column("RUNNINGS", ".status.running"),
            _column("QUEUE", ".spec.queue", "string", priority=1),
            _column("AGE", ".metadata.creationTimestamp", "date"),
        ),
    ),
    CustomKind(
        volcano.QUEUE,
        volcano.Queue,
        (_column("STATE", ".status.state", "string"), _column("PARENT", ".spec.parent", "string"), _AGE),
    ),
)


def definition(kind: CustomKind) -> CustomResourceDefinition:
    """Return the custom resource definition of ``kind``."""
    resource = kind.resource
    has_status = any(field.encode_name == "status" for field in msgspec.structs.fields(kind.type))
    version = CustomResourceVersion(
        name=resource.version,
        served=True,
        storage=True,
        schema=CustomResourceSchema(open_api_v3_schema=structural_schema(kind.type)),
        subresources=CustomResourceSubresources(status=StatusSubresource() if has_status else None, scale=kind.scale),
        additional_printer_columns=kind.columns,
    )
    return CustomResourceDefinition(
        metadata=ObjectMeta(name=kind.crd_name),
        spec=CustomResourceDefinitionSpec(
            group=resource.group,
            names=CustomResourceNames(
                plural=resource.plural,
                singular=resource.kind.lower(),
                kind=resource.kind,
                list_kind=f"{resource.kind}List",
                short_names=resource.short_names,
            ),
            scope="Namespaced" if resource.namespaced else "Cluster",
            versions=(version,),
        ),
    )


@cache
def _encoded() -> tuple[bytes, ...]:
    return tuple(msgspec.json.encode(definition(kind)) for kind in KINDS)


def manifests() -> list[JSON]:
    """Return the manifests of every kind, ready to be applied; the caller may change them."""
    return [msgspec.json.decode(raw) for raw in _encoded()]


def kinds_of(*owners: str) -> list[CustomKind]:
    """Return the kinds that these projects define."""
    return [kind for kind in KINDS if kind.owner in owners]


def manifest_text(kind: CustomKind) -> str:
    """Return the manifest of ``kind`` as YAML, the way it is committed."""
    body: str = yaml.safe_dump(to_json(definition(kind)), sort_keys=False, width=1000, allow_unicode=True)
    return f"# Generated by `spinney crds` from the types in spinney.api; edit those.\n---\n{body}"


def write_manifests(directory: Path, kinds: Iterable[CustomKind] = KINDS) -> list[Path]:
    """Write one file per kind into ``directory``, which is created if need be, and return their paths."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for kind in kinds:
        path = directory / kind.file_name
        path.write_text(manifest_text(kind), encoding="utf-8")
        written.append(path)
    return written
