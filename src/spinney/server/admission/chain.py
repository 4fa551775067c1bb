"""The order of admission: built-in mutation, mutating webhooks, plugins, validation, policies, validating webhooks."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from spinney.runtime import Runtime
from spinney.server.admission.addresses import give_addresses
from spinney.server.admission.attributes import Attributes
from spinney.server.admission.escalation import check_escalation
from spinney.server.admission.lifecycle import check_namespace
from spinney.server.admission.limits import check_limits, fill_limits
from spinney.server.admission.policies import AdmissionPolicies
from spinney.server.admission.priority import resolve_priority
from spinney.server.admission.protection import protect
from spinney.server.admission.quotas import check_quotas
from spinney.server.admission.service_accounts import run_as_account
from spinney.server.admission.tolerations import add_default_tolerations
from spinney.server.admission.webhooks import Webhooks
from spinney.server.authorization.authorizer import Authorizer, Rbac
from spinney.server.quota.book import Book
from spinney.server.store import Store


class MutatingPlugin(Protocol):
    """What stands in this process for a mutating webhook, and is asked after all of them."""

    async def admit(self, attributes: Attributes) -> None:
        """Change the object of a write, or leave it as it is."""
        ...


@dataclass(kw_only=True)
class AdmissionChain:
    """Admits or refuses writes. Mutable: plugins may be added."""

    runtime: Runtime
    store: Store
    policies: AdmissionPolicies
    webhooks: Webhooks
    authorizer: Authorizer
    book: Book
    plugins: list[MutatingPlugin] = field(default_factory=list)

    async def admit(self, attributes: Attributes, validate: Callable[[Attributes], None]) -> None:
        """Take a create or update through all of it; ``validate`` raises for an object that breaks its kind's rules.

        What is charged to a quota is charged last, right before the write.
        """
        self._mutate(attributes)
        await self.webhooks.mutate(attributes)
        for plugin in self.plugins:
            await plugin.admit(attributes)
        validate(attributes)
        give_addresses(self.store, self.runtime.random, attributes)
        if isinstance(self.authorizer, Rbac):
            check_escalation(self.authorizer, attributes)
        check_limits(self.store, attributes)
        self.policies.check(attributes)
        await self.webhooks.validate(attributes)
        check_quotas(self.store, self.book, attributes)

    async def admit_deletion(self, attributes: Attributes) -> None:
        """Take a deletion through what may refuse it."""
        self._mutate(attributes)
        self.policies.check(attributes)
        await self.webhooks.mutate(attributes)
        await self.webhooks.validate(attributes)

    def _mutate(self, attributes: Attributes) -> None:
        check_namespace(self.store, attributes)
        fill_limits(self.store, attributes)
        run_as_account(self.store, self.runtime.random, attributes)
        resolve_priority(self.store, attributes)
        add_default_tolerations(attributes)
        protect(attributes)
