"""Asking webhooks: mutating ones one after the other, validating ones at once."""

import asyncio
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

import structlog

from spinney.api.struct import JSON
from spinney.runtime import Runtime
from spinney.runtime.tasks import together
from spinney.server.admission.attributes import Attributes
from spinney.server.admission.calling import CallFailed, WebhookCaller
from spinney.server.admission.matching import Matching, matching
from spinney.server.admission.review import BadAnswer, WebhookVerdict, read_answer, review
from spinney.server.crd.rules import Environment
from spinney.server.exchange.status import bad_request, internal_error
from spinney.server.kinds import Kind, KindRegistry
from spinney.server.kinds.endpoints import keep_other_endpoints
from spinney.server.patches.json import PatchFailed, apply_json_patch
from spinney.server.store import Collection, Store, StoreEvent
from spinney.server.store.record import copied

Phase = Literal["mutating", "validating"]

_COLLECTIONS: dict[Phase, str] = {
    "mutating": "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "validating": "validatingwebhookconfigurations.admissionregistration.k8s.io",
}


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


log = structlog.get_logger()

_CONFIGURATIONS = "admissionregistration.k8s.io"  # whose writes no webhook is asked about
_SAFE_FOR_DRY_RUN = ("None", "NoneOnDryRun")


class Webhooks:
    """The webhooks of the cluster; follows their configurations in the store."""

    def __init__(self, runtime: Runtime, store: Store, registry: KindRegistry, caller: WebhookCaller) -> None:
        self._runtime = runtime
        self._store = store
        self._registry = registry
        self._caller = caller
        self._hooks: dict[Phase, list[Webhook]] = {"mutating": [], "validating": []}
        self._concerned: dict[Hashable, list[Webhook]] = {}
        """The webhooks that may be asked about a sort of writes; most are about kinds that few writes have."""
        self._generation = registry.generation
        store.listen(self._on_write)

    async def close(self) -> None:
        """Let go of connections."""
        await self._caller.close()

    async def mutate(self, attributes: Attributes) -> None:
        """Let the mutating webhooks change the object; raise if one denies."""
        asked = self._asked("mutating", attributes)
        last_change = -1
        for index, (hook, seen_as) in enumerate(asked):
            if await self._mutate_once(hook, seen_as, attributes):
                last_change = index
        for index, (hook, seen_as) in enumerate(asked):
            if hook.reinvoked and index < last_change:
                await self._mutate_once(hook, seen_as, attributes)

    async def validate(self, attributes: Attributes) -> None:
        """Ask the validating webhooks; raise the denial of the first, in order, that denies."""
        asked = self._asked("validating", attributes)
        if not asked:
            return
        verdicts = await together(*(self._ask(hook, seen_as, attributes) for hook, seen_as in asked))
        for verdict in verdicts:
            if verdict is not None:
                attributes.warnings += verdict.warnings
        for verdict in verdicts:
            if verdict is not None and verdict.denial is not None:
                raise verdict.denial

    async def _mutate_once(self, hook: Webhook, seen_as: Kind, attributes: Attributes) -> bool:
        """Ask one webhook and apply its patch; return whether the object changed."""
        verdict = await self._ask(hook, seen_as, attributes)
        if verdict is None:
            return False
        attributes.warnings += verdict.warnings
        if verdict.denial is not None:
            raise verdict.denial
        if not verdict.patch or attributes.obj is None:
            return False
        before = attributes.obj
        try:
            patched: JSON = apply_json_patch(seen_as.served(copied(before)), verdict.patch)
        except PatchFailed as error:
            raise internal_error(f'the patch of webhook "{hook.name}" cannot be applied: {error}') from error
        attributes.obj = seen_as.stored(patched)
        if attributes.old is not None:
            keep_other_endpoints(attributes.kind, attributes.subresource, attributes.obj, before)
        attributes.kind.behaviour.fill_defaults(attributes.obj)
        return True

    def _asked(self, phase: Phase, attributes: Attributes) -> list[tuple[Webhook, Kind]]:
        """Return the webhooks of a phase that are asked, each with the version in which it is shown the write."""
        kind = attributes.kind
        if kind.resource.group == _CONFIGURATIONS:
            return []
        if self._generation != self._registry.generation:
            self._generation = self._registry.generation
            self._concerned.clear()
        sort = (phase, kind.storage, kind.resource, attributes.operation, attributes.subresource)
        concerned = self._concerned.get(sort)
        if concerned is None:
            hooks = self._hooks[phase]
            concerned = [hook for hook in hooks if hook.matching.may_mean(attributes, self._registry)]
            self._concerned[sort] = concerned
        return [(hook, seen_as) for hook in concerned if (seen_as := self._wants(hook, attributes))]

    def _wants(self, hook: Webhook, attributes: Attributes) -> Kind | None:
        """Return the version in which a webhook is shown the write, or ``None`` if it is not asked."""
        seen_as = hook.matching.seen_as(attributes, self._registry)
        return seen_as if seen_as is not None and hook.matching.selects(attributes, self._store) else None

    async def _ask(self, hook: Webhook, seen_as: Kind, attributes: Attributes) -> WebhookVerdict | None:
        """Return a webhook's verdict, or ``None`` if its failure is to be ignored or its conditions do not hold."""
        if attributes.dry_run and hook.side_effects not in _SAFE_FOR_DRY_RUN:
            raise bad_request(f'admission webhook "{hook.name}" does not support dry run')
        uid = self._runtime.uid()
        try:
            if not self._conditions_hold(hook, attributes):
                return None
            async with asyncio.timeout(hook.timeout):
                answer = await self._caller.call(hook.client, review(attributes, seen_as, uid), hook.timeout)
            return read_answer(hook.name, answer, uid)
        except TimeoutError:
            failure = f"it did not answer within {hook.timeout:g} seconds"
        except (CallFailed, BadAnswer) as error:
            failure = str(error)
        if hook.ignores_failure:
            log.warning("webhook failed, and its failure is ignored", webhook=hook.name, failure=failure)
            return None
        raise internal_error(f'failed calling webhook "{hook.name}": {failure}')

    def _conditions_hold(self, hook: Webhook, attributes: Attributes) -> bool:
        for name, text in hook.conditions:
            try:
                condition = Environment(("object", "oldObject", "request")).compile(text)
            except (ImportError, RuntimeError) as error:
                raise CallFailed(f"its match condition {name} cannot be evaluated: {error}") from error
            request = {"operation": attributes.operation, "namespace": attributes.namespace, "name": attributes.name}
            answer = condition(object=attributes.obj, oldObject=attributes.old, request=request)
            if answer.error:
                raise CallFailed(f"its match condition {name} failed: {answer.error}")
            if answer.value is not True:
                return False
        return True

    def _on_write(self, collection: Collection, _: StoreEvent) -> None:
        if is_configuration(collection):
            phases: tuple[Phase, ...] = ("mutating", "validating")
            self._hooks = {phase: configured(self._store, phase) for phase in phases}
            self._concerned.clear()
