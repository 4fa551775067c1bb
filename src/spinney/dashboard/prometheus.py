"""Use of queues over days, from a Prometheus that scrapes the scheduler.

Prometheus knows nothing of viewers and their rights, so it is asked without their tokens, about queues only, and only
queues that a viewer may list are passed on.
"""

from collections.abc import Collection
from typing import Final

import aiohttp
import msgspec

from spinney.dashboard.history import Sample
from spinney.runtime.tasks import together

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
