"""priority: of two jobs in a queue the one with the higher priority goes first."""

from spinney.extensions.arguments import NoArguments
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.plugin import Plugin
from spinney.scheduler.framework.session import Session


class Priority(Plugin):
    """Orders jobs by priority."""

    name = "priority"
    arguments_type = NoArguments
    treats_alike = True

    def on_session_open(self, session: Session) -> None:
        session.add_job_order_key(_rank)


def _rank(job: PodGroupInfo) -> int:
    return -job.priority
