"""Custom resource definitions (``apiextensions.k8s.io/v1``), with their schemas verbatim."""

from typing import Final

import msgspec

from spinney.api.meta import Condition, Object
from spinney.api.resource import Resource
from spinney.api.struct import JSON, Struct

CUSTOM_RESOURCE_DEFINITION: Final = Resource(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    namespaced=False,
    short_names=("crd", "crds"),
)


class CustomResourceNames(Struct, frozen=True, kw_only=True):
    """What a kind goes by."""

    plural: str
    singular: str = ""
    kind: str
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


class CustomResourceSchema(Struct, frozen=True, kw_only=True):
    """The schema of a version."""

    open_api_v3_schema: JSON | None = msgspec.field(default=None, name="openAPIV3Schema")


class ScaleSubresource(Struct, frozen=True, kw_only=True):
    """Where the scale subresource finds its numbers."""

    spec_replicas_path: str
    status_replicas_path: str
    label_selector_path: str | None = None


class StatusSubresource(Struct, frozen=True, kw_only=True):
    """Status is written on its own."""


class CustomResourceSubresources(Struct, frozen=True, kw_only=True):
    """Subresources of a version."""

    status: StatusSubresource | None = None
    scale: ScaleSubresource | None = None


class PrinterColumn(Struct, frozen=True, kw_only=True):
    """A column of ``kubectl get``."""

    name: str
    type: str
    json_path: str = msgspec.field(name="jsonPath")
    priority: int = 0
    description: str = ""
    format: str = ""


class CustomResourceVersion(Struct, frozen=True, kw_only=True):
    """A version of a kind."""

    name: str
    served: bool
    storage: bool
    deprecated: bool = False
    deprecation_warning: str | None = None
    schema: CustomResourceSchema | None = None
    subresources: CustomResourceSubresources | None = None
    additional_printer_columns: tuple[PrinterColumn, ...] = ()
    selectable_fields: tuple[JSON, ...] = ()


class CustomResourceDefinitionSpec(Struct, frozen=True, kw_only=True):
    """Group, names, scope and versions."""

    group: str
    names: CustomResourceNames
    scope: str
    versions: tuple[CustomResourceVersion, ...]
    conversion: JSON | None = None
    preserve_unknown_fields: bool = False


class CustomResourceDefinitionStatus(Struct, frozen=True, kw_only=True):
    """Whether the kind is served."""

    conditions: tuple[Condition, ...] = ()
    accepted_names: JSON | None = None
    stored_versions: tuple[str, ...] = ()


class CustomResourceDefinition(Object, of=CUSTOM_RESOURCE_DEFINITION, frozen=True, kw_only=True):
    """A kind added to the API."""

    spec: CustomResourceDefinitionSpec
    status: CustomResourceDefinitionStatus = CustomResourceDefinitionStatus()
