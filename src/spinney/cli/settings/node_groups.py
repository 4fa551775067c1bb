"""The kinds of nodes that could be added, read from a file."""

from pathlib import Path

from spinney.cli.running import in_one_line
from spinney.nodes import ClusterSpec, InvalidClusterSpec
from spinney.sim.remedies.node_groups import AddableNodes, addable


def node_groups_in(path: Path | None) -> tuple[AddableNodes, ...]:
    """Return the kinds of nodes that a file describes; none without a file."""
    if path is None:
        return ()
    with in_one_line(InvalidClusterSpec):
        return addable(ClusterSpec.load(path))
