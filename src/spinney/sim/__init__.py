"""A whole cluster in one process, on a real or a virtual clock.

:class:`Cluster` is what people try policies on; the rest of the room is imported from its modules.
"""

from spinney.sim.cluster import Cluster

__all__ = ["Cluster"]
