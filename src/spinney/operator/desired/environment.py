"""The environment variables by which a container learns its place.

They come first in each container, so that the user's own variables can refer to them, and replace the user's of the
same name.
"""

from typing import Any

from spinney.api import labels as marks
from spinney.api.struct import JSON
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


def containers(pod_spec: JSON) -> list[dict[str, Any]]:
    """Return the init containers and containers of a pod spec."""
    return [*(pod_spec.get("initContainers") or ()), *(pod_spec.get("containers") or ())]


def _from_label(name: str, label: str) -> JSON:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{label}']"}}}
