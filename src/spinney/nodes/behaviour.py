"""How one pod is going to live: the cluster's latencies, drawn once, and what the pod's annotations say instead.

=============================  ========================================================================================
annotation                     meaning
=============================  ========================================================================================
``spinney.dev/start-after``    time from binding to the first container (a latency: ``2s``, ``1s..3s``, ``exp(2s)``)
``spinney.dev/init-takes``     time each init container takes
``spinney.dev/ready-after``    time from running to ready
``spinney.dev/stop-takes``     time from deletion to gone, at most the grace period
``spinney.dev/complete-after`` the containers exit by themselves after this time, with code 0
``spinney.dev/fail-after``     the containers exit after this time, with code 1
``spinney.dev/exit-code``      the code they exit with instead
``spinney.dev/never-start``    ``"true"``: the containers are never created
``spinney.dev/never-ready``    ``"true"``: the containers run and never become ready
=============================  ========================================================================================

After an exit the pod's restart policy decides, and the same times run again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from random import Random

from spinney.nodes.spec import InvalidLatency, Latency, PodTimes

PREFIX = "spinney.dev/"
_latency = lru_cache(maxsize=1024)(Latency.parse)  # pods of one kind say the same


class InvalidAnnotation(ValueError):
    """An annotation of this room that cannot be understood; the message names it."""


@dataclass(frozen=True, slots=True)
class PodTimings:
    """What one pod will do and how long each step takes it. ``None`` is never."""

    start: timedelta | None
    init: timedelta
    ready: timedelta | None
    stop: timedelta
    runs_for: timedelta | None
    exit_code: int
    restart_back_off: timedelta


def behaviour_of(annotations: Mapping[str, str], times: PodTimes, random: Random) -> PodTimings:
    """Draw the behaviour of a pod; raises :class:`InvalidAnnotation`."""
    ends = {name: _time(annotations, name, None, random) for name in ("complete-after", "fail-after")}
    runs_for = min((time for time in ends.values() if time is not None), default=None)
    fails = runs_for is not None and ends["fail-after"] == runs_for
    start = _time(annotations, "start-after", times.start, random)
    ready = _time(annotations, "ready-after", times.ready, random)
    return PodTimings(
        start=None if _flag(annotations, "never-start") else start,
        init=_time(annotations, "init-takes", times.init, random) or timedelta(),
        ready=None if _flag(annotations, "never-ready") else ready,
        stop=_time(annotations, "stop-takes", times.stop, random) or timedelta(),
        runs_for=runs_for,
        exit_code=_exit_code(annotations, default=1 if fails else 0),
        restart_back_off=_latency(times.restart_back_off).draw(random),
    )


def _time(annotations: Mapping[str, str], name: str, default: str | None, random: Random) -> timedelta | None:
    text = annotations.get(PREFIX + name, default)
    try:
        return None if text is None else _latency(text).draw(random)
    except InvalidLatency as fault:
        raise InvalidAnnotation(f"annotation {PREFIX}{name}: {fault}") from fault


def _flag(annotations: Mapping[str, str], name: str) -> bool:
    text = annotations.get(PREFIX + name, "false")
    if text not in {"true", "false"}:
        raise InvalidAnnotation(f'annotation {PREFIX}{name}: found {text!r}, expected "true" or "false"')
    return text == "true"


def _exit_code(annotations: Mapping[str, str], *, default: int) -> int:
    text = annotations.get(PREFIX + "exit-code")
    if text is None:
        return default
    if not text.isdecimal() or int(text) > 255:
        raise InvalidAnnotation(f"annotation {PREFIX}exit-code: found {text!r}, expected a number from 0 to 255")
    return int(text)
