"""taskorder: pods with a task priority label go before pods without, the higher first."""

from typing import Final

from spinney.extensions.arguments import NoArguments
from spinney.scheduler.framework.plugin import Plugin
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo

TASK_PRIORITY_LABEL: Final = "kai.scheduler/task-priority"


class TaskOrder(Plugin):
    """Orders tasks by their task priority."""

    name = "taskorder"
    arguments_type = NoArguments
    treats_alike = True

    def on_session_open(self, session: Session) -> None:
        session.add_task_order_key(_rank, labels=(TASK_PRIORITY_LABEL,))


def _rank(task: PodInfo) -> tuple[bool, int]:
    text = task.record.pod.metadata.labels.get(TASK_PRIORITY_LABEL)
    if text is None:
        return (True, 0)
    try:
        return (False, -int(text))
    except ValueError:
        return (True, 0)
