"""Gangs without pods: the scheduler decides about them as about any other, and does something else than binding.

Their pods are in the inventory like real ones, under names that no real pod can have. When one of them is given nodes
these are kept, and the maker of the gang sees to it that real pods come.
"""

from collections.abc import Callable, Sequence

from spinney.api.core import Pod
from spinney.gangs.tree import GangKey
from spinney.scheduler.framework.results import Binding, Unschedulable


class VirtualGangs:
    """The maker of the virtual gangs of an inventory. This one makes none; others say what they do instead."""

    wake: Callable[[], None]
    """Asks for a cycle; the process that it is given to says how."""

    def has(self, gang: GangKey) -> bool:
        """Tell whether a gang is a virtual one."""
        return False

    def pod_coming(self, pod: Pod) -> None:
        """Take in a real pod."""

    def before_cycle(self) -> None:
        """Give back what was kept for gangs whose real pods have come, so that the cycle gives it to these."""

    async def start(self, gang: GangKey, binds: Sequence[Binding]) -> None:
        """Have the real pods of a gang made; its nodes are kept, until it is said otherwise."""

    async def stop(self, gang: GangKey) -> None:
        """Give up a gang that has nodes: others need them more."""

    def refused(self, gangs: Sequence[Unschedulable]) -> None:
        """Take in which of them have no room, and why."""
