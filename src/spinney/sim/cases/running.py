"""Running a case: its sessions in order, each on the cluster the one before left behind.

``single_session`` runs the actions once and compares what the session says. ``multi_round`` runs a number of rounds,
compares the cluster as a fresh session finds it, and then goes on for more rounds, comparing right after the actions
of each: an outcome that is right must also stay.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec

from spinney.sim.cases.comparing import differences, over_limits
from spinney.sim.cases.folding import fold
from spinney.sim.cases.format import Case
from spinney.sim.cases.outcome import SessionOutcome
from spinney.sim.cases.settling import settled


class CaseScheduler(Protocol):
    """A scheduler that can be put in front of a case's cluster."""

    def run(self, case: Case, actions: Sequence[str]) -> SessionOutcome:
        """Open a session on the cluster of ``case``, run ``actions`` in order, and say what came of it."""


class CaseReport(msgspec.Struct, frozen=True, kw_only=True):
    """How a case went. ``rounds`` are the raw outcomes after the actions of every session that ran some, in order."""

    case: Case
    differences: tuple[str, ...] = ()
    rounds: tuple[SessionOutcome, ...] = ()

    @property
    def passed(self) -> bool:
        """Tell whether nothing differs."""
        return not self.differences


def run_case(case: Case, scheduler: CaseScheduler) -> CaseReport:
    """Run a case."""
    rounds: list[SessionOutcome] = []
    found: list[str] = []
    try:
        found.extend(_run(settled(case), scheduler, rounds))
    except Exception as error:  # noqa: BLE001 - a case that breaks the scheduler has failed; the others still run
        found.append(f"after {len(rounds)} rounds the scheduler raised {type(error).__name__}: {error}")
    return CaseReport(case=case, differences=tuple(found), rounds=tuple(rounds))


def _run(case: Case, scheduler: CaseScheduler, rounds: list[SessionOutcome]) -> Iterator[str]:
    """Run every session, appending to ``rounds``; yield differences as they are found."""

    def session(state: Case) -> SessionOutcome:
        outcome = scheduler.run(state, case.actions)
        rounds.append(outcome)
        return outcome

    def labelled(lines: list[str]) -> Iterator[str]:
        return (f"round {len(rounds)}: {line}" for line in lines)

    limits = case.expected.limits_per_round
    if case.rounds.mode == "single_session":
        outcome = session(case)
        if not case.expected.must_terminate:
            yield from (*differences(case, outcome), *over_limits(limits, outcome))
        return
    state = case
    for _ in range(case.rounds.until_match):
        outcome = session(state)
        yield from labelled(over_limits(limits, outcome))
        state = fold(state, outcome)
    yield from labelled(differences(case, scheduler.run(state, ()), tried=False))
    for _ in range(case.rounds.after_match):
        outcome = session(state)
        yield from labelled([*differences(case, outcome), *over_limits(limits, outcome)])
        state = fold(state, outcome)
