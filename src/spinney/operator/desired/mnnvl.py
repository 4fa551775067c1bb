"""Multi-node NVLink: which ComputeDomains a PodCliqueSet needs, and who uses which.

The annotation ``grove.io/mnnvl-group`` is read on the clique, then its scaling group, then the set; the first one found
decides, and ``none`` opts out. Only cliques that ask for GPUs take part.
"""

from collections.abc import Mapping

from spinney.api import labels as marks
from spinney.api.struct import JSON
from spinney.operator.desired.environment import containers
from spinney.operator.desired.layout import CliquePlace, Layout

NONE = "none"
GPU = "nvidia.com/gpu"
CLAIM = "mnnvl-claim"


def group_of(layout: Layout, place: CliquePlace) -> str | None:
    """Return the NVLink group of a PodClique, or ``None``."""
    layers: list[Mapping[str, str]] = [place.template.annotations]
    if place.group is not None:
        layers.append(place.group.config.annotations)
    layers.append(layout.pcs.metadata.annotations)
    group = next((layer[marks.MNNVL_GROUP] for layer in layers if marks.MNNVL_GROUP in layer), NONE)
    return None if group == NONE or not any(map(uses_gpu, containers(place.template.spec.pod_spec))) else group


def inherited(layout: Layout) -> dict[str, str]:
    """Return the annotation that a scaling group has from its set, unless it has its own."""
    group = layout.pcs.metadata.annotations.get(marks.MNNVL_GROUP)
    return {} if group is None else {marks.MNNVL_GROUP: group}


def groups_of(layout: Layout) -> list[str]:
    """Return the NVLink groups of one replica of a set, in order."""
    places = layout.standalone(0) + [place for group in layout.group_configs for place in layout.members(0, group, 0)]
    return sorted({group for place in places if (group := group_of(layout, place)) is not None})


def inject(pod_spec: JSON, claim_template: str) -> None:
    """Let the GPU containers of a pod spec use the channel of a ComputeDomain."""
    claims = pod_spec.setdefault("resourceClaims", [])
    if any(claim["name"] == CLAIM for claim in claims):
        return
    claims.append({"name": CLAIM, "resourceClaimTemplateName": claim_template})
    for container in containers(pod_spec):
        if uses_gpu(container):
            container.setdefault("resources", {}).setdefault("claims", []).append({"name": CLAIM})


def uses_gpu(container: JSON) -> bool:
    """Tell whether a container asks for a GPU."""
    resources = container.get("resources") or {}
    amounts = [(resources.get(part) or {}).get(GPU) for part in ("limits", "requests")]
    return any(amount not in (None, 0, "0") for amount in amounts)
