"""largestfirst: jobs that ask for more GPUs go first, then those with more CPU.

A full queue packs best from the largest down, as the small ones fill what the large ones leave. It also lets small jobs
wait for as long as large ones keep coming: for batches that are submitted as a whole, not for people who wait.
"""

from spinney.cluster.classes import RequestClass
from spinney.cluster.resources import CPU
from spinney.extensions.arguments import NoArguments
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.plugin import Plugin
from spinney.scheduler.framework.session import Session
from spinney.scheduler.plugins.packing.workload import gpus_of


class LargestFirst(Plugin):
    """Orders jobs by what their pods ask for together."""

    name = "largestfirst"
    arguments_type = NoArguments
    treats_alike = True

    def on_session_open(self, session: Session) -> None:
        memory = session.charges.sizes.smallest

        def size(request: RequestClass) -> tuple[float, int]:
            return gpus_of(request, memory), int(request.requests[CPU])

        def key(job: PodGroupInfo) -> tuple[float, int]:
            sizes = [(size(request), count) for request, count in job.asked.items()]
            return -sum(each[0] * count for each, count in sizes), -sum(each[1] * count for each, count in sizes)

        session.add_job_order_key(key)
