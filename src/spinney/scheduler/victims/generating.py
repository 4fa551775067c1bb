"""Scenarios that plugins propose to the search for victims."""

from collections.abc import Iterator, Sequence
from typing import Final

from spinney.scheduler.framework import answers
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo

GENERATOR: Final = "scenario_generator"


def generated_scenarios(session: Session, job: PodGroupInfo) -> Iterator[Sequence[PodInfo]]:
    """Return the scenarios of every generator in the order of registration; one that raises has nothing more to say."""
    for name, hook in session.hooks.scenario_generators.items():
        proposals: Iterator[Sequence[PodInfo]] | None = None
        while True:
            try:
                with session.timings.measure(hook.plugin, GENERATOR):
                    proposals = iter(hook.fn(session, job)) if proposals is None else proposals
                    victims = answers.victims(next(proposals, None))
            except Exception as error:  # noqa: BLE001 - it has nothing more to say
                fields = {"generator": name, "job": str(job.key)}
                session.failures.add("scenario generator failed", hook.plugin, GENERATOR, hook.fn, error, **fields)
                break
            if victims is None:
                break
            yield victims
