"""Parts of a trace replayed at once, each by a Python process of its own, which runs :func:`main`.

A process reads a part from its input and writes how far it is, and at last what happened, to its output. Whoever
started the processes ends them: a Ctrl-C, which a terminal sends to all of them, is for that one alone.
"""

import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Final

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
    """Replay parts in up to so many processes at once, the largest first; ``tell`` hears how far all are together.

    If one fails, or this is interrupted, those that run are ended and no other is begun.
    """
    told: SimpleQueue[tuple[int, Progress | History | Exception]] = SimpleQueue()
    running = _Running()
    latest: dict[int, Progress] = {}
    found: dict[int, History] = {}
    largest_first = sorted(range(len(parts)), key=lambda place: -len(parts[place].jobs))
    with ThreadPoolExecutor(min(processes, len(parts))) as pool, running:
        for place in largest_first:
            pool.submit(_run_process, place, (parts[place], config, options), told, running)
        while len(found) < len(parts):
            place, what = told.get()
            if isinstance(what, Exception):
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


class _Running:
    """The processes that run. Mutable: threads add theirs. When the block ends none is left, and none begins later."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._over = False

    def begin(self, command: Sequence[str]) -> subprocess.Popen[bytes] | None:
        """Start a process; ``None`` once the block has ended."""
        with self._lock:
            if self._over:
                return None
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603 - ourselves
            self._processes.append(process)
            return process

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._over = True
        for process in self._processes:
            process.kill()


_COMMAND: Final = (
    sys.executable,
    "-c",
    f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); from {__name__} import main; main()",
)


def _run_process(
    place: int, work: object, told: SimpleQueue[tuple[int, Progress | History | Exception]], running: _Running
) -> None:
    """Have a process replay a part, and pass on what it says."""
    try:
        process = running.begin(_COMMAND)
        if process is None:
            return
        with process:
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
    try:
        trace, config, options = pickle.load(sys.stdin.buffer)  # noqa: S301 - who started us wrote it
    except (EOFError, pickle.UnpicklingError):
        os._exit(1)  # who started us was gone before all was written
    percent = -1

    def write(what: Progress | History) -> None:
        try:
            pickle.dump(what, output)
            output.flush()
        except BrokenPipeError:
            os._exit(1)  # who started us is gone, and nobody else reads it

    def tell(progress: Progress) -> None:
        nonlocal percent
        now = 100 * progress.submitted // max(progress.jobs, 1)
        if now > percent:
            percent = now
            write(progress)

    write(PartReplay(trace, config, stopwatch=time.process_time, progress=tell, **options).run())
