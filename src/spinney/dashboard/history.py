"""What was seen while the dashboard ran, in memory and within a bound: states of gangs, evictions, use of queues.

Use of queues over days comes from a Prometheus that scrapes the scheduler. Prometheus knows nothing of viewers and
their rights, so it is asked without their tokens, about queues only, and only queues that a viewer may list are passed
on.
"""

from collections import OrderedDict, deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import aiohttp
import msgspec

from spinney.api.events import Event
from spinney.api.struct import Struct
from spinney.cluster.pods import PodKey, PodRecord
from spinney.cluster.resources import GPU_NAME
from spinney.dashboard.rows import QueueRow
from spinney.explain.amounts import counted
from spinney.gangs.sources import bare
from spinney.gangs.tree import GangKey
from spinney.runtime.clock import Clock
from spinney.runtime.tasks import together
from spinney.sim.overview.history import moment_of

GANGS: Final = 2000
"""Gangs that are remembered, those that changed last."""
MOMENTS: Final = 60
"""Moments that are remembered of each."""
SAMPLES: Final = 720
"""Samples of each queue: two hours of one in ten seconds."""
SAMPLE_SECONDS: Final = 10.0
_DEPARTED: Final = 10_000
_TOGETHER: Final = timedelta(minutes=1)
"""Pods that are evicted within it, by the same one and with the same words, are told of in one moment."""
EVICTIONS: Final = ("Evict", "Preempted", "EvictionByEvictionAPI", "TaintManagerEviction")
"""Reasons of events that say a pod was taken from its node, and for whom."""


class Moment(Struct, frozen=True, kw_only=True):
    """Something that happened to a gang."""

    at: datetime
    what: str
    """A word: created, initialized, scheduled, running, pending, evicted, gone, ..."""
    text: str = ""
    by: str = ""
    """Who did it, where that is known."""


@dataclass
class EvictedTogether:
    """Pods of a gang about whose eviction the same was said. Mutable: events come one by one, and some twice."""

    at: datetime
    message: str
    by: str
    first: str
    pods: set[str]

    def may_hold(self, at: datetime, message: str, by: str) -> bool:
        """Tell whether an eviction is one of these."""
        return (message, by) == (self.message, self.by) and abs(at - self.at) <= _TOGETHER

    def add(self, pod: str, at: datetime) -> None:
        """Take a pod in."""
        if at < self.at:
            self.at, self.first = at, pod
        self.pods.add(pod)

    def moment(self) -> Moment:
        """Return it as one moment, at the time of the first."""
        others = len(self.pods) - 1
        who = f"{self.first} and {counted(others, 'more pod')}" if others else self.first
        return Moment(at=self.at, what="evicted", text=f"{who}: {self.message}", by=self.by)


class Sample(Struct, frozen=True, kw_only=True, array_like=True):
    """GPUs of a queue at one moment: held, asked for, and its fair share."""

    at: float
    allocated: float
    requested: float
    fair_share: float | None


class ShownHistory:
    """Moments by gang and samples by queue. Mutable: it forgets what is oldest."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._moments: OrderedDict[GangKey, deque[Moment | EvictedTogether]] = OrderedDict()
        self._uids: dict[GangKey, str] = {}
        """Of the gangs that are remembered, whose moments they are: another gang may come to have the name."""
        self._samples: dict[str, deque[Sample]] = {}
        self._departed: OrderedDict[PodKey, GangKey] = OrderedDict()

    def moments(self, key: GangKey) -> Sequence[Moment]:
        """Return what is remembered of a gang, oldest first."""
        kept = self._moments.get(key, ())
        return tuple(each.moment() if isinstance(each, EvictedTogether) else each for each in kept)

    def state(self, key: GangKey, state: str, at: datetime, *, uid: str = "") -> None:
        """Note the state of a gang, if it is another than before; what a gang before it had is forgotten."""
        if uid and self._uids.get(key, uid) != uid:
            del self._moments[key]
        known = [each for each in self._moments.get(key, ()) if isinstance(each, Moment)]
        if not known or known[-1].what != state:
            self._note(key, Moment(at=at, what=state))
        if uid:
            self._uids[key] = uid

    def pod_left(self, record: PodRecord, key: GangKey, *, there: bool) -> None:
        """Remember which gang a pod was in: events about its eviction may come after it."""
        if there or key.source == bare.SOURCE:
            return
        self._departed[record.key] = key
        while len(self._departed) > _DEPARTED:
            self._departed.popitem(last=False)

    def gang_of(self, pod: PodKey) -> GangKey | None:
        """Return the gang of a pod that is gone, as long as it is remembered."""
        return self._departed.get(pod)

    def evicted(self, key: GangKey, event: Event) -> None:
        """Note what an event says about the eviction of a pod of a gang."""
        at = moment_of(event) or self._clock.now()
        message, by = event.message or event.reason, event.reporting_component or event.source.component
        pod = event.involved_object.name
        for each in self._moments.get(key, ()):
            if isinstance(each, EvictedTogether) and each.may_hold(at, message, by):
                each.add(pod, at)
                return
        self._note(key, EvictedTogether(at=at, message=message, by=by, first=pod, pods={pod}))

    def sample_queues(self, rows: Iterable[QueueRow]) -> None:
        """Note what queues hold now."""
        moment = self._clock.now().timestamp()
        for row in rows:
            share = row.line.shares.get(GPU_NAME)
            if share is not None:
                samples = self._samples.setdefault(row.line.name, deque(maxlen=SAMPLES))
                fair = None if share.fair_share == "unlimited" else float(share.fair_share)
                samples.append(
                    Sample(
                        at=moment, allocated=float(share.allocated), requested=float(share.requested), fair_share=fair
                    )
                )
        for name in [name for name, kept in self._samples.items() if kept[-1].at < moment - SAMPLES * SAMPLE_SECONDS]:
            del self._samples[name]

    def samples(self, queue: str | None = None) -> dict[str, tuple[Sample, ...]]:
        """Return what is remembered of a queue, or of every one, oldest first."""
        return {name: tuple(kept) for name, kept in self._samples.items() if queue in (None, name)}

    def _note(self, key: GangKey, moment: Moment | EvictedTogether) -> None:
        self._moments.setdefault(key, deque(maxlen=MOMENTS)).append(moment)
        self._moments.move_to_end(key)
        while len(self._moments) > GANGS:
            oldest, _ = self._moments.popitem(last=False)
            self._uids.pop(oldest, None)


LONGEST_HOURS: Final = 24 * 14
_POINTS: Final = 400
_SECONDS: Final = 10.0
QUERIES: Final = {
    "use": 'max by (queue) (spinney_queue_use{resource="gpu"})',
    "pending": 'max by (queue) (spinney_queue_pending{resource="gpu"})',
    "fair": 'max by (queue) (spinney_queue_fair_share{resource="gpu"})',
}


class PrometheusUnreadable(Exception):
    """Prometheus gave no answer that could be used."""


class _Series(msgspec.Struct):
    metric: dict[str, str]
    values: list[tuple[float, str]]


class _Data(msgspec.Struct):
    result: list[_Series]


class _Answer(msgspec.Struct):
    data: _Data


class Prometheus:
    """A Prometheus, or what answers as one."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")

    async def queues(self, *, end: float, hours: float, known: Collection[str]) -> dict[str, tuple[Sample, ...]]:
        """Return samples of every known queue over the hours before ``end``; raises :class:`PrometheusUnreadable`."""
        limits = aiohttp.ClientTimeout(total=_SECONDS)
        span = {"start": end - hours * 3600, "end": end, "step": max(15.0, hours * 3600 / _POINTS)}
        async with aiohttp.ClientSession(timeout=limits, cookie_jar=aiohttp.DummyCookieJar()) as session:
            found = await together(*(self._range(session, query, span) for query in QUERIES.values()))
        use, pending, fair = found
        return {
            queue: tuple(
                Sample(
                    at=at,
                    allocated=held,
                    requested=held + pending.get(queue, {}).get(at, 0.0),
                    fair_share=fair.get(queue, {}).get(at),
                )
                for at, held in sorted(values.items())
            )
            for queue, values in use.items()
            if queue in known
        }

    async def _range(
        self, session: aiohttp.ClientSession, query: str, span: dict[str, float]
    ) -> dict[str, dict[float, float]]:
        """Return the values of a query by queue and time."""
        where = f"{self._url}/api/v1/query_range"
        parameters = {"query": query, **{name: f"{value:.3f}" for name, value in span.items()}}
        try:
            async with session.get(where, params=parameters, allow_redirects=False) as answer:
                body = await answer.read()
                if answer.status != 200:
                    raise PrometheusUnreadable(f"{where} answered {answer.status}")
                series = msgspec.json.decode(body, type=_Answer).data.result
        except (aiohttp.ClientError, TimeoutError, msgspec.DecodeError) as error:
            raise PrometheusUnreadable(f"{where}: {error or 'no answer in time'}") from error
        return {each.metric.get("queue", ""): {at: float(text) for at, text in each.values} for each in series}
