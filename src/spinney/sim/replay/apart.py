"""Parts of a trace replayed at once, each by a Python process of its own, which runs :func:`main`.

A process reads a part from its input and writes how far it is, and at last what happened, to its output.
"""

import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

import structlog

from spinney.runtime.collection import settle_garbage_collector
from spinney.scheduler.config import SchedulerConfig
from spinney.sim.replay.history import History
from spinney.sim.replay.part import PartReplay, Progress
from spinney.sim.replay.trace import Trace


class PartFailed(RuntimeError):
    """A process that replayed a part of a trace ended before it was done; its own output says why."""


def replay_apart(
    parts: Sequence[Trace],
    config: SchedulerConfig,
    options: Mapping[str, float],
    processes: int,
    tell: Callable[[Progress], None],
) -> list[History]:
    """Replay parts in up to so many processes at once, the largest first; ``tell`` hears how far all are together."""
    told: SimpleQueue[tuple[int, Progress | History | Exception]] = SimpleQueue()
    latest: dict[int, Progress] = {}
    found: dict[int, History] = {}
    largest_first = sorted(range(len(parts)), key=lambda place: -len(parts[place].jobs))
    with ThreadPoolExecutor(processes) as pool:
        for place in largest_first:
            pool.submit(_run_process, place, (parts[place], config, options), told)
        while len(found) < len(parts):
            place, what = told.get()
            if isinstance(what, Exception):
                pool.shutdown(cancel_futures=True)
                raise what
            if isinstance(what, History):
                found[place] = what
                continue
            latest[place] = what
            tell(
                Progress(
                    at=max(each.at for each in latest.values()),
                    submitted=sum(each.submitted for each in latest.values()),
                    jobs=sum(len(part.jobs) for part in parts),
                    waiting=sum(each.waiting for each in latest.values()),
                )
            )
    return [found[place] for place in range(len(parts))]


def _run_process(place: int, work: object, told: SimpleQueue[tuple[int, Progress | History | Exception]]) -> None:
    """Have a process replay a part, and pass on what it says."""
    command = [sys.executable, "-c", f"from {__name__} import main; main()"]
    try:
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:  # noqa: S603 - ourselves
            assert process.stdin is not None, "it was asked for"
            assert process.stdout is not None, "it was asked for"
            pickle.dump(work, process.stdin)
            process.stdin.close()
            while True:
                what = pickle.load(process.stdout)  # noqa: S301 - our own process wrote it
                told.put((place, what))
                if isinstance(what, History):
                    return
    except Exception as error:  # noqa: BLE001 - the process that waits for the part has to get it, whatever it is
        told.put((place, PartFailed(f"the process that replayed part {place} of the trace failed: {error!r}")))


def main() -> None:
    """Replay the part that is read from the input."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(40),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    settle_garbage_collector()
    output = sys.stdout.buffer
    sys.stdout = sys.stderr  # whatever a plugin prints is not for who started us
    trace, config, options = pickle.load(sys.stdin.buffer)  # noqa: S301 - who started us wrote it
    percent = -1

    def tell(progress: Progress) -> None:
        nonlocal percent
        now = 100 * progress.submitted // max(progress.jobs, 1)
        if now > percent:
            percent = now
            pickle.dump(progress, output)
            output.flush()

    history = PartReplay(trace, config, stopwatch=time.process_time, progress=tell, **options).run()
    pickle.dump(history, output)
    output.flush()
