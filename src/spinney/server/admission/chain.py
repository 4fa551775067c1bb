"""The order of admission: built-in mutation, mutating webhooks, then validation, policies, validating webhooks."""

from spinney.runtime import Runtime
from spinney.server.admission.addresses import give_addresses
from spinney.server.admission.attributes import Attributes
from spinney.server.admission.escalation import check_escalation
from spinney.server.admission.lifecycle import check_namespace
from spinney.server.admission.limits import check_limits, fill_limits
from spinney.server.admission.policies import Policies
from spinney.server.admission.priority import resolve_priority
from spinney.server.admission.protection import protect
from spinney.server.admission.quotas import check_quotas
from spinney.server.admission.service_accounts import run_as_account
from spinney.server.admission.tolerations import add_default_tolerations
from spinney.server.admission.webhooks import Webhooks
from spinney.server.authorization.authorizer import Authorizer, Rbac
from spinney.server.quota.book import Book
from spinney.server.store import Store


class Admission:
    """Admits or refuses writes."""

    def __init__(
        self,
        runtime: Runtime,
        store: Store,
        *,
        policies: Policies,
        webhooks: Webhooks,
        authorizer: Authorizer,
        book: Book,
    ) -> None:
        self._runtime = runtime
        self._store = store
        self.policies = policies
        self._authorizer = authorizer
        self._book = book
        self.webhooks = webhooks

    def mutate_builtin(self, attributes: Attributes) -> None:
        """Apply the built-in plugins that change objects; raise to refuse."""
        check_namespace(self._store, attributes)
        fill_limits(self._store, attributes)
        run_as_account(self._store, self._runtime.random, attributes)
        resolve_priority(self._store, attributes)
        add_default_tolerations(attributes)
        protect(attributes)

    def check(self, attributes: Attributes) -> None:
        """Refuse what breaks limits, or would give rights that its author does not have; asked after validation."""
        if isinstance(self._authorizer, Rbac):
            check_escalation(self._authorizer, attributes)
        check_limits(self._store, attributes)

    def give_addresses(self, attributes: Attributes) -> None:
        """Give a valid service what it needs of the network."""
        give_addresses(self._store, self._runtime.random, attributes)

    def check_room(self, attributes: Attributes) -> None:
        """Refuse what the namespace has no quota for, and charge the rest; asked last, right before the write."""
        check_quotas(self._store, self._book, attributes)
