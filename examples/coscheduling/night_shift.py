"""A framework plugin in one file: nodes labelled for the night take pods only at night.

Install it with a package that names it under the entry-point group ``spinney.framework_plugins``::

    [project.entry-points."spinney.framework_plugins"]
    NightShift = "night_shift:NightShift"

and enable it in a profile::

    plugins: {multiPoint: {enabled: [{name: NightShift}]}}
    pluginConfig: [{name: NightShift, args: {from: 20, to: 6}}]
"""

from collections.abc import Mapping
from typing import Any

from spinney.api.core import Node, Pod
from spinney.coscheduling.framework import SUCCESS, CycleState, Handle, NodeFilter, Status

LABEL = "example.com/night-only"


class NightShift(NodeFilter):
    """Keeps pods off night nodes during the day."""

    name = "NightShift"

    def __init__(self, handle: Handle, arguments: Mapping[str, Any]) -> None:
        self._clock = handle.services.runtime.clock
        self._begins, self._ends = int(arguments.get("from", 20)), int(arguments.get("to", 6))

    def filter_node(self, state: CycleState, pod: Pod, node: Node) -> Status:
        """Refuse a night node while it is day."""
        if node.metadata.labels.get(LABEL) != "true" or self._is_night():
            return SUCCESS
        return Status.unresolvable("node(s) only work at night")

    def _is_night(self) -> bool:
        hour = self._clock.now().hour
        return hour >= self._begins or hour < self._ends
