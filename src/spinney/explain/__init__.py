"""Why something is pending: reasons as data, and how they read.

This room knows no scheduler. A scheduler hands over the masks of its filters and tables of its topology domains;
:mod:`~spinney.explain.counting` and :mod:`~spinney.explain.domains` turn them into :mod:`~spinney.explain.reasons`, and
:mod:`~spinney.explain.rendering` writes those as text, a condition or an event.
"""

from spinney.explain.counting import NodeNames, Room, pod_report
from spinney.explain.reasons import Explanation
from spinney.explain.rendering import as_text

__all__ = ["Explanation", "NodeNames", "Room", "as_text", "pod_report"]
