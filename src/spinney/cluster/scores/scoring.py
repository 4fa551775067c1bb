"""What a score is, and how raw scores are brought to the common scale of 0 to 100.

A score looks at the nodes that passed the filters (``mask``) and returns one integer per node, ``[node]``, between 0
and :data:`MAX_SCORE`; entries outside the mask mean nothing. ``None`` says that the score has no opinion about this
pod. All arithmetic is kube-scheduler's, down to where it drops fractions.
"""

from collections.abc import Callable
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from spinney.cluster.filters.candidate import Candidate
from spinney.cluster.filters.view import ClusterView
from spinney.cluster.table import Mask

Scores = npt.NDArray[np.int64]
"""One score per node, ``[node]``."""
ScoreFunction = Callable[[ClusterView, Candidate, Mask], Scores | None]

MAX_SCORE: Final = 100


class ScoreRule(msgspec.Struct, frozen=True):
    """A preference among nodes and how much it counts."""

    name: str
    score: ScoreFunction
    weight: int = 1


def normalised(raw: Scores, mask: Mask, *, reverse: bool = False) -> Scores:
    """Return ``raw`` scaled so that the highest in ``mask`` is 100; with ``reverse`` the highest becomes 0."""
    highest = int(raw[mask].max(initial=0))
    if highest == 0:
        return np.full_like(raw, MAX_SCORE if reverse else 0)
    scaled = MAX_SCORE * raw // highest
    return MAX_SCORE - scaled if reverse else scaled
