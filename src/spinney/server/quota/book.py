"""The book about quotas: how much of each is used, kept up to date with every write.

A namespace that has a quota has an account per quota: its total, and what each object was charged. An account is
opened, from what is stored, when it is first asked about; from then on the store's events change it. So a check
costs no look at other objects, and a namespace without quotas costs nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from spinney.api.keys import Key
from spinney.api.quantity import ZERO, Quantity
from spinney.api.struct import JSON
from spinney.server.quota.amounts import amounts, only
from spinney.server.quota.scopes import is_in_scope, scopes_of
from spinney.server.quota.usage import UNCOUNTED, measures, used_by
from spinney.server.store import Collection, Record, Store, StoreEvent

QUOTAS = "resourcequotas"


@dataclass(frozen=True)
class Quota:
    """What a namespace may use of some resources, by the objects in its scopes."""

    name: str
    spec: JSON
    hard: dict[str, Quantity]
    scopes: tuple[JSON, ...]

    @classmethod
    def of(cls, obj: JSON) -> "Quota":
        """Read a ResourceQuota."""
        spec = obj.get("spec") or {}
        return cls(obj["metadata"]["name"], spec, amounts(spec.get("hard")), scopes_of(spec))

    def measured(self, storage: str) -> list[str]:
        """Return which of the quota's resources objects of a collection use."""
        return [name for name in self.hard if measures(name, storage)]

    def selects(self, storage: str, obj: JSON) -> bool:
        """Tell whether an object is in all scopes."""
        return all(is_in_scope(scope, storage, obj) for scope in self.scopes)

    def charge(self, storage: str, obj: JSON) -> dict[str, Quantity]:
        """Return what an object uses of this quota."""
        names = self.measured(storage)
        return only(used_by(storage, obj), names) if names and self.selects(storage, obj) else {}


@dataclass
class Account:
    """What is used of one quota; mutable, written only by the book."""

    quota: Quota
    used: dict[str, Quantity]
    _charges: dict[tuple[str, str], dict[str, Quantity]] = field(default_factory=dict)

    def enter(self, storage: str, record: Record) -> None:
        """Charge an object for what it uses now."""
        if not self.quota.measured(storage):
            return
        self.strike(storage, record.key)
        if charge := self.quota.charge(storage, record.decode()):
            self._charges[storage, record.key.name] = charge
            for name, quantity in charge.items():
                self.used[name] += quantity

    def strike(self, storage: str, key: Key) -> None:
        """Give back what an object was charged."""
        for name, quantity in self._charges.pop((storage, key.name), {}).items():
            self.used[name] -= quantity


class Book:
    """The accounts of all namespaces; mutable. ``changed`` is told the key of every quota that may be out of date."""

    def __init__(self, store: Store, changed: Callable[[Key], None]) -> None:
        self._store = store
        self._changed = changed
        self._accounts: dict[str, dict[str, Account | None]] = {}  # None: not opened
        store.listen(self._on_write)

    def accounts(self, namespace: str) -> list[Account]:
        """Return the accounts of a namespace, by the names of their quotas."""
        names = self._accounts.get(namespace)
        if names is None:
            return []
        return [account for name in sorted(names) if (account := self.account(Key(namespace, name))) is not None]

    def account(self, key: Key) -> Account | None:
        """Return the account of a quota, if there is such a quota."""
        names = self._accounts.get(key.namespace, {})
        if key.name not in names:
            return None
        account = names[key.name]
        if account is None:
            account = names[key.name] = self._opened(key)
        return account

    def note(self, key: Key) -> None:
        """Have the status of a quota compared with the book."""
        self._changed(key)

    def _opened(self, key: Key) -> Account:
        stored = self._store.get(QUOTAS, key)
        assert stored is not None, f"the book has an account of {key}, which is not there"
        quota = Quota.of(stored.decode())
        account = Account(quota, dict.fromkeys(quota.hard, ZERO))
        for collection in self._store.collections():
            if collection.name not in UNCOUNTED and quota.measured(collection.name):
                for record in collection.records(key.namespace):
                    account.enter(collection.name, record)
        return account

    def _on_write(self, collection: Collection, event: StoreEvent) -> None:
        key = event.record.key
        if collection.name == QUOTAS:
            self._on_quota(event)
        accounts = self._accounts.get(key.namespace)
        if accounts is None or collection.name in UNCOUNTED:
            return
        for name, account in accounts.items():
            if account is None or not account.quota.measured(collection.name):
                continue
            if event.type == "DELETED":
                account.strike(collection.name, key)
            else:
                account.enter(collection.name, event.record)
            self._changed(Key(key.namespace, name))

    def _on_quota(self, event: StoreEvent) -> None:
        namespace, name = event.record.key
        accounts = self._accounts.setdefault(namespace, {})
        if event.type == "DELETED":
            accounts.pop(name, None)
            if not accounts:
                del self._accounts[namespace]
            return
        account = accounts.get(name)
        if account is None or account.quota.spec != (event.record.decode().get("spec") or {}):
            accounts[name] = None
        self._changed(event.record.key)
