"""The metadata that the server owns: names, uids, timestamps, generations, and what may change in it."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from spinney.api.field_error import FieldError, forbidden, invalid, required, too_long
from spinney.api.names import (
    MAX_ANNOTATIONS,
    bytes_of_annotations,
    dns_label_faults,
    dns_subdomain_faults,
    label_value_faults,
    path_segment_faults,
    qualified_name_faults,
)
from spinney.api.struct import JSON
from spinney.api.time import parse_timestamp, shared_timestamp, timestamp
from spinney.runtime import Runtime
from spinney.server.exchange.status import bad_request
from spinney.server.kinds import Kind
from spinney.server.kinds.shape import misshapen

_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_MAX_GENERATED_BASE = 63 - _SUFFIX_LENGTH
_SYSTEM_FIELDS = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
_PATH_NAMES = "rbac.authorization.k8s.io"
_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
_COUNTS_LABELS = "endpointslices.discovery.k8s.io"  # whose generation also counts changes of labels
_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid")


def check_envelope(kind: Kind, obj: Any, old: JSON | None = None) -> JSON:
    """Return a decoded body as an object of ``kind``, which it says first; raise a 400 if it says something else.

    ``old`` is the object, in the same version, that a patch has been made of.
    """
    if not isinstance(obj, dict):
        raise bad_request(
            "the body is not an object: expected a JSON or YAML object with apiVersion, kind and metadata"
        )
    resource = kind.resource
    for field, expected in (("apiVersion", resource.api_version), ("kind", resource.kind)):
        found = obj.get(field)
        if not found:
            if kind.custom:
                raise bad_request(f"{field} is missing: an object of kind {resource.kind} must say what it is")
            obj[field] = expected
        elif found != expected:
            what = "API version" if field == "apiVersion" else "kind"
            raise bad_request(f"the {what} in the data ({found}) does not match the expected {what} ({expected})")
    _check_metadata(obj)
    for field in ("spec", "status"):
        if field in obj and obj[field] is None:
            del obj[field]
    if not kind.custom and (path := misshapen(obj, kind.shape, old)) is not None:
        raise bad_request(f"{path}: Invalid value: must be an object or a list, as {resource.kind} has it there")
    return {"kind": resource.kind, "apiVersion": resource.api_version, **obj}


def _check_metadata(obj: JSON) -> None:
    metadata = obj.get("metadata")
    if metadata is None:
        obj["metadata"] = metadata = {}
    if not isinstance(metadata, dict):
        raise bad_request("metadata: Invalid value: must be an object")
    for field in ("name", "generateName", "namespace", "uid", "resourceVersion"):
        if metadata.get(field) is None:
            metadata.pop(field, None)
        elif not isinstance(metadata[field], str):
            raise bad_request(f"metadata.{field}: Invalid value: must be a string")
    for field in ("labels", "annotations"):
        mapping = metadata.get(field)
        if mapping is None:
            metadata.pop(field, None)
        elif not isinstance(mapping, dict) or not all(isinstance(value, str | None) for value in mapping.values()):
            raise bad_request(f"metadata.{field}: Invalid value: must be an object whose values are strings")
        elif None in mapping.values():
            metadata[field] = {key: "" if value is None else value for key, value in mapping.items()}
    for field in ("ownerReferences", "finalizers", "managedFields"):
        items = metadata.get(field)
        if items is None:
            metadata.pop(field, None)
        elif not isinstance(items, list):
            raise bad_request(f"metadata.{field}: Invalid value: must be an array")


def drop_empty(obj: JSON) -> None:
    """Drop what is empty from an object's metadata: Kubernetes does not tell that from nothing."""
    metadata = obj["metadata"]
    for field in ("labels", "annotations", "ownerReferences", "finalizers"):
        if field in metadata and not metadata[field]:
            del metadata[field]


def begin(kind: Kind, obj: JSON, namespace: str | None, runtime: Runtime) -> None:
    """Give a new object what the server decides: uid, creation time, first generation, namespace."""
    metadata = obj["metadata"]
    if metadata.get("resourceVersion"):
        raise bad_request("resourceVersion should not be set on objects to be created")
    for field in (*_SYSTEM_FIELDS, "resourceVersion", "generation"):
        metadata.pop(field, None)
    metadata["uid"] = runtime.uid()
    metadata["creationTimestamp"] = shared_timestamp(runtime.clock.now().replace(microsecond=0))
    if kind.generation:
        metadata["generation"] = 1
    if kind.resource.namespaced:
        given = metadata.get("namespace")
        if given and given != namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)


@lru_cache(maxsize=8192)
def _label_faults(key: str, value: str) -> tuple[FieldError, ...]:
    keys = [invalid("metadata.labels", key, fault) for fault in qualified_name_faults(key)]
    return (*keys, *(invalid("metadata.labels", value, fault) for fault in label_value_faults(value)))


def generated_name(base: str, runtime: Runtime) -> str:
    """Return ``base`` with a random suffix, as ``generateName`` asks."""
    suffix = "".join(runtime.random.choices(_SUFFIX_ALPHABET, k=_SUFFIX_LENGTH))
    return base[:_MAX_GENERATED_BASE] + suffix


def keep_system_fields(obj: JSON, old: JSON) -> None:
    """Carry over what a client cannot change in an update."""
    metadata, before = obj["metadata"], old["metadata"]
    for field in (*_SYSTEM_FIELDS, "generation"):
        if field in before:
            metadata[field] = before[field]
        else:
            metadata.pop(field, None)
    metadata["name"] = before["name"]
    if "namespace" in before:
        metadata["namespace"] = before["namespace"]
    if "generateName" in before:
        metadata.setdefault("generateName", before["generateName"])


def bump_generation(kind: Kind, obj: JSON, old: JSON) -> None:
    """Raise the generation if anything but metadata and status changed."""
    if not kind.generation:
        return
    if kind.custom and not kind.status:
        changed = _without(obj, "metadata") != _without(old, "metadata")
    elif kind.custom or "spec" not in obj:
        changed = _without(obj, "metadata", "status") != _without(old, "metadata", "status")
    else:
        changed = obj.get("spec") != old.get("spec")
    if kind.storage == _COUNTS_LABELS:
        changed = changed or obj["metadata"].get("labels") != old["metadata"].get("labels")
    if changed:
        obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def mark_deleted(obj: JSON, grace_seconds: int, now: datetime) -> None:
    """Say that the object is being deleted, and when it is to be gone; a second time may only bring that forward."""
    metadata = obj["metadata"]
    marked = metadata.get("deletionTimestamp")
    until = now + timedelta(seconds=grace_seconds)
    if marked:
        until = parse_timestamp(marked) - timedelta(seconds=metadata["deletionGracePeriodSeconds"] - grace_seconds)
    elif metadata.get("generation"):
        metadata["generation"] += 1
    metadata["deletionTimestamp"] = timestamp(until)
    metadata["deletionGracePeriodSeconds"] = grace_seconds


def validate_metadata(kind: Kind, obj: JSON, old: JSON | None) -> Iterator[FieldError]:
    """Return what is wrong with an object's metadata."""
    metadata = obj["metadata"]
    if old is None:
        yield from _name_causes(kind, metadata.get("name", ""))
        yield from _finalizer_causes(kind, metadata.get("finalizers") or [])
    before = old["metadata"] if old else {}
    if metadata.get("labels") != before.get("labels"):
        for key, value in (metadata.get("labels") or {}).items():
            yield from _label_faults(key, value)
    if metadata.get("annotations") != before.get("annotations"):
        annotations = metadata.get("annotations") or {}
        for key in annotations:
            yield from (invalid("metadata.annotations", key, f) for f in qualified_name_faults(key.lower()))
        if bytes_of_annotations(annotations) > MAX_ANNOTATIONS:
            yield too_long("metadata.annotations", f"must have at most {MAX_ANNOTATIONS} bytes")
    if metadata.get("ownerReferences") != before.get("ownerReferences"):
        yield from _owner_causes(metadata.get("ownerReferences") or [])
    if old is not None and before.get("deletionTimestamp"):
        added = [each for each in metadata.get("finalizers") or () if each not in (before.get("finalizers") or ())]
        if added:
            detail = f"no new finalizers can be added if the object is being deleted, found new finalizers {added}"
            yield forbidden("metadata.finalizers", detail)


def _name_causes(kind: Kind, name: str) -> list[FieldError]:
    if not name:
        return [required("metadata.name", "name or generateName is required")]
    resource = kind.resource
    if resource.group == _PATH_NAMES:
        faults = path_segment_faults(name)
    elif resource.kind in {"Namespace", "Service"} and not resource.group:
        faults = dns_label_faults(name)
    else:
        faults = dns_subdomain_faults(name)
    return [invalid("metadata.name", name, fault) for fault in faults]


def _finalizer_causes(kind: Kind, finalizers: list[Any]) -> Iterator[FieldError]:
    for index, finalizer in enumerate(finalizers):
        name = str(finalizer)
        yield from (invalid("metadata.finalizers", name, fault) for fault in qualified_name_faults(name))
        if not kind.custom and "/" not in name and name not in _STANDARD_FINALIZERS:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid(f"metadata.finalizers[{index}]", name, detail)


def _owner_causes(owners: list[Any]) -> Iterator[FieldError]:
    controllers = 0
    for index, owner in enumerate(owners):
        if not isinstance(owner, dict):
            yield invalid(f"metadata.ownerReferences[{index}]", owner, "must be an object")
            continue
        yield from (
            required(f"metadata.ownerReferences[{index}].{field}") for field in _OWNER_FIELDS if not owner.get(field)
        )
        controllers += bool(owner.get("controller"))
    if controllers > 1:
        detail = "Only one reference can have Controller set to true"
        yield invalid("metadata.ownerReferences", owners, detail)


def _without(obj: JSON, *names: str) -> JSON:
    return {name: value for name, value in obj.items() if name not in names}
