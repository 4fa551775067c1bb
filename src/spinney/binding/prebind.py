"""What a pod needs before it may be bound, and how it is taken back.

A gang is bound in two steps: first everything its pods need is prepared, for all of them at the same time; only when
that was done for every pod is the first one bound. So a volume that cannot be provisioned, or a device that went away,
never leaves a gang part-bound: what was prepared is taken back, and the gang is placed anew.
"""

from typing import Protocol

from spinney.binding.placement import Placement
from spinney.kube.errors import KubeError


class PreBindRefused(KubeError):
    """A pod cannot be bound where it was placed; the text says what it lacks there."""


class PreBindInterrupted(PreBindRefused):
    """The process stops. What was prepared stays, for its successor to go on with."""


class Preparation(Protocol):
    """One kind of thing that pods need before they may be bound."""

    def needs(self, placement: Placement) -> bool:
        """Tell whether there is anything to prepare; asked for every pod, so it must cost next to nothing."""

    async def prepare(self, placement: Placement) -> None:
        """Prepare what the pod needs on its node; raises a ``KubeError`` if that is not possible. May be repeated."""

    async def release(self, placement: Placement) -> None:
        """Take back what :meth:`prepare` may have done for a pod that was not bound; raises nothing."""

    def interrupt(self) -> None:
        """Give up waiting, because the process stops: what waits raises :class:`PreBindInterrupted`."""
