"""How far a replay is, on the standard error: the longest take minutes."""

import sys
from collections.abc import Callable

from spinney.sim.replay import Progress


def shown(name: str) -> Callable[[Progress], None]:
    """Return who is told how far a replay is; every twentieth of its jobs is shown."""
    told = 0

    def show(progress: Progress) -> None:
        nonlocal told
        now = 20 * progress.submitted // max(progress.jobs, 1)
        if now > told:
            told = now
            line = f"{name}: {5 * now} % of {progress.jobs:,} jobs submitted, {progress.waiting:,} wait"
            print(line, file=sys.stderr, flush=True)

    return show
