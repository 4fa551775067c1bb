"""What victims are told: for whom, by which rule, and how the queues stand."""

from spinney.scheduler.fairshare import Amounts
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.session import Session


def queue_figures(session: Session, queue: str) -> str:
    """Return what a queue holds, is guaranteed and may fairly claim, for messages."""
    figures = (
        ("uses", session.ask.queue_allocated(queue)),
        ("quota", session.ask.queue_deserved(queue)),
        ("fair share", session.ask.queue_fair_share(queue)),
    )
    parts = [f"{name} {_render(amounts)}" for name, amounts in figures if amounts is not None]
    return f"queue {queue} ({'; '.join([*parts, f'priority {session.queues[queue].priority}'])})"


def parting_queues(session: Session, job: PodGroupInfo, queue: str) -> tuple[str, str]:
    """Return the two queues whose claims are compared: the ancestors where the paths of job and victim part."""
    tree = session.queues
    taking, giving = tree.divergence(tree.index[job.queue], tree.index[queue])
    return tree.queues[taking].name, tree.queues[giving].name


def _render(amounts: Amounts) -> str:
    return ", ".join(f"{text} {name}" for name, text in amounts.describe().items())
