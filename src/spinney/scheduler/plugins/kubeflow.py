"""kubeflow: the master or launcher pod of a training job goes first."""

from typing import Final

from spinney.extensions.arguments import NoArguments
from spinney.scheduler.framework.plugin import Plugin
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo

ROLE_LABELS: Final = frozenset({"training.kubeflow.org/job-role", "training.kubeflow.org/replica-type", "job-role"})
_LEADERS: Final = frozenset({"master", "launcher"})


class Kubeflow(Plugin):
    """Orders tasks by their role in a Kubeflow job."""

    name = "kubeflow"
    arguments_type = NoArguments
    treats_alike = True

    def on_session_open(self, session: Session) -> None:
        session.add_task_order_key(_rank, labels=ROLE_LABELS)


def _rank(task: PodInfo) -> bool:
    labels = task.record.pod.metadata.labels
    if ROLE_LABELS.isdisjoint(labels):
        return True
    return not any(labels.get(label, "").lower() in _LEADERS for label in ROLE_LABELS)
