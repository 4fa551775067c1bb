"""Priority: a pod's class becomes its number, for pods and for native pod groups."""

from spinney.api.keys import Key
from spinney.api.struct import JSON
from spinney.server.admission.attributes import Attributes
from spinney.server.store import Store

_COLLECTION = "priorityclasses.scheduling.k8s.io"
_GANG_STORAGE = ("podgroups.scheduling.k8s.io", "compositepodgroups.scheduling.k8s.io")


def resolve_priority(store: Store, attributes: Attributes) -> None:
    """Fill ``priority`` and ``preemptionPolicy`` from the priority class when a pod or group is created."""
    storage = attributes.kind.storage
    if attributes.operation != "CREATE" or attributes.subresource or attributes.obj is None:
        return
    spec = attributes.obj.get("spec")
    if storage not in ("pods", *_GANG_STORAGE) or not isinstance(spec, dict):
        return
    policy = spec.get("preemptionPolicy")
    _resolve(store, attributes, spec)
    if storage == "pods":
        spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    elif policy is None:
        spec.pop("preemptionPolicy", None)


def _resolve(store: Store, attributes: Attributes, spec: JSON) -> None:
    name = spec.get("priorityClassName")
    if name:
        found = _named(store, str(name))
        if found is None:
            raise attributes.refused(f"no PriorityClass with name {name} was found")
    else:
        found = _global_default(store)
        if found is not None:
            spec["priorityClassName"] = found["metadata"]["name"]
    computed = [("priority", "integer value of priority", found["value"] if found else 0)]
    if found and "preemptionPolicy" in found:
        computed.append(("preemptionPolicy", "string value of PreemptionPolicy", found["preemptionPolicy"]))
    for field, what, value in computed:
        given = spec.get(field)
        if given is not None and given != value:
            why = (
                f"the {what} ({given}) must not be provided in pod spec;"
                f" priority admission controller computed {value} from the given PriorityClass name"
            )
            raise attributes.refused(why)
        spec[field] = value


def _named(store: Store, name: str) -> JSON | None:
    found = store.get(_COLLECTION, Key("", name))
    return None if found is None else found.decode()


def _global_default(store: Store) -> JSON | None:
    """Return the default class; of several the lowest, as Kubernetes decides."""
    found = [record.decode() for record in store.records(_COLLECTION) if b'"globalDefault":true' in record.raw]
    return min(found, key=lambda each: (each["value"], each["metadata"]["name"]), default=None)
