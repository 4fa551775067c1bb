"""A whole cluster in one process, on a real or a virtual clock.

:class:`Cluster` is what people try policies on; the rest of the room is imported from its modules.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spinney.sim.notebook.cluster import Cluster

__all__ = ["Cluster"]


def __getattr__(name: str) -> Any:
    """Import the library when it is first asked for: commands that need one module of this room pay for that only."""
    if name == "Cluster":
        from spinney.sim.notebook.cluster import Cluster  # noqa: PLC0415 - on first use

        return Cluster
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
