"""The environment variables by which a container learns its place.

They come first in each container, so that the user's own variables can refer to them, and replace the user's of the
same name.
"""

from typing import Any

from spinney.api import labels as marks
from spinney.api.struct import JSON, to_json
from spinney.operator.desired import names
from spinney.operator.desired.layout import CliquePlace, Layout


def of_group_member(layout: Layout, place: CliquePlace) -> list[JSON]:
    """Return the variables of a PodClique in a scaling group; they stand in the PodClique's own pod spec."""
    assert place.group is not None
    pods = sum(layout.templates[clique].spec.replicas or 1 for clique in place.group.config.clique_names)
    return [
        _from_label("GROVE_PCSG_NAME", marks.SCALING_GROUP),
        {"name": "GROVE_PCSG_TEMPLATE_NUM_PODS", "value": str(pods)},
        _from_label("GROVE_PCSG_INDEX", marks.SCALING_GROUP_REPLICA_INDEX),
    ]


def of_pod(pcs: str, replica: int, clique: str, namespace: str) -> list[JSON]:
    """Return the variables of every pod."""
    return [
        {"name": "GROVE_PCS_NAME", "value": pcs},
        {"name": "GROVE_PCS_INDEX", "value": str(replica)},
        {"name": "GROVE_PCLQ_NAME", "value": clique},
        {"name": "GROVE_HEADLESS_SERVICE", "value": names.service_domain(pcs, replica, namespace)},
        _from_label("GROVE_PCLQ_POD_INDEX", marks.POD_INDEX),
    ]


def prepend(pod_spec: JSON, variables: list[JSON]) -> None:
    """Put the variables first in every container and init container of a pod spec."""
    ours = {variable["name"] for variable in variables}
    for container in containers(pod_spec):
        kept = [variable for variable in container.get("env") or () if variable.get("name") not in ours]
        container["env"] = [*variables, *kept]


def copy_to_change(pod_spec: JSON) -> JSON:
    """Return a copy of a pod spec to add to; what is written as null is not written, as for an API server."""
    spec = _without_nulls(to_json(pod_spec))
    for key in ("initContainers", "containers"):
        if key in spec:
            spec[key] = [_without_nulls(container) for container in spec[key]]
    for container in containers(spec):
        if "resources" in container:
            container["resources"] = _without_nulls(container["resources"])
    return spec


def _without_nulls(found: JSON) -> JSON:
    return {key: value for key, value in found.items() if value is not None}


def containers(pod_spec: JSON) -> list[dict[str, Any]]:
    """Return the init containers and containers of a pod spec."""
    return [*(pod_spec.get("initContainers") or ()), *(pod_spec.get("containers") or ())]


def _from_label(name: str, label: str) -> JSON:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{label}']"}}}
