"""Workloads and pods as the grouper sees them."""

from typing import Any

import msgspec

from spinney.api.core import Pod
from spinney.api.struct import JSON
from spinney.grouping.attributes import Conventions
from spinney.grouping.describing import Grouping, describe
from spinney.grouping.loading import built_in
from spinney.grouping.owners import Owner
from spinney.grouping.rules import RuleSet
from spinney.grouping.world import World


def a_pod(name: str = "pod-0", **fields: Any) -> Pod:
    """Return a pod of ``default``; labels, annotations, deletionTimestamp go to its metadata, the rest to its spec."""
    inside: JSON = {key: fields.pop(key) for key in ("labels", "annotations", "deletionTimestamp") if key in fields}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", **inside}
    return msgspec.convert({"metadata": metadata, "spec": fields}, type=Pod)


def an_owner(kind: str, name: str = "work", *, spec: JSON | None = None, **fields: Any) -> Owner:
    """Return an owner; ``kind`` is apiVersion and kind with a slash, such as ``batch/v1/Job``."""
    api_version, _, kind_name = kind.rpartition("/")
    status = fields.pop("status", {})
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", **fields}
    raw = {"apiVersion": api_version, "kind": kind_name, "metadata": metadata, "spec": spec or {}, "status": status}
    return msgspec.convert(raw, type=Owner)


def grouped(pod: Pod, *chain: Owner, rules: RuleSet | None = None, **world: Any) -> Grouping:
    """Return the gang of a pod with these owners, nearest first."""
    return describe(pod, chain, rules or built_in(), Conventions(), World(**world))
