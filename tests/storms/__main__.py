"""Storms side by side: ``python -m tests.storms --seeds 10000 --jobs 2``, or one again: ``--seed 17``.

A seed that violates something is told with the line that replays it, event for event.
"""

import argparse
import gc
import multiprocessing
import os
import sys
import time
from collections import Counter

from tests.logs import log_plainly
from tests.storms.story import Outcome, one_of_many, storm

_SEEDS_PER_PROCESS = 200  # then another takes over, with memory of its own
_TOLD_EVERY = 100


def _told(outcome: Outcome) -> None:
    print(f"\nseed {outcome.seed} violates:", *(f"  {each}" for each in outcome.violations), sep="\n")
    print(f"replay: {sys.executable} -m tests.storms --seed {outcome.seed}", flush=True)


def main() -> int:
    """Run the seeds asked for; return how the process ends."""
    parser = argparse.ArgumentParser(prog="python -m tests.storms", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many storms")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes side by side")
    parser.add_argument("--seed", type=int, help="only this one, with everything that happened in it")
    given = parser.parse_args()
    log_plainly()
    if given.seed is not None:
        outcome = storm(given.seed)
        print(*sorted(outcome.happened.items()), f"ended as {outcome.digest}", sep="\n")
        if outcome.violations:
            _told(outcome)
        return bool(outcome.violations)
    began, happened, done = time.monotonic(), Counter[str](), 0
    failed: list[int] = []
    gc.freeze()  # what is imported is shared by all processes, and never looked at again
    with multiprocessing.get_context("fork").Pool(given.jobs, maxtasksperchild=_SEEDS_PER_PROCESS) as pool:
        for outcome in pool.imap_unordered(one_of_many, range(given.first, given.first + given.seeds)):
            done += 1
            happened += outcome.happened
            if outcome.violations:
                failed.append(outcome.seed)
                _told(outcome)
            if done % _TOLD_EVERY == 0 or done == given.seeds:
                print(f"{done} storms, {len(failed)} failed, {time.monotonic() - began:.0f} s", flush=True)
    print(*(f"{count:>9} {what}" for what, count in happened.most_common()), sep="\n")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
