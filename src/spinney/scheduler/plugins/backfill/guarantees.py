"""Whether a queue keeps what it is guaranteed when some of its jobs give way to a job of another queue."""

from spinney.scheduler.fairshare.amounts import ZERO, Amounts
from spinney.scheduler.framework.session import Session


def keeps_quota(session: Session, queue: str, beside: str, lost: Amounts, *, still_held: bool) -> bool:
    """Tell whether ``queue`` and all above it that do not hold ``beside`` are left their quotas of what is ``lost``.

    ``still_held``: nothing has been taken yet. A queue that is guaranteed without bound what is scarce, or of which
    nobody knows what it holds, gives nothing: GPUs are scarce, for jobs that have none anything.
    """
    tree = session.queues
    spared = tree.path(beside)
    taken = lost if still_held else ZERO
    return all(
        _is_left_quota(session, tree.queues[position].name, lost, taken)
        for position in tree.path(queue)
        if position not in spared
    )


def _is_left_quota(session: Session, queue: str, lost: Amounts, taken: Amounts) -> bool:
    held, quota = session.ask.queue_allocated(queue), session.ask.queue_deserved(queue)
    if held is None or quota is None or (lost.gpu and quota.gpu < 0):
        return False
    figures = zip(lost.astuple(), (held - taken).astuple(), quota.astuple(), strict=True)
    bounded = [(left, guaranteed) for given, left, guaranteed in figures if given and guaranteed >= 0]
    return bool(bounded) and all(left >= guaranteed for left, guaranteed in bounded)
