"""What every namespace has: the service account ``default``, and the certificate authority of the API server.

Both are there in the moment the namespace is, so that pods may follow at once; whoever deletes one of them gets it
back.
"""

from spinney.api.struct import JSON
from spinney.server.admission.service_accounts import ROOT_CERTIFICATES
from spinney.server.background.notes import Notes
from spinney.server.background.working import work_off
from spinney.server.operations.context import Context
from spinney.server.operations.metadata import begin
from spinney.server.store import ChangeNotKept, Collection, Event, Key

_ACCOUNT = "default"
_DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the"
    " internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes"
    " clusters."
)
_FURNITURE = {"serviceaccounts": _ACCOUNT, "configmaps": ROOT_CERTIFICATES}


def furnish(context: Context, namespace: str) -> None:
    """Put into a namespace what it lacks."""
    _put(context, "serviceaccounts", namespace, {"kind": "ServiceAccount", "metadata": {"name": _ACCOUNT}})
    metadata = {"name": ROOT_CERTIFICATES, "annotations": {"kubernetes.io/description": _DESCRIPTION}}
    data = {"ca.crt": context.trust.authority}
    _put(context, "configmaps", namespace, {"kind": "ConfigMap", "metadata": metadata, "data": data})


def _put(context: Context, collection: str, namespace: str, content: JSON) -> None:
    kind = context.registry.find("", "v1", collection)
    assert kind is not None, f"{collection} are built in"
    objects = context.collection(kind)
    key = Key(namespace, content["metadata"]["name"])
    found = objects.get(key)
    if found is None:
        obj = {"apiVersion": "v1", **content}
        begin(kind, obj, namespace, context.runtime)
        context.store.write(objects, key, obj)
    elif "data" in content and not found.deleting:
        obj = found.decode()
        if obj.get("data") != content["data"]:
            context.store.write(objects, key, {**obj, "data": content["data"]})


class Furnishing:
    """Brings back what was taken out of a living namespace; mutable, runs as one task."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._notes: Notes[str] = Notes()
        context.store.listen(self._on_write)

    async def run(self) -> None:
        """Furnish until cancelled."""
        await work_off(self._notes, self._furnish, self._context.runtime.clock)

    def _furnish(self, namespace: str) -> None:
        if self._alive(namespace):
            furnish(self._context, namespace)

    def furnish_all(self) -> None:
        """Put into every living namespace what it lacks, or has in an old form; without room that is done later."""
        namespaces = self._context.store.collection("namespaces")
        for record in list(namespaces.records()) if namespaces else ():
            if record.deleting:
                continue
            try:
                furnish(self._context, record.key.name)
            except ChangeNotKept:
                self._notes.note(record.key.name)

    def _alive(self, namespace: str) -> bool:
        namespaces = self._context.store.collection("namespaces")
        found = namespaces.get(Key("", namespace)) if namespaces else None
        return found is not None and not found.deleting

    def _on_write(self, collection: Collection, event: Event) -> None:
        key = event.record.key
        if event.type == "DELETED" and _FURNITURE.get(collection.name) == key.name:
            self._notes.note(key.namespace)
