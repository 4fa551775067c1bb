"""Scenarios that plugins propose to the search for victims."""

from collections.abc import Iterator, Sequence

import structlog

from spinney.scheduler.jobs import PodGroupInfo
from spinney.scheduler.session import Session
from spinney.scheduler.tasks import PodInfo

log = structlog.get_logger()


def generated_scenarios(session: Session, job: PodGroupInfo) -> Iterator[Sequence[PodInfo]]:
    """Return the scenarios of every generator in the order of registration; one that raises has nothing more to say."""
    for name, hook in session.hooks.scenario_generators.items():
        proposals: Iterator[Sequence[PodInfo]] | None = None
        while True:
            try:
                with session.timings.measure(hook.plugin, "scenario_generator"):
                    proposals = iter(hook.fn(session, job)) if proposals is None else proposals
                    victims = next(proposals, None)
            except Exception:
                log.exception("scenario generator failed", plugin=hook.plugin, generator=name, job=str(job.key))
                break
            if victims is None:
                break
            yield victims
