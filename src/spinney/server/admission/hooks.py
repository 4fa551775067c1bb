"""Configured webhooks, ready to be matched against writes."""

from dataclasses import dataclass
from typing import Literal

from spinney.api.struct import JSON
from spinney.server.admission.attributes import Attributes
from spinney.server.admission.matching import Matching, matching
from spinney.server.kinds import Kind, KindRegistry
from spinney.server.store import Collection, Store

Phase = Literal["mutating", "validating"]

_COLLECTIONS: dict[Phase, str] = {
    "mutating": "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "validating": "validatingwebhookconfigurations.admissionregistration.k8s.io",
}
_CONFIGURATIONS = "admissionregistration.k8s.io"


@dataclass(frozen=True, slots=True)
class Webhook:
    """One webhook of one configuration."""

    name: str
    client: JSON
    matching: Matching
    conditions: tuple[tuple[str, str], ...]
    timeout: float
    ignores_failure: bool
    side_effects: str
    reinvoked: bool

    def seen_as(self, attributes: Attributes, registry: KindRegistry) -> Kind | None:
        """Return the version in which this webhook wants to see the write, or ``None`` if it does not."""
        if attributes.kind.resource.group == _CONFIGURATIONS:
            return None
        return self.matching.seen_as(attributes, registry)

    def selects(self, attributes: Attributes, store: Store) -> bool:
        """Tell whether the selectors of this webhook let the write through to it."""
        return self.matching.selects(attributes, store)


def configured(store: Store, phase: Phase) -> list[Webhook]:
    """Return the webhooks of a phase, in the order in which they are asked."""
    records = store.records(_COLLECTIONS[phase])
    return [webhook(hook) for record in records for hook in record.decode().get("webhooks") or ()]


def is_configuration(collection: Collection) -> bool:
    """Tell whether a collection holds webhook configurations."""
    return collection.name in _COLLECTIONS.values()


def webhook(hook: JSON) -> Webhook:
    """Return a webhook as its configuration describes it."""
    return Webhook(
        name=str(hook.get("name") or ""),
        client=hook.get("clientConfig") or {},
        matching=matching(hook, rules="rules"),
        conditions=tuple((each["name"], each["expression"]) for each in hook.get("matchConditions") or ()),
        timeout=float(hook.get("timeoutSeconds") or 10),
        ignores_failure=hook.get("failurePolicy") == "Ignore",
        side_effects=hook.get("sideEffects", "Unknown"),
        reinvoked=hook.get("reinvocationPolicy") == "IfNeeded",
    )
