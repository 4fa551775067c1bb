"""ImageLocality: prefer nodes that already have the pod's images, big ones above all.

An image counts with its size times the share of nodes that have it, so that one node with a rare image does not draw
every pod that uses it.
"""

from typing import Final

import numpy as np

from spinney.cluster.filters.candidate import Candidate
from spinney.cluster.filters.view import ClusterView
from spinney.cluster.journal import Rows
from spinney.cluster.scores.scoring import MAX_SCORE, ScoreRule, Scores
from spinney.cluster.table import Mask, NodeTable

NAME: Final = "ImageLocality"
_MEBI: Final = 1024 * 1024
_LEAST: Final = 23 * _MEBI
_MOST_PER_CONTAINER: Final = 1000 * _MEBI


def score(view: ClusterView, pod: Candidate, mask: Mask) -> Scores | None:
    """Return 0 for nodes that have next to nothing of the images, 100 for those that have about all."""
    containers = (*pod.pod.spec.init_containers, *pod.pod.spec.containers)
    if not containers:
        return None
    present = np.zeros(view.table.capacity, dtype=np.int64)
    for container in containers:
        present += _worth(view, _tagged(container.image))
    most = _MOST_PER_CONTAINER * len(containers)
    return MAX_SCORE * (np.clip(present, _LEAST, most) - _LEAST) // (most - _LEAST)


def _worth(view: ClusterView, image: str) -> Scores:
    having = view.static.mask(view.table, NAME, image, lambda table, rows: _having(table, rows, image))
    rows = np.flatnonzero(having)
    if not len(rows):
        return np.zeros(view.table.capacity, dtype=np.int64)
    share = len(rows) / len(view.table)
    return having * int(_size(view.table, int(rows[0]), image) * share)


def _having(table: NodeTable, rows: Rows, image: str) -> Mask:
    return np.fromiter((_size(table, row, image) > 0 for row in rows.tolist()), dtype=np.bool_, count=len(rows))


def _size(table: NodeTable, row: int, image: str) -> int:
    node = table.nodes[row]
    if node is None:
        return 0
    return next((found.size_bytes for found in node.status.images if image in (found.names or ())), 0)


def _tagged(image: str) -> str:
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


IMAGE_LOCALITY: Final = ScoreRule(NAME, score)
