"""What requests to an API server carry: queries for collections and watches, manifests, options of deletions."""

from typing import Literal, TypedDict

import msgspec

from spinney.api.resource import Resource
from spinney.api.struct import JSON, Struct, to_json

PropagationPolicy = Literal["Background", "Foreground", "Orphan"]


class Selecting(TypedDict, total=False):
    """Which objects of a collection are meant: those that both selectors match."""

    label_selector: str | None
    field_selector: str | None


class Reading(Selecting, total=False):
    """What is asked of a list; ``limit`` is how many objects come at a time, 0 for all at once."""

    limit: int


class Watching(Selecting, total=False):
    """What is asked of a watch: from where, and for how long."""

    resource_version: str | None
    timeout_seconds: int | None


def query_of(**parameters: str | int | None) -> dict[str, str]:
    """Return a query, or any other mapping of text, of those parameters that are given."""
    return {name: str(value) for name, value in parameters.items() if value is not None}


_PARAMETERS = {
    "label_selector": "labelSelector",
    "field_selector": "fieldSelector",
    "limit": "limit",
    "resource_version": "resourceVersion",
    "timeout_seconds": "timeoutSeconds",
}


def selecting(kind: type[Selecting], wanted: Selecting) -> dict[str, str]:
    """Return the query for what is wanted; a misspelt selector must not come to mean every object."""
    known = kind.__annotations__
    if unknown := sorted(wanted.keys() - known.keys()):
        raise TypeError(f"unexpected argument {unknown[0]!r}; expected any of {', '.join(sorted(known))}")
    return {_PARAMETERS[name]: str(value) for name, value in wanted.items() if value}


def manifest_of(resource: Resource, obj: JSON | Struct) -> JSON:
    """Return the object as JSON with its own metadata dict, so that callers' objects are never written to."""
    body: JSON = to_json(obj) if isinstance(obj, msgspec.Struct) else dict(obj)
    body["apiVersion"] = resource.api_version
    body["kind"] = resource.kind
    body["metadata"] = dict(body.get("metadata") or {})
    return body


def namespace_in(resource: Resource, body: JSON) -> str | None:
    """Return the namespace a manifest names; raises ``ValueError`` for a namespaced kind that names none."""
    if not resource.namespaced:
        return None
    namespace: str | None = body.get("metadata", {}).get("namespace")
    if namespace is None:
        name = body.get("metadata", {}).get("name")
        raise ValueError(f"{resource.kind} {name!r} is namespaced: set metadata.namespace or pass `namespace`")
    return namespace


def delete_options(
    grace_period_seconds: int | None,
    propagation_policy: PropagationPolicy | None,
    uid: str | None,
    resource_version: str | None,
    dry_run: bool,
) -> JSON:
    """Return the body of a deletion or eviction."""
    preconditions = query_of(uid=uid, resourceVersion=resource_version)
    options: JSON = {
        "gracePeriodSeconds": grace_period_seconds,
        "propagationPolicy": propagation_policy,
        "preconditions": preconditions or None,
        "dryRun": ["All"] if dry_run else None,
    }
    return {name: value for name, value in options.items() if value is not None}
