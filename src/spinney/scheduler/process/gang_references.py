"""Which API object a gang is: what events about it point at, and what is written to."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from spinney.api import coscheduling, kai, volcano, workload_v1alpha1, workload_v1beta1
from spinney.api.core import POD
from spinney.api.events import ObjectReference
from spinney.api.podgang import POD_GANG
from spinney.api.resource import Resource
from spinney.gangs import composites
from spinney.gangs.sources import bare, native, podgang
from spinney.gangs.sources import coscheduling as coscheduling_source
from spinney.gangs.sources import kai as kai_source
from spinney.gangs.sources import volcano as volcano_source
from spinney.gangs.tree import Gang

KINDS: Final[Mapping[str, Resource]] = MappingProxyType(
    {
        bare.SOURCE: POD,
        podgang.SOURCE: POD_GANG,
        kai_source.SOURCE: kai.POD_GROUP,
        coscheduling_source.SOURCE: coscheduling.POD_GROUP,
        volcano_source.SOURCE: volcano.POD_GROUP,
        native.SOURCE: workload_v1beta1.POD_GROUP,
        native.WORKLOAD_SOURCE: workload_v1alpha1.WORKLOAD,
        composites.SOURCE: workload_v1beta1.COMPOSITE_POD_GROUP,
    }
)
"""Kinds by the source of gangs."""


def gang_reference(gang: Gang) -> ObjectReference:
    """Return what an event about a gang points at; of a Workload's groups, the Workload."""
    kind = KINDS[gang.key.source]
    return ObjectReference(
        api_version=kind.api_version,
        kind=kind.kind,
        name=gang.key.name.partition("/")[0],
        namespace=gang.key.namespace,
        uid=gang.uid,
    )
