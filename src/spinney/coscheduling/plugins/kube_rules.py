"""kube-scheduler's filters and scores as plugins, by its names and in its order, with what may change their minds."""

from typing import Final

from spinney.api.core import NAMESPACE, NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD, Pod
from spinney.api.storage import STORAGE_CLASS
from spinney.cluster.filters import KUBE_FILTERS
from spinney.cluster.scores import KUBE_SCORES
from spinney.coscheduling.framework.events import Action, ClusterEvent, EventHint, was_resized
from spinney.coscheduling.framework.profile import Rules


def _frees_a_node(pod: Pod, event: ClusterEvent) -> bool:
    # What a pod gave up itself is no news to it.
    return event.old is not None and bool(event.old.spec.node_name) and event.old.metadata.uid != pod.metadata.uid


def _is_on_a_node(pod: Pod, event: ClusterEvent) -> bool:
    return event.new is not None and bool(event.new.spec.node_name)


_NODES: Final = EventHint(NODE, Action.ADD | Action.UPDATE)
_ANY_NODE: Final = EventHint(NODE, Action.ANY)
"""A node that goes takes its domain along, to which others were compared."""
_RESIZED: Final = EventHint(POD, Action.UPDATE, was_resized)
_POD_GONE: Final = EventHint(POD, Action.DELETE, _frees_a_node)
_POD_PLACED: Final = EventHint(POD, Action.ADD | Action.UPDATE, _is_on_a_node)
_STORAGE: Final = tuple(
    EventHint(resource, Action.ANY) for resource in (PERSISTENT_VOLUME_CLAIM, PERSISTENT_VOLUME, STORAGE_CLASS)
)
_HINTS: Final[dict[str, tuple[EventHint, ...]]] = {
    "NodePorts": (_NODES, _POD_GONE),
    "NodeResourcesFit": (_NODES, _POD_GONE, _RESIZED),
    "VolumeRestrictions": (_NODES, _POD_GONE, *_STORAGE),
    # A pod that loses its node before it is bound gives up volumes that only this scheduler knew it had.
    "VolumeBinding": (_NODES, _POD_GONE, *_STORAGE),
    "VolumeZone": (_NODES, *_STORAGE),
    "PodTopologySpread": (_ANY_NODE, _POD_GONE, _POD_PLACED),
    "InterPodAffinity": (_NODES, _POD_GONE, _POD_PLACED, EventHint(NAMESPACE, Action.ANY)),
}


def _all_rules() -> dict[str, Rules]:
    filters = {rule.name: rule for rule in KUBE_FILTERS}
    scores = {rule.name: rule for rule in KUBE_SCORES}
    names = dict.fromkeys((*filters, *scores))
    return {
        name: Rules(name, filters.get(name), scores.get(name), _HINTS.get(name, (_NODES,)) if name in filters else ())
        for name in names
    }


KUBE_RULES: Final = _all_rules()
"""The plugins by name, filters first."""
