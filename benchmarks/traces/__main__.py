"""``python -m benchmarks.traces DIRECTORY``: every figure on published traces, with the published ones beside it.

    python -m benchmarks.traces DIRECTORY [--only PART] [--seeds 10] [--write]

DIRECTORY holds the traces, which are not part of Spinney. Parts: openb (all pod lists there), queue (the whole queue at
once), racks (gangs that need a rack), philly (October: full, half, shared), waiting (reservation and backfill there,
with forecasts of starts; ``--begin``, ``--until``, ``--layout`` and ``--every`` choose), dlrm. ``--write`` puts the
tables into docs/performance.md.
"""

import argparse
from pathlib import Path

import structlog

from benchmarks.traces import dlrm, openb, philly, racks, waiting
from benchmarks.traces.tables import write
from spinney.sim.replay.formats.philly import Layout

LAYOUTS: list[Layout] = ["full", "half", "shared"]
PARTS = ("openb", "queue", "racks", "philly", "waiting", "dlrm")


def main() -> None:
    """Run the parts that are wanted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--only", action="append", choices=PARTS, help="may be repeated")
    parser.add_argument("--seeds", type=int, default=10, help="how many of the published seeds, from 42")
    parser.add_argument("--begin", default="2017-10-01", help="first day of waiting")
    parser.add_argument("--until", default="2017-11-01", help="day after the last of waiting")
    parser.add_argument("--every", type=float, default=0.0, help="seconds between cycles of waiting; 0: at each event")
    parser.add_argument("--layout", action="append", choices=LAYOUTS, help="of waiting; may be repeated")
    parser.add_argument("--write", action="store_true", help="write the tables to docs/performance.md")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    seeds = list(range(42, 42 + options.seeds))
    measures = {
        "openb": lambda: openb.measure(options.directory, seeds),
        "queue": lambda: openb.measure_queue(options.directory, seeds),
        "racks": lambda: racks.measure(options.directory, seeds),
        "philly": lambda: philly.measure(options.directory, LAYOUTS),
        "waiting": lambda: waiting.measure(
            options.directory, options.layout or LAYOUTS, options.begin, options.until, options.every
        ),
        "dlrm": lambda: dlrm.measure(options.directory, [("HN", 485), ("HN", 475), ("CN", 2100)]),
    }
    for part in options.only or PARTS:
        print(f"-- {part}")
        tables = list(measures[part]())
        if options.write:
            write(part, tables)


if __name__ == "__main__":
    main()
