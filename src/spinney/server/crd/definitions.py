"""From a CustomResourceDefinition to the kinds it defines, and the life of definitions themselves."""

from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from typing import Any

import jsonschema_rs
import msgspec

from spinney.api.apiextensions import (
    CUSTOM_RESOURCE_DEFINITION,
    CustomResourceDefinition,
    CustomResourceVersion,
)
from spinney.api.field_error import FieldError, invalid, not_supported, required
from spinney.api.keys import Key
from spinney.api.resource import Resource
from spinney.api.struct import JSON, convert
from spinney.api.time import timestamp
from spinney.server.crd.formats import unrecognized
from spinney.server.crd.rules import SchemaRules, can_evaluate
from spinney.server.crd.structure import fill_defaults, prune, shape_of
from spinney.server.crd.validation import SchemaValidator
from spinney.server.kinds import KindRegistry
from spinney.server.kinds.kind import Behaviour, FieldLabel, Kind, ScalePaths
from spinney.server.kinds.shape import MergeShape
from spinney.server.kinds.shapes import CUSTOM_RESOURCE_DEFINITION as DEFINITION_SHAPE
from spinney.server.kinds.shapes import METADATA
from spinney.server.store import Collection, Store, StoreEvent

_BLOCKING = (  # what leaves an object so wrong that rules about it make no sense
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
)
_NOT_CHECKED = invalid(
    "<nil>",
    None,
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete"
    " validation",
)


class CustomBehaviour(Behaviour):
    """The schema of one version, applied to its objects."""

    def __init__(self, schema: JSON, *, deprecation: str | None = None) -> None:
        self._schema = schema
        self._validator, self._rules = _compiled(msgspec.json.encode(schema), evaluated=can_evaluate())
        self._deprecation = [deprecation] if deprecation else []

    def fill_defaults(self, obj: JSON) -> None:
        prune(obj, self._schema, root=True)
        fill_defaults(obj, self._schema)

    def unknown_fields(self, obj: JSON) -> list[str]:
        return prune(obj, self._schema, root=True)

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> list[FieldError]:
        causes = self._validator.validate(obj, old)
        if any(cause.reason in _BLOCKING for cause in causes):
            return [*causes, _NOT_CHECKED] if self._rules.any else causes
        return [*causes, *self._rules.validate(obj, old)]

    def warnings(self, obj: JSON) -> list[str]:
        return [*self._deprecation, *self._rules.not_evaluated]


@lru_cache(maxsize=64)
def _compiled(schema: bytes, *, evaluated: bool) -> tuple[SchemaValidator, SchemaRules]:
    """Compile a schema: when it is checked, when it is stored and when a server starts again it is the same one."""
    decoded = msgspec.json.decode(schema)
    return SchemaValidator(decoded), SchemaRules(decoded, evaluated=evaluated)


COLLECTION = str(CUSTOM_RESOURCE_DEFINITION)
_BAD_SCHEMA = (
    jsonschema_rs.ValidationError,
    jsonschema_rs.ReferencingError,
    ValueError,
    TypeError,  # this and the next: something is not of the type that schemas have there
    AttributeError,
)
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"


def definition_kind() -> Kind:
    """Return the kind of definitions."""
    return Kind(
        resource=CUSTOM_RESOURCE_DEFINITION,
        storage=COLLECTION,
        storage_version=CUSTOM_RESOURCE_DEFINITION.api_version,
        singular="customresourcedefinition",
        list_kind="CustomResourceDefinitionList",
        categories=("api-extensions",),
        status=True,
        unconditional_update=False,
        shape=DEFINITION_SHAPE,
        behaviour=DefinitionBehaviour(),
    )


class DefinitionBehaviour(Behaviour):
    """Definitions are accepted and established in the write that brings them."""

    def fill_defaults(self, obj: JSON) -> None:
        spec = obj.get("spec")
        if not isinstance(spec, dict):
            return
        names = spec.get("names")
        if isinstance(names, dict) and names.get("kind"):
            if not names.get("singular"):
                names["singular"] = str(names["kind"]).lower()
            if not names.get("listKind"):
                names["listKind"] = f"{names['kind']}List"
        if not spec.get("conversion"):
            spec["conversion"] = {"strategy": "None"}

    def warnings(self, obj: JSON) -> list[str]:
        schemas = [(version.get("schema") or {}).get("openAPIV3Schema") or {} for version in obj["spec"]["versions"]]
        return [f'unrecognized format "{name}"' for schema in schemas for name in unrecognized(schema)]

    def prepare_create(self, obj: JSON, now: datetime) -> None:
        metadata, spec = obj["metadata"], obj["spec"]
        metadata["finalizers"] = [*(metadata.get("finalizers") or ()), CLEANUP]
        stored = [version["name"] for version in spec["versions"] if version.get("storage")]
        obj["status"] = {
            "acceptedNames": spec["names"],
            "storedVersions": stored,
            "conditions": [
                _condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
                _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", now),
            ],
        }

    def prepare_update(self, obj: JSON, old: JSON, subresource: str) -> None:
        if subresource or not isinstance(obj.get("spec"), dict) or not isinstance(obj["spec"].get("versions"), list):
            return
        status = {**(obj.get("status") or {})}
        status["acceptedNames"] = obj["spec"].get("names")
        known = list(status.get("storedVersions") or ())
        for version in obj["spec"].get("versions") or ():
            if isinstance(version, dict) and version.get("storage") and version.get("name") not in known:
                known.append(version["name"])
        status["storedVersions"] = known
        obj["status"] = status

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> Iterator[FieldError]:
        if subresource:
            return
        try:
            definition = convert(CustomResourceDefinition, obj)
        except msgspec.ValidationError as error:
            yield invalid("spec", "", str(error))
            return
        spec = definition.spec
        expected = f"{spec.names.plural}.{spec.group}"
        if definition.metadata.name != expected:
            detail = f'must be spec.names.plural+"."+spec.group, which is {expected}'
            yield invalid("metadata.name", definition.metadata.name, detail)
        if spec.scope not in {"Namespaced", "Cluster"}:
            yield not_supported("spec.scope", spec.scope, ("Cluster", "Namespaced"))
        if sum(version.storage for version in spec.versions) != 1:
            detail = "must have exactly one version marked as storage version"
            yield invalid("spec.versions", len(spec.versions), detail)
        strategy = (spec.conversion or {}).get("strategy", "None")
        if strategy != "None":
            yield not_supported("spec.conversion.strategy", strategy, ("None",))
        for index, version in enumerate(spec.versions):
            yield from _version_causes(version, f"spec.versions[{index}]")


def kinds_of(obj: JSON) -> tuple[Kind, list[Kind]]:
    """Return the kind that a definition stores and those that it serves; it has been validated."""
    definition = convert(CustomResourceDefinition, obj)
    versions = definition.spec.versions
    stored = next(number for number, version in enumerate(versions) if version.storage)
    kinds = [
        _kind(definition, version, versions[stored], raw)
        for version, raw in zip(versions, obj["spec"]["versions"], strict=True)
    ]
    return kinds[stored], [kind for kind, version in zip(kinds, versions, strict=True) if version.served]


def _kind(
    definition: CustomResourceDefinition, version: CustomResourceVersion, stored: CustomResourceVersion, raw: JSON
) -> Kind:
    spec = definition.spec
    names = spec.names
    own = {label.name for label in _labels(version)}
    labels = {label.name: label for each in spec.versions for label in _labels(each)}
    schema = ((raw.get("schema") or {}).get("openAPIV3Schema")) or {}
    subresources = version.subresources
    scale = subresources.scale if subresources else None
    shape = shape_of(schema)
    deprecation = None
    if version.deprecated:
        default = f"{spec.group}/{version.name} {names.kind} is deprecated"
        deprecation = version.deprecation_warning or default
    return Kind(
        resource=Resource(
            spec.group, version.name, names.kind, names.plural, spec.scope == "Namespaced", names.short_names
        ),
        storage=f"{names.plural}.{spec.group}",
        storage_version=f"{spec.group}/{stored.name}",
        singular=names.singular or names.kind.lower(),
        list_kind=names.list_kind or f"{names.kind}List",
        categories=names.categories,
        status=bool(subresources and subresources.status is not None),
        scale=None
        if scale is None
        else ScalePaths(
            _steps(scale.spec_replicas_path), _steps(scale.status_replicas_path), _steps(scale.label_selector_path)
        ),
        labels=tuple(labels.values()),
        hidden_labels=frozenset(labels.keys() - own),
        unconditional_update=False,
        custom=True,
        shape=MergeShape(merge=shape.merge, fields={**shape.fields, "metadata": METADATA}, items=shape.items),
        behaviour=CustomBehaviour(schema, deprecation=deprecation),
        schema=schema,
        columns=version.additional_printer_columns,
    )


def _version_causes(version: CustomResourceVersion, path: str) -> list[FieldError]:
    schema = version.schema.open_api_v3_schema if version.schema else None
    where = f"{path}.schema.openAPIV3Schema"
    if schema is None:
        return [required(where, "schemas are required")]
    if schema.get("type") != "object":
        return [invalid(f"{where}.type", schema.get("type"), "must be object at the root")]
    try:
        CustomBehaviour(schema)
    except _BAD_SCHEMA as error:
        return [invalid(where, "", f"is not a valid schema: {error}")]
    return [
        required(f"{path}.selectableFields[{index}].jsonPath")
        for index, field in enumerate(version.selectable_fields)
        if not field.get("jsonPath")
    ]


def _condition(kind: str, reason: str, message: str, now: datetime) -> JSON:
    return {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": timestamp(now),
    }


def _labels(version: CustomResourceVersion) -> list[FieldLabel]:
    paths = [str(field["jsonPath"]) for field in version.selectable_fields]
    return [FieldLabel(path.lstrip("."), _steps(path)) for path in paths]


def _steps(path: Any) -> tuple[str, ...]:
    return tuple(str(path).lstrip(".").split(".")) if path else ()


class DefinedKinds:
    """Serves the kinds of every stored definition; listens to the store."""

    def __init__(self, store: Store, registry: KindRegistry) -> None:
        self._store = store
        self._registry = registry
        self._installed: dict[Key, tuple[Kind, list[Kind]]] = {}
        """What each definition stores, and serves."""
        self._specs: dict[Key, object] = {}
        store.listen(self._on_write)

    def _on_write(self, collection: Collection, event: StoreEvent) -> None:
        if collection.name != COLLECTION:
            return
        key = event.record.key
        if event.type == "DELETED":
            self._uninstall(key)
            return
        obj = event.record.decode()
        if self._specs.get(key) == obj["spec"]:
            return
        stored, served = kinds_of(obj)
        before = self._uninstall(key)
        self._store.open(stored.storage, stored.storage_version, stored.field_values)
        if before is not None and (before.storage_version, before.labels) != (stored.storage_version, stored.labels):
            self._store.read_again(stored.storage)
        for kind in served:
            self._registry.add(kind)
        self._installed[key] = stored, served
        self._specs[key] = obj["spec"]

    def _uninstall(self, key: Key) -> Kind | None:
        """Serve no kind of a definition any more; return what it stores."""
        self._specs.pop(key, None)
        stored, served = self._installed.pop(key, (None, ()))
        for kind in served:
            self._registry.remove(kind)
        return stored
