"""Every pod runs as a service account: its name is filled in, and a token for it is mounted into the containers.

The volume is projected (token, the cluster's certificate authority, the namespace), as Kubernetes does it; what the
account says about image pull secrets is taken over, too.
"""

import random
from typing import Any

from spinney.api.keys import Key
from spinney.api.struct import JSON
from spinney.server.admission.attributes import Attributes
from spinney.server.store import Store

ROOT_CERTIFICATES = "kube-root-ca.crt"
_MIRROR = "kubernetes.io/config.mirror"
_MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_VOLUME = "kube-api-access-"
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
_LIFETIME = 3607
_SOURCES: tuple[JSON, ...] = (
    {"serviceAccountToken": {"expirationSeconds": _LIFETIME, "path": "token"}},
    {"configMap": {"name": ROOT_CERTIFICATES, "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    {
        "downwardAPI": {
            "items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]
        }
    },
)


def run_as_account(store: Store, chance: random.Random, attributes: Attributes) -> None:
    """Give a new pod its service account; refuse one whose account does not exist."""
    if attributes.kind.storage != "pods" or attributes.operation != "CREATE" or attributes.subresource:
        return
    obj = attributes.obj
    spec = obj.get("spec") if obj else None
    if obj is None or not isinstance(spec, dict) or _MIRROR in (obj["metadata"].get("annotations") or {}):
        return
    name = spec.get("serviceAccountName") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    found = store.get("serviceaccounts", Key(attributes.namespace, name))
    if found is None:
        why = f'error looking up service account {attributes.namespace}/{name}: serviceaccount "{name}" not found'
        raise attributes.refused(why)
    account = found.decode()
    if _automounts(spec, account):
        _mount(spec, chance)
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = account["imagePullSecrets"]


def _automounts(spec: JSON, account: JSON) -> bool:
    said = (each.get("automountServiceAccountToken") for each in (spec, account))
    return bool(next((each for each in said if each is not None), True))


def _mount(spec: JSON, chance: random.Random) -> None:
    volumes = spec.get("volumes") or []
    name = next((str(each.get("name")) for each in volumes if _is_ours(each)), "")
    made = not name
    if made:
        name = _VOLUME + "".join(chance.choices(_SUFFIX, k=5))
    needed = False
    for containers in (spec.get("initContainers"), spec.get("containers")):
        for container in containers or ():
            mounts = container.get("volumeMounts") or []
            if any(mount.get("mountPath") == _MOUNT for mount in mounts):
                continue
            container["volumeMounts"] = [*mounts, {"name": name, "readOnly": True, "mountPath": _MOUNT}]
            needed = True
    if needed and made:
        spec["volumes"] = [*volumes, {"name": name, "projected": {"sources": list(_SOURCES), "defaultMode": 420}}]


def _is_ours(volume: Any) -> bool:
    return (
        isinstance(volume, dict)
        and str(volume.get("name", "")).startswith(_VOLUME)
        and isinstance(volume.get("projected"), dict)
    )
