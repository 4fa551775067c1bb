"""Snapshots as files.

Three forms of file are read: our own (gzip JSON), the zip that KAI's snapshot plugin serves, and plain manifests (YAML
or JSON, also a ``List`` as ``kubectl get -o yaml`` prints it), from which a cluster can be written by hand. Which it is
shows in its first bytes.
"""

import copy
import gzip
import io
import re
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import IO, Annotated, Any, Final

import msgspec
import yaml

from spinney.api import yaml_text
from spinney.api.core import NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD, PodSpec
from spinney.api.kai import BIND_REQUEST, POD_GROUP, QUEUE, TOPOLOGY
from spinney.api.pod_rules.defaults import fill_pod_defaults
from spinney.api.resource import Resource
from spinney.api.resource_claims import DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_SLICE
from spinney.api.scheduling import PRIORITY_CLASS
from spinney.api.storage import STORAGE_CLASS
from spinney.api.struct import JSON, Struct, convert, encode, without_nulls
from spinney.extensions.arguments import only_known
from spinney.runtime.private_files import write_private
from spinney.scheduler.actions import BUILT_IN_ACTIONS
from spinney.scheduler.config import PluginOption, SchedulerConfig
from spinney.scheduler.plugins import default_registry
from spinney.sim.snapshots.quantities import wrong_quantity
from spinney.sim.snapshots.snapshot import BY_NAME, ClusterSnapshot, Unseen, projected

FORMAT: Final = "spinney.io/snapshot/v1"

_NAMED: Final = ("apiVersion", "kind")
_GZIP: Final = b"\x1f\x8b"
_ALWAYS_UNPACKED: Final = 64 << 20
_MOST_UNPACKED: Final = 2 << 30
_MOST_TIMES: Final = 300  # as large as the packed file; pods that are alike come to a hundred
_TAKEN: Final = re.compile(rb'\s*\{\s*"format":\s*"[^"]*",\s*"taken":\s*"([^"]*)"')
_Moment = Annotated[datetime, msgspec.Meta(tz=True)]
_HEAD: Final = 512
"""Bytes at the beginning of a file of ours, in which it says when it was taken."""
_ZIP: Final = b"PK\x03\x04"
_KAI_MEMBER: Final = "snapshot.json"
_KAI_LISTS: Final[Mapping[str, Resource]] = {
    "nodes": NODE,
    "pods": POD,
    "queues": QUEUE,
    "podGroups": POD_GROUP,
    "bindRequests": BIND_REQUEST,
    "topologies": TOPOLOGY,
    "priorityClasses": PRIORITY_CLASS,
    "persistentVolumes": PERSISTENT_VOLUME,
    "persistentVolumeClaims": PERSISTENT_VOLUME_CLAIM,
    "storageClasses": STORAGE_CLASS,
    "resourceClaims": RESOURCE_CLAIM,
    "resourceSlices": RESOURCE_SLICE,
    "deviceClasses": DEVICE_CLASS,
}


class UnreadableSnapshot(ValueError):
    """A file that holds no cluster; the text names it and says what was expected, and at its end what to do."""

    def __init__(self, fault: str, remedy: str = "") -> None:
        super().__init__(f"{fault}; {remedy}" if remedy else fault)
        self.fault = fault


class _File(Struct, frozen=True, kw_only=True):
    format: str
    taken: datetime | None = None
    source: str = ""
    unseen: tuple[Unseen, ...] = ()
    objects: tuple[msgspec.Raw, ...] = ()


def configuration_of(raw: JSON) -> SchedulerConfig | None:
    """Return the configuration, ``None`` if there is none; plugins, arguments and actions we lack are left out."""
    fields = _lowered(raw)
    actions = [name.strip() for name in str(fields.get("actions") or "").split(",")]
    plugins = [_lowered(plugin) for tier in fields.get("tiers") or () for plugin in _lowered(tier).get("plugins") or ()]
    known = default_registry()
    options = tuple(
        PluginOption(
            name,
            only_known(
                known.arguments_type(name), {key: str(text) for key, text in (plugin.get("arguments") or {}).items()}
            ),
        )
        for plugin in plugins
        if (name := str(plugin.get("name"))) in known
    )
    if not options:
        return None
    chosen = tuple(name for name in actions if name in BUILT_IN_ACTIONS)
    return SchedulerConfig.kai_compat(explain=True, plugins=options, **({"actions": chosen} if chosen else {}))


def _lowered(value: Any) -> dict[str, Any]:
    """Return a mapping with keys as its author may have meant them: KAI's releases differ in their case."""
    return {str(key).lower(): part for key, part in value.items()} if isinstance(value, dict) else {}


# -- files -------------------------------------------------------------------------------------------------------------


def write_snapshot(snapshot: ClusterSnapshot, path: Path) -> int:
    """Write a snapshot, readable by its owner only, and return its size in bytes; equal snapshots give equal files."""
    raw = packed_snapshot(snapshot)
    if path.exists() and not path.is_file():
        path.write_bytes(raw)  # a pipe or a terminal, which has no place to take
    else:
        write_private(path, raw)
    return len(raw)


def packed_snapshot(snapshot: ClusterSnapshot) -> bytes:
    """Return a snapshot as files hold it; equal snapshots give equal bytes."""
    return gzip.compress(snapshot_bytes(snapshot), mtime=0)


def snapshot_bytes(snapshot: ClusterSnapshot) -> bytes:
    """Return a snapshot as JSON."""
    return encode(
        {
            "format": FORMAT,
            "taken": snapshot.taken,
            "source": snapshot.source,
            "unseen": snapshot.unseen,
            "objects": [each for found in snapshot.objects.values() for each in found],
        }
    )


def read_snapshot(path: Path) -> ClusterSnapshot:
    """Read a snapshot in any of the three forms; raises :class:`UnreadableSnapshot`."""
    return SnapshotReader().read(path)


def taken_at(path: Path) -> datetime | None:
    """Return when a file of ours says it was taken; ``None`` if that cannot be told.

    The first bytes say so, unless something else has written the fields in an order of its own.
    """
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
        if head.startswith(_GZIP):
            head = zlib.decompressobj(wbits=31).decompress(head, _HEAD)
        found = _TAKEN.match(head)
        if found is not None:
            return msgspec.convert(found.group(1).decode(), _Moment)
        return msgspec.json.decode(_unpacked(path.read_bytes(), str(path)), type=_Dated).taken
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, RecursionError, msgspec.DecodeError, UnreadableSnapshot):
        return None  # who reads the whole file says what is wrong with it


class _Dated(Struct, frozen=True, kw_only=True):
    """Of a file of ours, when it was taken."""

    taken: _Moment | None = None


class SnapshotReader:
    """Reads snapshots of one cluster one after another. Mutable: it remembers the objects of the last one.

    What is written alike in two that follow each other is decoded once, and the same object in both.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[Resource, Any]] = {}

    def read(self, path: Path) -> ClusterSnapshot:
        """Read a snapshot in any of the three forms; raises :class:`UnreadableSnapshot`."""
        try:
            raw = path.read_bytes()
        except OSError as error:
            raise UnreadableSnapshot(f"{path}: cannot be read: {error.strerror}") from error
        try:
            if raw.startswith(_ZIP):
                return _from_kai(raw, str(path))
            return self._from_bytes(_unpacked(raw, str(path)), str(path))
        except RecursionError as error:
            raise UnreadableSnapshot(f"{path}: is nested deeper than any cluster") from error
        except (OSError, EOFError, zlib.error, zipfile.BadZipFile, UnicodeDecodeError) as error:
            raise UnreadableSnapshot(f"{path}: is damaged: {error}", "take the snapshot again") from error

    def _from_bytes(self, raw: bytes, source: str) -> ClusterSnapshot:
        if raw.lstrip().startswith(b"{"):
            try:
                found = msgspec.json.decode(raw, type=_File)
            except msgspec.DecodeError:
                found = None  # JSON of another kind: perhaps what kubectl prints
            if found is not None and found.format == FORMAT:
                return self._from_ours(found, source)
            if found is not None:
                raise UnreadableSnapshot(f"{source}: has format {found.format!r}, expected {FORMAT!r}; upgrade spinney")
        return _from_manifests(raw, source)

    def _from_ours(self, found: _File, source: str) -> ClusterSnapshot:
        held: dict[bytes, tuple[Resource, Any]] = {}
        by_kind: dict[Resource, list[Any]] = {}
        for raw in found.objects:
            text = bytes(raw)
            held[text] = resource, each = self._known.get(text) or _decoded(text, source)
            by_kind.setdefault(resource, []).append(each)
        self._known = held
        objects = {resource: tuple(each) for resource, each in by_kind.items()}
        return ClusterSnapshot(objects=objects, taken=found.taken, source=found.source, unseen=found.unseen)


def read_manifests(path: Path) -> Iterator[JSON]:
    """Yield the objects of a YAML or JSON file, lists opened up; raises :class:`UnreadableSnapshot`."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableSnapshot(f"{path}: cannot be read: {error}") from error
    yield from _manifests(text, str(path))


def _decoded(text: bytes, source: str) -> tuple[Resource, Any]:
    """Return an object of a file of ours; raises :class:`UnreadableSnapshot`."""
    try:
        found = msgspec.json.decode(text, type=JSON)
    except msgspec.ValidationError as error:
        raise UnreadableSnapshot(f"{source}: expected Kubernetes objects, found {_seen(text.decode())}") from error
    resource = _resource(found, source)
    return resource, _held(resource, found, source)


def _from_manifests(raw: bytes, source: str) -> ClusterSnapshot:
    objects = [(_resource(each, source), each) for each in _manifests(raw.decode(), source)]
    if not objects:
        raise UnreadableSnapshot(
            f"{source}: holds no objects; expected the output of 'spinney snapshot', KAI's snapshot zip, or manifests"
        )
    return _assembled(iter(objects), ClusterSnapshot(source=source), source, by_hand=True)


def _unpacked(raw: bytes, source: str) -> bytes:
    if not raw.startswith(_GZIP):
        return raw
    with gzip.open(io.BytesIO(raw)) as file:
        return _bounded(file, len(raw), source)


def _bounded(file: IO[bytes] | gzip.GzipFile, size: int, source: str) -> bytes:
    """Return what a packed file of this size holds, unless it is a little that becomes a lot."""
    most = max(_ALWAYS_UNPACKED, min(_MOST_UNPACKED, _MOST_TIMES * size))
    content = file.read(most + 1)
    if len(content) > most:
        raise UnreadableSnapshot(
            f"{source}: {size} bytes become more than {most}, which no snapshot of a cluster does; "
            "unpack it yourself and read the JSON, if you trust it"
        )
    return content


def _from_kai(raw: bytes, source: str) -> ClusterSnapshot:
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        if _KAI_MEMBER not in archive.namelist():
            raise UnreadableSnapshot(
                f"{source}: is a zip without {_KAI_MEMBER}, so not what KAI's /get-snapshot serves"
            )
        try:
            with archive.open(_KAI_MEMBER) as member:
                content = msgspec.json.decode(_bounded(member, len(raw), source))
        except msgspec.DecodeError as error:
            raise UnreadableSnapshot(f"{source}: its {_KAI_MEMBER} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise UnreadableSnapshot(f"{source}: its {_KAI_MEMBER} is no object, so not what KAI's /get-snapshot serves")
    listed = content.get("rawObjects") or {}
    try:
        by_key = msgspec.convert(
            {key: found for key, found in listed.items() if key in _KAI_LISTS and found}, dict[str, list[JSON]]
        )
    except (AttributeError, msgspec.ValidationError) as error:
        raise UnreadableSnapshot(
            f"{source}: its {_KAI_MEMBER} has rawObjects that are no lists of objects, so not what KAI's /get-snapshot "
            f"serves: {error}"
        ) from error
    objects = (
        (resource, without_nulls(found) | {"apiVersion": resource.api_version, "kind": resource.kind})
        for key, resource in _KAI_LISTS.items()
        for found in by_key.get(key, ())
    )
    bare = ClusterSnapshot(source=source, scheduler=configuration_of(content.get("config") or {}))
    return _assembled(objects, bare, source, kinds=_KAI_LISTS.values())


def _assembled(
    objects: Iterator[tuple[Resource, JSON]],
    bare: ClusterSnapshot,
    source: str,
    kinds: Collection[Resource] = (),
    *,
    by_hand: bool = False,
) -> ClusterSnapshot:
    by_kind: dict[Resource, list[Any]] = {resource: [] for resource in kinds}
    for resource, found in objects:
        by_kind.setdefault(resource, []).append(_held(resource, found, source, by_hand=by_hand))
    return replace(bare, objects={resource: tuple(found) for resource, found in by_kind.items()})


def _held(resource: Resource, found: JSON, source: str, *, by_hand: bool = False) -> Any:
    """Return an object as snapshots hold it; raises :class:`UnreadableSnapshot`."""
    try:
        return _checked(resource, found, by_hand=by_hand)
    except msgspec.ValidationError as error:
        metadata = found.get("metadata")
        name = metadata.get("name", "without a name") if isinstance(metadata, dict) else "without a name"
        raise UnreadableSnapshot(f"{source}: {resource.kind} {name}: {error}") from error


def _checked(resource: Resource, found: JSON, *, by_hand: bool) -> Any:
    """Return the same; raises :class:`msgspec.ValidationError`, also for what is no quantity."""
    held = projected(resource, completed(found) if by_hand else found)
    if (fault := wrong_quantity(held)) is not None:
        written = projected(resource, without_nulls(found))  # completing may have copied an amount to another field
        raise msgspec.ValidationError(wrong_quantity(written) or fault)
    return held


def _manifests(text: str, source: str) -> Iterator[JSON]:
    try:
        documents = list(_documents(text))
    except yaml.YAMLError as error:
        raise UnreadableSnapshot(f"{source}: is neither a snapshot nor YAML: {' '.join(str(error).split())}") from error
    for document in documents:
        if document is None:
            continue
        whole = _object(document, source)
        if whole["kind"].endswith("List") and "items" in whole:
            items = whole["items"] or []
            if not isinstance(items, list):
                raise UnreadableSnapshot(f"{source}: {whole['kind']}: items: found {_seen(items)}, expected a list")
            yield from (_object(each, source) for each in items)
        else:
            yield whole


def _object(found: Any, source: str) -> JSON:
    if not isinstance(found, dict) or not all(isinstance(found.get(key), str) for key in _NAMED):
        raise UnreadableSnapshot(
            f"{source}: expected Kubernetes objects with apiVersion and kind, found {_seen(found)}"
        )
    return found


def _documents(text: str) -> Iterator[Any]:
    """Return the documents of a text; what is JSON, as kubectl prints it, is read as JSON, a hundred times faster."""
    if text.lstrip().startswith("{"):
        try:
            return iter((msgspec.json.decode(text),))
        except msgspec.DecodeError:
            pass  # YAML may begin so, too, and says better where a fault is
    return yaml_text.load_all(text)


def _resource(found: JSON, source: str) -> Resource:
    resource = BY_NAME.get((str(found.get("apiVersion")), str(found.get("kind"))))
    if resource is None:
        kinds = ", ".join(sorted({resource.kind for resource in BY_NAME.values()}))
        raise UnreadableSnapshot(
            f"{source}: {found.get('apiVersion')} {found.get('kind')} is nothing that scheduling reads; "
            f"known kinds are {kinds}"
        )
    return resource


def completed(found: JSON) -> JSON:
    """Fill in what people leave out when they write an object by hand and a cluster would have set.

    Raises :class:`msgspec.ValidationError` for a pod spec, metadata or a status that is none.
    """
    resource = BY_NAME[str(found["apiVersion"]), str(found["kind"])]
    metadata = _part(found, "metadata")
    if resource.namespaced:
        metadata.setdefault("namespace", "default")
    filled = found | {"metadata": metadata}
    if resource is NODE:
        status = _part(found, "status")
        status.setdefault("allocatable", status.get("capacity") or {})
        status.setdefault("conditions", [{"type": "Ready", "status": "True"}])
        return filled | {"status": status}
    if resource is POD:
        spec: JSON = copy.deepcopy(found.get("spec") or {})
        convert(PodSpec, spec)
        fill_pod_defaults(spec)
        status = {"phase": "Running" if spec.get("nodeName") else "Pending", **_part(found, "status")}
        return filled | {"spec": spec, "status": status}
    return filled


def _part(found: JSON, field: str) -> JSON:
    part = found.get(field) or {}
    if not isinstance(part, dict):
        raise msgspec.ValidationError(f"{field}: found {_seen(part)}, expected an object")
    return dict(part)


def _seen(document: object) -> str:
    text = str(document)
    return f"{text[:40]!r} ..." if len(text) > 40 else repr(text)
