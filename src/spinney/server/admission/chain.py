"""The order of admission: built-in mutation, mutating webhooks, then validation, validating webhooks."""

from spinney.server.admission.attributes import Attributes
from spinney.server.admission.lifecycle import check_namespace
from spinney.server.admission.priority import resolve_priority
from spinney.server.admission.tolerations import add_default_tolerations
from spinney.server.admission.webhooks import Webhooks
from spinney.server.store import Store


class Admission:
    """Admits or refuses writes."""

    def __init__(self, store: Store, webhooks: Webhooks) -> None:
        self._store = store
        self.webhooks = webhooks

    def mutate_builtin(self, attributes: Attributes) -> None:
        """Apply the built-in plugins that change objects; raise to refuse."""
        check_namespace(self._store, attributes)
        resolve_priority(self._store, attributes)
        add_default_tolerations(attributes)
