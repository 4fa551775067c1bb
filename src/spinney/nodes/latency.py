"""How long things take on a simulated node: a fixed time, or one drawn from a distribution.

In YAML a latency is text: ``2s`` is always two seconds, ``1s..3s`` is uniform between the two, and ``exp(2s)`` is
exponential with that mean.
"""

import re
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from random import Random

from spinney.api.durations import InvalidDuration, parse_duration

_EXPONENTIAL = re.compile(r"exp\((?P<mean>[^()]+)\)")


class InvalidLatency(ValueError):
    """A text that is not a latency."""

    def __init__(self, text: str) -> None:
        super().__init__(f"{text!r} is not a latency; expected 2s, a range such as 1s..3s, or exp(2s) with a mean")


class Distribution(Enum):
    """How drawn values lie between or around the two numbers of a latency."""

    UNIFORM = "uniform"
    EXPONENTIAL = "exponential"


@dataclass(frozen=True, slots=True)
class Latency:
    """A distribution of seconds: uniform from ``low`` to ``high``, or exponential with mean ``high``."""

    low: float
    high: float
    shape: Distribution = Distribution.UNIFORM

    @classmethod
    def parse(cls, text: str) -> "Latency":
        """Return the latency that ``text`` denotes; raises :class:`InvalidLatency`."""
        try:
            if match := _EXPONENTIAL.fullmatch(text.strip()):
                return cls(0.0, _seconds(match["mean"]), Distribution.EXPONENTIAL)
            low, dots, high = text.partition("..")
            latency = cls(_seconds(low), _seconds(high if dots else low))
        except InvalidDuration as fault:
            raise InvalidLatency(text) from fault
        if latency.low < 0 or latency.high < latency.low:
            raise InvalidLatency(text)
        return latency

    def draw(self, random: Random) -> timedelta:
        """Return one value. A fixed latency draws nothing, so that adding one changes no other draw of a seed."""
        if self.shape is Distribution.EXPONENTIAL:
            return timedelta(seconds=random.expovariate(1 / self.high) if self.high else 0.0)
        return timedelta(seconds=self.low if self.low == self.high else random.uniform(self.low, self.high))


def _seconds(text: str) -> float:
    return parse_duration(text.strip()).total_seconds()
