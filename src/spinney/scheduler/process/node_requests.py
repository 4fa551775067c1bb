"""Nodes for gangs that lack them may be asked for by other means than the conditions of their pods."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from spinney.gangs.tree import GangKey
from spinney.scheduler.framework.results import Unschedulable


class ConditionText(NamedTuple):
    """Reason and message of the condition of pods."""

    reason: str
    message: str


class NodeRequests:
    """What asks an autoscaler for nodes. This one asks nobody: pods ask for themselves."""

    wake: Callable[[], None]
    """Asks for a cycle; the process that it is given to says how."""

    def lack_nodes(self, gangs: Sequence[Unschedulable]) -> Mapping[GangKey, ConditionText]:
        """Take in which gangs lack nodes after a cycle; return what the pods of those say whose nodes are asked for."""
        return {}
