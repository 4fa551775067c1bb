"""How fast single pods of many kinds are decided: all of openb's default list in one session.

    python -m benchmarks.scheduler.traces DIRECTORY [--seed 42] [--profile]

DIRECTORY holds the published trace. Fractions of GPUs, whole GPUs and pods without any, about 150 request classes, each
pod a job of its own; default plugins, no victims. 20,000 decisions per second are wanted.
"""

import argparse
import time
from pathlib import Path

import structlog

from benchmarks.scheduler.filling import profiled
from spinney.runtime.collection import settle_garbage_collector
from spinney.scheduler.config import SchedulerConfig
from spinney.sim.replay import Job, Replay
from spinney.sim.replay.formats.openb import read_openb
from spinney.sim.replay.part import suited

WANTED = 20_000


def main() -> None:
    """Decide about every pod once."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--profile", action="store_true", help="say where the time goes")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    settle_garbage_collector()
    trace = read_openb(next(options.directory.glob("openb_pods_default.csv*")), None, options.seed)
    trace = trace.with_jobs(tuple(Job(job.name, 0.0, job.ask) for job in trace.jobs))
    replay = Replay(trace, suited(SchedulerConfig(), trace), stopwatch=time.process_time)
    with profiled(wanted=options.profile):
        history = replay.run()
    busy = sum(history.cycle_seconds)
    print(
        f"{len(trace.jobs):,} pods decided, {history.decided:,} placed in {busy:.2f} s of processor time: "
        f"{len(trace.jobs) / busy:,.0f} per second, {WANTED:,} are wanted; {history.seconds:.2f} s for the replay"
    )


if __name__ == "__main__":
    main()
