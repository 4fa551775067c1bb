"""How much each built-in node score counts.

Scores of all plugins are added up. Each band is wider than everything below it together, so that a more important
preference is never outvoted by less important ones. A plugin of your own may return any number: pick the band you want
to be in.
"""

from typing import Final

MAX_DENSITY: Final = 9.0
"""Bin packing by how full a node is: 0 to 9."""
SPREAD: Final = 1.0
"""Spreading by how empty a node is: 0 to 1."""
RESOURCE_TYPE: Final = 10.0
"""A node without GPUs, for a pod that needs none."""
AVAILABILITY: Final = 100.0
"""The pod fits now, without waiting for something that is terminating."""
GPU_SHARING: Final = 1_000.0
"""The node has a shared GPU with room."""
TOPOLOGY: Final = 10_000.0
"""Per step (1 to 10) of the preferred topology level."""
POD_AFFINITY: Final = 100_000.0
"""Per point of preferred pod affinity."""
NOMINATED_NODE: Final = 1_000_000.0
"""The node was nominated for the pod."""
