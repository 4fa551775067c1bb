"""What backends are given to look at: copies, so that what they change in them is changed for nobody else.

Objects are frozen, but for the mappings in them. Of gangs, pods and topologies, labels and annotations are all that
anybody goes by. A set carries whole pod templates.
"""

from typing import TypeVar

from msgspec.structs import replace

from spinney.api.core import Pod
from spinney.api.grove import PodCliqueSet
from spinney.api.podgang import PodGang
from spinney.api.struct import convert, to_json
from spinney.api.topology_binding import ClusterTopologyBinding

T = TypeVar("T", PodGang, Pod, ClusterTopologyBinding)


def lent(found: T) -> T:
    """Return a copy of an object whose labels and annotations are its own."""
    metadata = found.metadata
    own = replace(metadata, labels={**metadata.labels}, annotations={**metadata.annotations})
    return replace(found, metadata=own)


def lent_set(pcs: PodCliqueSet) -> PodCliqueSet:
    """Return a copy of a set that shares nothing with it."""
    return convert(PodCliqueSet, to_json(pcs))
