"""What a ProvisioningRequest of a gang consists of: the pods that wait, by template, as the autoscaler sees them."""

from collections.abc import Iterable, Mapping
from typing import Final

from spinney.api.labels import MANAGED_BY
from spinney.api.provisioning import PROVISIONING_REQUEST
from spinney.api.struct import JSON

MANAGER: Final = "spinney-scheduler"
SELECTOR: Final = f"{MANAGED_BY}={MANAGER}"
SCHEDULER: Final = "spinney.dev/scheduler"
"""The label by which a request says whose it is: there may be several schedulers in a cluster."""
_OF_THE_POD: Final = ("nodeName", "schedulingGates", "priority", "preemptionPolicy", "hostname", "subdomain")
"""What belongs to one pod, or is filled in by the API server from something else that the spec names."""
_TOKENS: Final = "kube-api-access-"


def pod_template(name: str, pod: JSON, metadata: JSON) -> JSON:
    """Return the template of pods like ``pod``: what decides where they can go."""
    spec = {key: value for key, value in pod["spec"].items() if key not in _OF_THE_POD}
    spec["volumes"] = _without_tokens(spec.get("volumes"))
    for kind in ("containers", "initContainers"):
        containers = spec.get(kind) or ()
        spec[kind] = [{**each, "volumeMounts": _without_tokens(each.get("volumeMounts"))} for each in containers]
    own = {"labels": dict(pod["metadata"].get("labels") or {})}
    return {"metadata": {**metadata, "name": name}, "template": {"metadata": own, "spec": spec}}


def provisioning_request(
    name: str, metadata: JSON, counts: Iterable[tuple[str, int]], *, class_name: str, parameters: Mapping[str, str]
) -> JSON:
    """Return the request for so many pods of each template."""
    pod_sets = [{"podTemplateRef": {"name": template}, "count": count} for template, count in counts]
    return {
        "apiVersion": PROVISIONING_REQUEST.api_version,
        "kind": PROVISIONING_REQUEST.kind,
        "metadata": {**metadata, "name": name},
        "spec": {"provisioningClassName": class_name, "podSets": pod_sets, "parameters": dict(parameters)},
    }


def _without_tokens(named: Iterable[JSON] | None) -> list[JSON]:
    return [each for each in named or () if not each["name"].startswith(_TOKENS)]
