"""Which writes a webhook or a policy is about: rules over kinds and operations, and selectors over labels."""

from dataclasses import dataclass
from typing import Any

from spinney.api.keys import Key
from spinney.api.selectors import LabelSelector
from spinney.api.struct import JSON, convert
from spinney.server.admission.attributes import Attributes
from spinney.server.kinds import Kind, KindRegistry
from spinney.server.store import Store


@dataclass(frozen=True, slots=True)
class MatchRule:
    """Some operations on some kinds; those of ``names`` only, if there are any."""

    operations: tuple[str, ...]
    groups: tuple[str, ...]
    versions: tuple[str, ...]
    resources: tuple[str, ...]
    scope: str
    names: tuple[str, ...] = ()

    def matches(self, kind: Kind, attributes: Attributes) -> bool:
        """Tell whether a write is meant, seen as one of ``kind``."""
        return self.covers(kind, attributes) and (not self.names or attributes.name in self.names)

    def covers(self, kind: Kind, attributes: Attributes) -> bool:
        """Tell whether a write is meant, seen as one of ``kind``, whatever its name."""
        resource = kind.resource
        if self.scope not in {"*", "Namespaced" if resource.namespaced else "Cluster"}:
            return False
        return (
            _covers(self.operations, attributes.operation)
            and _covers(self.groups, resource.group)
            and _covers(self.versions, resource.version)
            and any(_names(each, resource.plural, attributes.subresource) for each in self.resources)
        )


@dataclass(frozen=True, slots=True)
class Matching:
    """Rules and selectors together; without rules, ``anything`` says whether every write is meant."""

    rules: tuple[MatchRule, ...]
    namespaces: LabelSelector
    objects: LabelSelector
    equivalent: bool
    excluded: tuple[MatchRule, ...] = ()
    anything: bool = False

    def seen_as(self, attributes: Attributes, registry: KindRegistry) -> Kind | None:
        """Return the version in which a write is meant, or ``None`` if it is not."""
        if any(rule.matches(attributes.kind, attributes) for rule in self.excluded):
            return None
        if self.anything and not self.rules:
            return attributes.kind
        kinds = self._kinds(attributes, registry)
        return next((kind for kind in kinds if any(rule.matches(kind, attributes) for rule in self.rules)), None)

    def may_mean(self, attributes: Attributes, registry: KindRegistry) -> bool:
        """Tell whether the rules are about writes of this sort: whether of this one, its name and labels tell."""
        kinds = self._kinds(attributes, registry)
        return self.anything or any(rule.covers(kind, attributes) for kind in kinds for rule in self.rules)

    def _kinds(self, attributes: Attributes, registry: KindRegistry) -> list[Kind]:
        """Return the versions in which a write may be meant, its own first."""
        kinds = [attributes.kind]
        if self.equivalent:
            kinds += [
                each
                for each in registry.readers(attributes.kind.storage)
                if each is not attributes.kind and each != attributes.kind
            ]
        return kinds

    def selects(self, attributes: Attributes, store: Store) -> bool:
        """Tell whether the selectors let a write through."""
        states = [state for state in (attributes.obj, attributes.old) if state is not None]
        if not any(self.objects.matches(state["metadata"].get("labels") or {}) for state in states):
            return False
        if attributes.kind.storage == "namespaces":
            return any(self.namespaces.matches(state["metadata"].get("labels") or {}) for state in states)
        if not attributes.kind.resource.namespaced:
            return True
        found = store.get("namespaces", Key("", attributes.namespace))
        return self.namespaces.matches(found.labels if found else {})


def matching(described: JSON, *, rules: str, excluded: str = "", anything: bool = False) -> Matching:
    """Return what an object describes; ``rules`` and ``excluded`` are the fields that have the rules."""
    return Matching(
        rules=tuple(_rule(rule) for rule in described.get(rules) or ()),
        excluded=tuple(_rule(rule) for rule in described.get(excluded) or ()),
        namespaces=convert(LabelSelector, described.get("namespaceSelector") or {}),
        objects=convert(LabelSelector, described.get("objectSelector") or {}),
        equivalent=described.get("matchPolicy", "Equivalent") == "Equivalent",
        anything=anything,
    )


def _rule(rule: JSON) -> MatchRule:
    return MatchRule(
        operations=_texts(rule.get("operations")),
        groups=_texts(rule.get("apiGroups")),
        versions=_texts(rule.get("apiVersions")),
        resources=_texts(rule.get("resources")),
        scope=rule.get("scope") or "*",
        names=_texts(rule.get("resourceNames")),
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
