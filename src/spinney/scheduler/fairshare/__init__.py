"""Fair share between queues: who is entitled to what, who goes next, and what may be taken from whom.

The core is pure: :class:`QueueTree` says what queues are entitled to, :class:`QueueBooks` what they hold and want, and
functions over the two decide: the division into fair shares, the order of queues, whether a job may be placed
(capacity), and whether a set of evictions is just (reclaim). The ``proportion`` and ``minruntime`` plugins bring these
decisions into a scheduling session.
"""

from spinney.scheduler.fairshare.amounts import GPU, NO_BOUND, UNLIMITED, ZERO, Amounts
from spinney.scheduler.fairshare.books import QueueBook, QueueBooks
from spinney.scheduler.fairshare.queues import QueueInfo, QueueTree, Weights

__all__ = [
    "GPU",
    "NO_BOUND",
    "UNLIMITED",
    "ZERO",
    "Amounts",
    "QueueBook",
    "QueueBooks",
    "QueueInfo",
    "QueueTree",
    "Weights",
]
