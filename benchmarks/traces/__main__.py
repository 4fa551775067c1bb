"""``python -m benchmarks.traces DIRECTORY``: every figure on published traces, with the published ones beside it.

    python -m benchmarks.traces DIRECTORY [--only PART] [--seeds 10] [--write]

DIRECTORY holds the traces, which are not part of Spinney. Parts: openb (all pod lists there), proportions (stand-ins
for the published lists that are not there), queue (the whole queue at once), racks (gangs that need a rack), switches
(gangs on a real tree of racks, beside an exact solver), philly (its two months with the default configuration), waiting
(reservation and backfill there, with forecasts of starts; ``--layout``, ``--begin``, ``--until`` and ``--every`` choose
one experiment, ``--run`` some of its rows), dlrm. ``--write`` puts the tables into docs/performance/traces.md, each
into its place.
"""

import argparse
from pathlib import Path

import structlog

from benchmarks.traces import dlrm, openb, philly, proportions, racks, switches, waiting
from benchmarks.traces.tables import write

PARTS = ("openb", "proportions", "queue", "racks", "switches", "philly", "waiting", "dlrm")


def main() -> None:
    """Run the parts that are wanted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--only", action="append", choices=PARTS, help="may be repeated")
    parser.add_argument("--seeds", type=int, default=10, help="how many of the published seeds, from 42")
    parser.add_argument("--layout", choices=["full", "half", "shared"], help="of waiting; all experiments if left out")
    parser.add_argument("--begin", default="2017-10-01", help="first day of waiting, with --layout")
    parser.add_argument("--until", default="2017-11-01", help="day after the last of waiting, with --layout")
    parser.add_argument("--every", type=float, default=0.0, help="seconds between cycles, with --layout; 0: each event")
    names = [run.name for run in waiting.RUNS_OF["shared"]]
    parser.add_argument("--run", action="append", choices=names, default=[], help="of waiting; may be repeated")
    parser.add_argument("--write", action="store_true", help="write the tables to docs/performance/traces.md")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    seeds = list(range(42, 42 + options.seeds))
    chosen = waiting.Experiment(options.layout, options.begin, options.until, options.every)
    experiments = [chosen] if options.layout else waiting.EXPERIMENTS
    measures = {
        "openb": lambda: openb.measure(options.directory, seeds),
        "proportions": lambda: proportions.measure(options.directory, seeds),
        "queue": lambda: openb.measure_queue(options.directory, seeds),
        "racks": lambda: racks.measure(options.directory, seeds),
        "switches": lambda: switches.measure(options.directory, seeds),
        "philly": lambda: philly.measure(options.directory),
        "waiting": lambda: waiting.measure(options.directory, experiments, options.run),
        "dlrm": lambda: dlrm.measure(options.directory, [("HN", 485), ("HN", 475), ("CN", 2100)]),
    }
    for part in options.only or PARTS:
        print(f"-- {part}")
        for table in measures[part]():
            if options.write:
                write(table)


if __name__ == "__main__":
    main()
