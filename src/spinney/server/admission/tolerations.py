"""Every pod tolerates a node that is not ready or unreachable for five minutes, unless it says otherwise."""

from spinney.server.admission.attributes import Attributes

_SECONDS = 300
_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def add_default_tolerations(attributes: Attributes) -> None:
    """Add the two tolerations to a pod that is created or replaced."""
    if attributes.kind.storage != "pods" or attributes.operation == "DELETE" or attributes.subresource:
        return
    spec = attributes.obj.get("spec") if attributes.obj else None
    if not isinstance(spec, dict):
        return
    tolerations = spec.get("tolerations") or []
    for taint in _TAINTS:
        if not any(_covers(toleration, taint) for toleration in tolerations):
            tolerations.append(
                {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _SECONDS}
            )
    spec["tolerations"] = tolerations


def _covers(toleration: dict[str, object], taint: str) -> bool:
    return toleration.get("key", "") in ("", taint) and toleration.get("effect", "") in ("", "NoExecute")
