"""Making an object of another scheduler agree with what a gang needs, writing only where it does not."""

from collections.abc import Mapping
from typing import Any

from spinney.api import labels as marks
from spinney.api.apiextensions import CUSTOM_RESOURCE_DEFINITION
from spinney.api.meta import ObjectMeta, owner_reference
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.resource import Resource
from spinney.api.struct import JSON, Struct, to_json
from spinney.backends.interface import BackendUnavailable
from spinney.kube.client import Client
from spinney.kube.discovery import served

FIELD_MANAGER = "spinney-operator"


class ForeignObject(RuntimeError):
    """An object of the name that is needed exists and belongs to another owner."""


async def serves(client: Client, resource: Resource) -> bool:
    """Tell whether the cluster serves a resource."""
    return bool(await served(client, [resource]))


async def served_fields(client: Client, resource: Resource, *, install: str) -> frozenset[str]:
    """Return the fields of the spec of a custom resource as the cluster serves it, or say what to install for it."""
    crd = await client.find(CUSTOM_RESOURCE_DEFINITION, f"{resource.plural}.{resource.group}")
    for version in crd["spec"]["versions"] if crd is not None else ():
        if version["name"] == resource.version and version.get("served"):
            schema = version.get("schema", {}).get("openAPIV3Schema", {})
            return frozenset(schema.get("properties", {}).get("spec", {}).get("properties", {}))
    raise not_served(resource, install=install)


def not_served(resource: Resource, *, install: str) -> BackendUnavailable:
    """Return the error of a backend whose resource the cluster does not serve."""
    return BackendUnavailable(
        f"the cluster does not serve {resource} in {resource.api_version}; install {install}, or remove the profile"
    )


async def ensure(client: Client, resource: Resource, desired: Struct, existing: JSON | None) -> None:
    """Apply an object unless what exists already contains it; fields that others set are left alone."""
    manifest: JSON = to_json(desired)
    manifest.pop("status", None)
    if existing is not None:
        reject_foreign(resource, manifest, existing)
        if contains(existing, manifest):
            return
    await client.apply(resource, manifest, field_manager=FIELD_MANAGER)


def reject_foreign(resource: Resource, manifest: JSON, existing: JSON) -> None:
    """Refuse to touch an object that has other owners than the ones we would give it."""
    wanted = {owner["uid"] for owner in manifest["metadata"].get("ownerReferences", ())}
    owners = {owner["uid"] for owner in existing["metadata"].get("ownerReferences", ())}
    if wanted and not wanted & owners:
        name = f"{manifest['metadata'].get('namespace', '')}/{manifest['metadata']['name']}".strip("/")
        raise ForeignObject(
            f"{resource.kind} {name} exists and is not ours; delete it, or rename the PodCliqueSet that needs the name"
        )


def contains(existing: Any, desired: Any) -> bool:
    """Tell whether an object has everything desired; lists must be equal in length, objects may have more."""
    if isinstance(desired, dict):
        return isinstance(existing, dict) and all(
            key in existing and contains(existing[key], value) for key, value in desired.items()
        )
    if isinstance(desired, list):
        return (
            isinstance(existing, list)
            and len(existing) == len(desired)
            and all(contains(one, other) for one, other in zip(existing, desired, strict=True))
        )
    return bool(existing == desired)


def metadata_for(gang: PodGang, name: str, *, labels: Mapping[str, str] | None = None) -> ObjectMeta:
    """Return the metadata of an object that belongs to a gang and goes with it; its label names the gang.

    What the gang declares about being evicted is on it, too: its scheduler may read nothing else.
    """
    said = gang.metadata.annotations
    return ObjectMeta(
        name=name,
        namespace=gang.metadata.namespace,
        labels={marks.POD_GANG: gang.metadata.name} if labels is None else labels,
        annotations={key: said[key] for key in (marks.CHECKPOINT_GRACE, marks.MIN_RUNTIME) if key in said},
        owner_references=(owner_reference(POD_GANG, gang.metadata),),
    )
