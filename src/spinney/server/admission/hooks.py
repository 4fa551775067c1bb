"""Configured webhooks, ready to be matched against writes."""

from dataclasses import dataclass
from typing import Any, Literal

from spinney.api.selectors import LabelSelector
from spinney.api.struct import JSON, convert
from spinney.server.admission.attributes import Attributes
from spinney.server.kinds import Kind, Registry
from spinney.server.store import Collection, Key, Store

Phase = Literal["mutating", "validating"]

_COLLECTIONS: dict[Phase, str] = {
    "mutating": "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "validating": "validatingwebhookconfigurations.admissionregistration.k8s.io",
}
_CONFIGURATIONS = "admissionregistration.k8s.io"


@dataclass(frozen=True, slots=True)
class Rule:
    """Which writes a webhook is asked about."""

    operations: tuple[str, ...]
    groups: tuple[str, ...]
    versions: tuple[str, ...]
    resources: tuple[str, ...]
    scope: str

    def matches(self, kind: Kind, operation: str, subresource: str) -> bool:
        """Return whether a write of ``kind`` is meant."""
        resource = kind.resource
        if self.scope not in {"*", "Namespaced" if resource.namespaced else "Cluster"}:
            return False
        return (
            _covers(self.operations, operation)
            and _covers(self.groups, resource.group)
            and _covers(self.versions, resource.version)
            and any(_names(each, resource.plural, subresource) for each in self.resources)
        )


@dataclass(frozen=True, slots=True)
class Webhook:
    """One webhook of one configuration."""

    name: str
    client: JSON
    rules: tuple[Rule, ...]
    namespaces: LabelSelector
    objects: LabelSelector
    conditions: tuple[tuple[str, str], ...]
    timeout: float
    ignores_failure: bool
    side_effects: str
    equivalent: bool
    reinvoked: bool

    def seen_as(self, attributes: Attributes, registry: Registry) -> Kind | None:
        """Return the version in which this webhook wants to see the write, or ``None`` if it does not."""
        if attributes.kind.resource.group == _CONFIGURATIONS:
            return None
        kinds = [attributes.kind]
        if self.equivalent:
            kinds += [each for each in registry if each.storage == attributes.kind.storage and each != attributes.kind]
        for kind in kinds:
            if any(rule.matches(kind, attributes.operation, attributes.subresource) for rule in self.rules):
                return kind
        return None

    def selects(self, attributes: Attributes, store: Store) -> bool:
        """Return whether the selectors of this webhook let the write through to it."""
        states = [state for state in (attributes.obj, attributes.old) if state is not None]
        if not any(self.objects.matches(state["metadata"].get("labels") or {}) for state in states):
            return False
        if attributes.kind.storage == "namespaces":
            return any(self.namespaces.matches(state["metadata"].get("labels") or {}) for state in states)
        if not attributes.kind.resource.namespaced:
            return True
        collection = store.collection("namespaces")
        found = collection.get(Key("", attributes.namespace)) if collection else None
        return self.namespaces.matches(found.labels if found else {})


def configured(store: Store, phase: Phase) -> list[Webhook]:
    """Return the webhooks of a phase, in the order in which they are asked."""
    collection: Collection | None = store.collection(_COLLECTIONS[phase])
    if collection is None:
        return []
    return [webhook(hook) for record in collection.records() for hook in record.decode().get("webhooks") or ()]


def is_configuration(collection: Collection) -> bool:
    """Return whether a collection holds webhook configurations."""
    return collection.name in _COLLECTIONS.values()


def webhook(hook: JSON) -> Webhook:
    """Return a webhook as its configuration describes it."""
    return Webhook(
        name=str(hook.get("name") or ""),
        client=hook.get("clientConfig") or {},
        rules=tuple(_rule(rule) for rule in hook.get("rules") or ()),
        namespaces=convert(LabelSelector, hook.get("namespaceSelector") or {}),
        objects=convert(LabelSelector, hook.get("objectSelector") or {}),
        conditions=tuple((each["name"], each["expression"]) for each in hook.get("matchConditions") or ()),
        timeout=float(hook.get("timeoutSeconds") or 10),
        ignores_failure=hook.get("failurePolicy") == "Ignore",
        side_effects=hook.get("sideEffects", "Unknown"),
        equivalent=hook.get("matchPolicy", "Equivalent") == "Equivalent",
        reinvoked=hook.get("reinvocationPolicy") == "IfNeeded",
    )


def _rule(rule: JSON) -> Rule:
    return Rule(
        operations=_texts(rule.get("operations")),
        groups=_texts(rule.get("apiGroups")),
        versions=_texts(rule.get("apiVersions")),
        resources=_texts(rule.get("resources")),
        scope=rule.get("scope") or "*",
    )


def _texts(values: Any) -> tuple[str, ...]:
    texts = tuple(values or ())
    if not isinstance(values, list | None) or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"expected a list of strings, found {values!r}")
    return texts


def _covers(listed: tuple[str, ...], value: str) -> bool:
    return "*" in listed or value in listed


def _names(pattern: str, plural: str, subresource: str) -> bool:
    resource, slash, below = pattern.partition("/")
    if resource not in {"*", plural}:
        return False
    return below in {"*", subresource} if slash else not subresource
