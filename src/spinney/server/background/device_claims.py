"""Device claims of pods: made from their templates, and freed by pods that are over.

On a real cluster kube-controller-manager does this. A pod that asks for a claim by template gets one of its own, named
in the pod's status; it goes with the pod, or when the pod has ended. A pod that is gone or has ended no longer reserves
a claim, and with the last reservation the devices are given back and the claim may be deleted.
"""

from spinney.api.keys import Key
from spinney.api.struct import JSON
from spinney.server.background.protection import has_ended
from spinney.server.background.worker import Worker
from spinney.server.operations.context import Context
from spinney.server.operations.deleting import DeleteOptions, delete_now, finish_if_released, let_go
from spinney.server.operations.metadata import begin, generated_name
from spinney.server.store import Collection, Record, StoreEvent

_GROUP = "resource.k8s.io"
_PODS = "pods"
_CLAIMS, _TEMPLATES = f"resourceclaims.{_GROUP}", f"resourceclaimtemplates.{_GROUP}"
_USES_CLAIMS = b'"resourceClaims":[{'
_PROTECTION = "resource.kubernetes.io/delete-protection"
_CLAIM_OF_POD = "resource.kubernetes.io/pod-claim-name"

Place = tuple[str, Key, str]  # collection, key, uid


class ResourceClaimController(Worker[Place]):
    """Makes and frees the claims of pods."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._waiting: dict[Key, dict[Place, None]] = {}  # by the template that is not there
        self._claim_kind = context.registry.built_in(_CLAIMS)

    def _on_write(self, collection: Collection, event: StoreEvent) -> None:
        record = event.record
        if collection.name == _PODS:
            if _USES_CLAIMS in record.raw:
                self._notes.note((_PODS, record.key, record.uid))
        elif collection.name == _CLAIMS:
            if record.deleting and event.type != "DELETED":
                self._notes.note((_CLAIMS, record.key, record.uid))
        elif collection.name == _TEMPLATES and event.type == "ADDED":
            for place in self._waiting.pop(record.key, ()):
                self._notes.note(place)

    def _work(self, item: Place) -> None:
        collection, key, uid = item
        if collection == _CLAIMS:
            self._free(key)
            return
        pod = self._living(uid)
        if pod is None:
            self._end_reservations(key.namespace, uid)
        elif not pod.deleting:
            self._make_claims(pod)

    def _living(self, uid: str) -> Record | None:
        """Return the pod with this uid unless it is gone or has ended."""
        found = self._store.by_uid(uid)
        return found[1] if found is not None and not has_ended(found[1]) else None

    # -- claims of a pod's own -----------------------------------------------------------------------------------------

    def _make_claims(self, pod: Record) -> None:
        obj = pod.decode()
        status = obj.setdefault("status", {})
        named = {each["name"] for each in status.get("resourceClaimStatuses") or ()}
        made = []
        for wanted in obj["spec"]["resourceClaims"]:
            template = wanted.get("resourceClaimTemplateName")
            if template and wanted["name"] not in named:
                claim = self._make_claim(pod, wanted["name"], Key(pod.key.namespace, template))
                if claim is not None:
                    made.append({"name": wanted["name"], "resourceClaimName": claim})
        if made:
            status["resourceClaimStatuses"] = [*(status.get("resourceClaimStatuses") or ()), *made]
            self._store.write(_PODS, pod.key, obj)

    def _make_claim(self, pod: Record, name: str, template: Key) -> str | None:
        found = self._store.get(_TEMPLATES, template)
        if found is None:
            self._waiting.setdefault(template, {})[_PODS, pod.key, pod.uid] = None
            return None
        wanted = found.decode().get("spec") or {}
        metadata = wanted.get("metadata") or {}
        base = f"{pod.key.name}-{name}-"
        owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.key.name, "uid": pod.uid}
        claim: JSON = {
            "apiVersion": f"{_GROUP}/v1",
            "kind": "ResourceClaim",
            "metadata": {
                "generateName": base,
                "name": generated_name(base, self._context.runtime),
                "annotations": {**(metadata.get("annotations") or {}), _CLAIM_OF_POD: name},
                "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
            },
            "spec": wanted.get("spec") or {},
            "status": {},
        }
        if metadata.get("labels"):
            claim["metadata"]["labels"] = metadata["labels"]
        begin(self._claim_kind, claim, pod.key.namespace, self._context.runtime)
        key = Key(pod.key.namespace, claim["metadata"]["name"])
        self._store.write(_CLAIMS, key, claim)
        return key.name

    # -- what pods that are over leave ---------------------------------------------------------------------------------

    def _end_reservations(self, namespace: str, uid: str) -> None:
        for claim in list(self._store.records(_CLAIMS, namespace)):
            if uid.encode() in claim.raw:
                self._free(claim.key)
        for collection, claim in self._store.dependents(uid):
            if collection.name == _CLAIMS and not claim.deleting:
                delete_now(self._context, self._claim_kind, claim, DeleteOptions(uid=claim.uid))

    def _free(self, key: Key) -> None:
        """Take away the reservations of pods that are over, then what nobody reserves any more."""
        found = self._store.get(_CLAIMS, key)
        if found is None:
            return
        claim = found.decode()
        status = claim.setdefault("status", {})
        before = status.get("reservedFor") or []
        reserved = [each for each in before if self._living(each.get("uid", "")) is not None]
        if len(reserved) == len(before) and not (found.deleting and not reserved):
            return
        if reserved:
            status["reservedFor"] = reserved
            self._store.write(_CLAIMS, key, claim)
            return
        status.pop("reservedFor", None)
        status.pop("allocation", None)
        let_go(claim, _PROTECTION)
        if finish_if_released(self._context, self._claim_kind, key, claim) is None and claim != found.decode():
            self._store.write(_CLAIMS, key, claim)
