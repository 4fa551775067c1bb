"""A whole cluster in one process, on a real or a virtual clock.

:class:`Cluster` is what people try policies on; the rest of the room is imported from its modules.
"""

from typing import TYPE_CHECKING

from spinney.lazy_exports import exported

if TYPE_CHECKING:
    from spinney.sim.notebook.cluster import Cluster

__all__ = ["Cluster"]


__getattr__ = exported(__name__, __file__)
