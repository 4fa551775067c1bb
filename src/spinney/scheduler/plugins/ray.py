"""ray: the head pod of a Ray cluster goes first."""

from typing import Final

from spinney.extensions.arguments import NoArguments
from spinney.scheduler.framework.plugin import Plugin
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo

NODE_TYPE_LABEL: Final = "ray.io/node-type"


class Ray(Plugin):
    """Orders tasks by their part in a Ray cluster."""

    name = "ray"
    arguments_type = NoArguments
    treats_alike = True

    def on_session_open(self, session: Session) -> None:
        session.add_task_order_key(_rank, labels=(NODE_TYPE_LABEL,))


def _rank(task: PodInfo) -> bool:
    return task.record.pod.metadata.labels.get(NODE_TYPE_LABEL) != "head"
