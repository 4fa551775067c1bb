"""Quotas as admission: a write that would use more than is left is refused, in Kubernetes' words.

This is the last question that admission asks; between its answer and the write nothing else happens, so what was
checked is what is charged. The status says so at once, also where the write then fails for another reason: the
keeping of quotas looks at it again.
"""

from spinney.api.keys import Key
from spinney.api.quantity import ZERO, Quantity
from spinney.api.struct import JSON
from spinney.server.admission.attributes import Attributes
from spinney.server.quota.amounts import amounts, as_text, more_than, only, total, with_usage
from spinney.server.quota.book import QUOTAS, Account, Book, Quota
from spinney.server.quota.scopes import is_terminating
from spinney.server.quota.usage import (
    CLAIMS,
    DEVICE_CLAIMS,
    NEEDED_OF_CONTAINERS,
    PODS,
    SERVICES,
    UNCOUNTED,
    of_resources,
    used_by,
)
from spinney.server.store import Store


def check_quotas(store: Store, book: Book, attributes: Attributes) -> None:
    """Refuse a write for which a quota has no room; otherwise charge it, unless it is only tried."""
    obj = attributes.obj
    accounts = book.accounts(attributes.namespace) if attributes.namespace else []
    if not accounts or obj is None or not _may_use_more(attributes, obj):
        return
    storage = attributes.kind.storage
    concerned = [each for each in accounts if each.quota.measured(storage) and each.quota.selects(storage, obj)]
    for account in concerned:
        if storage == PODS and (missing := _unspecified(account.quota, obj.get("spec") or {})):
            raise attributes.refused(f"failed quota: {account.quota.name}: must specify {missing}")
    charges = [(account, charge) for account in concerned if (charge := _charge(account.quota, attributes, obj))]
    for account, charge in charges:
        _check_room(account, charge, attributes)
    if not attributes.dry_run:
        for account, charge in charges:
            _announce(store, book, Key(attributes.namespace, account.quota.name), total(account.used, charge))


def _may_use_more(attributes: Attributes, obj: JSON) -> bool:
    """Tell whether the write is one by which an object can come to use more than before."""
    storage, subresource = attributes.kind.storage, attributes.subresource
    if storage in UNCOUNTED or (subresource and (storage, subresource) != (PODS, "resize")):
        return False
    if attributes.operation == "CREATE" or subresource == "resize":
        return True
    if storage == PODS:
        return is_terminating(obj) != is_terminating(attributes.old or {})
    return storage in {CLAIMS, SERVICES, DEVICE_CLAIMS}


def _unspecified(quota: Quota, spec: JSON) -> str:
    """Return what containers do not say although the quota is about it; a pod that speaks for itself may be silent."""
    if spec.get("resources"):
        return ""
    needed = [name for name in NEEDED_OF_CONTAINERS if name in quota.hard]
    missing: dict[str, set[str]] = {}
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        resources = container.get("resources") or {}
        said = of_resources(amounts(resources.get("requests")), amounts(resources.get("limits")))
        for name in needed:
            if name not in said:
                missing.setdefault(name, set()).add(container.get("name", ""))
    return "; ".join(f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))


def _charge(quota: Quota, attributes: Attributes, obj: JSON) -> dict[str, Quantity]:
    """Return what the write uses more of the quota than before."""
    storage, old = attributes.kind.storage, attributes.old
    before = used_by(storage, old) if old is not None and quota.selects(storage, old) else {}
    return only(more_than(used_by(storage, obj), before), quota.hard)


def _check_room(account: Account, charge: dict[str, Quantity], attributes: Attributes) -> None:
    quota, used = account.quota, account.used
    exceeded = [name for name, quantity in charge.items() if used.get(name, ZERO) + quantity > quota.hard[name]]
    if exceeded:
        texts = [as_text(only(each, exceeded)) for each in (charge, used, quota.hard)]
        requested, present, limited = texts
        raise attributes.refused(
            f"exceeded quota: {quota.name}, requested: {requested}, used: {present}, limited: {limited}",
        )


def _announce(store: Store, book: Book, key: Key, used: dict[str, Quantity]) -> None:
    found = store.get(QUOTAS, key)
    updated = with_usage(found.decode(), used) if found else None
    if updated is not None:
        store.write(QUOTAS, key, updated)
        book.note(key)
