"""Namespaces must exist before anything is put in them, and take nothing new while they end."""

from spinney.api.core import NAMESPACE
from spinney.api.field_error import FieldError
from spinney.api.keys import Key
from spinney.server.admission.attributes import Attributes
from spinney.server.exchange.status import not_found
from spinney.server.store import Store

IMMORTAL = ("default", "kube-system", "kube-public")
_TERMINATING = "because it is being terminated"


def check_namespace(store: Store, attributes: Attributes) -> None:
    """Refuse what does not fit the life of its namespace."""
    kind = attributes.kind
    if kind.storage == "namespaces":
        if attributes.operation == "DELETE" and attributes.name in IMMORTAL:
            raise attributes.refused("this namespace may not be deleted")
        return
    if attributes.operation != "CREATE" or not kind.resource.namespaced:
        return
    found = store.get("namespaces", Key("", attributes.namespace))
    if found is None:
        raise not_found(NAMESPACE, attributes.namespace)
    if found.deleting:
        why = f"unable to create new content in namespace {attributes.namespace} {_TERMINATING}"
        cause = FieldError(
            "NamespaceTerminating", "metadata.namespace", f"namespace {attributes.namespace} is being terminated"
        )
        raise attributes.refused(why, causes=[cause])
