"""Storms: everything that can go wrong between an operator and its API server, from a seed.

One call in ten is answered with 409, 429 or 5xx, or is lost on the way there or back; watches are refused, lag and
break; and the operator is killed at a random request, before or after the server acted on it, at least once while it
creates, scales, updates and deletes each. :func:`history` takes two workloads through these in such weather, one after
the other or, in haste, before what went before is done, and returns what is there afterwards, with whatever differs
between any two runs (uids, times, generated names) taken out.
"""

import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec.structs import replace

from spinney.api.autoscaling import HORIZONTAL_POD_AUTOSCALER
from spinney.api.core import NAMESPACE, NODE, POD, SECRET, SERVICE, SERVICE_ACCOUNT
from spinney.api.grove import (
    EXPLICIT,
    POD_CLIQUE,
    POD_CLIQUE_SCALING_GROUP,
    POD_CLIQUE_SET,
    AutoScalingConfig,
    PodCliqueSet,
)
from spinney.api.podgang import POD_GANG
from spinney.api.rbac import ROLE, ROLE_BINDING
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.backends import additions, every_backend
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.kube.errors import ConnectionFailed, ConnectionRefused
from spinney.kube.transport import Request, Response, StreamingResponse
from spinney.operator.configuration import check
from spinney.operator.operator import Operator, Settings
from spinney.runtime import Runtime
from spinney.runtime.tasks import end
from spinney.server import ApiServer
from spinney.sim.embedded.transport import Answering, InProcessStream, InProcessTransport
from spinney.testing.builders import a_clique, a_pod_clique_set, a_pod_spec, a_scaling_group
from tests.operator.harness import Witness, World, follow, place_pods

FAULTS = 0.1
"""How many calls go wrong."""

PHASES = {"create": 150, "scale": 80, "update": 150, "delete": 10}
"""What happens to the workloads, and within how many requests the operator is killed for the first time in each."""

LIFE = 300
"""Within how many requests it is killed again."""

KINDS = (
    POD_CLIQUE_SET,
    POD_CLIQUE,
    POD_CLIQUE_SCALING_GROUP,
    POD_GANG,
    POD,
    SERVICE,
    SERVICE_ACCOUNT,
    ROLE,
    ROLE_BINDING,
    SECRET,
    HORIZONTAL_POD_AUTOSCALER,
)

_REASONS = {
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


@dataclass
class Weather:
    """How bad it is, shared by all lives of an operator. Mutable."""

    chance: random.Random
    rate: float = 0.0
    phase: str = ""
    kills: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    breaks: int = 0

    def strikes(self) -> bool:
        """Say whether this call goes wrong."""
        self.calls += self.rate > 0
        return self.chance.random() < self.rate


class StormyTransport:
    """The line of one life of an operator, which may end at a request. Mutable."""

    def __init__(self, server: Answering, weather: Weather) -> None:
        self._behind = InProcessTransport(server)
        self._weather = weather
        self._left: int | None = None
        self.dead = asyncio.Event()

    async def request(self, request: Request) -> Response:
        """Send one request, perhaps in vain, perhaps the last."""
        weather = self._weather
        await asyncio.sleep(weather.chance.random() * 0.02)
        self._live()
        struck = weather.strikes()
        before = weather.chance.random() < 0.5
        if struck and before:
            return self._refused(request)
        # What the server has begun it finishes, also for a client that is gone.
        serving = asyncio.ensure_future(self._behind.request(replace(request, timeout=None)))
        response = await asyncio.shield(serving)
        await asyncio.sleep(weather.chance.random() * 0.02)
        self._live()
        if struck:
            weather.faults["answer lost"] += 1
            if weather.chance.random() < 0.5:
                return _status(503, "the answer was lost behind a proxy")
            raise ConnectionFailed(f"{request}: the answer was lost")
        return response

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[StreamingResponse]:
        """Open a watch that may be refused, lags, and may break at any event."""
        self._live()
        if self._weather.strikes():
            self._weather.faults["watch refused"] += 1
            if self._weather.chance.random() < 0.3:
                raise ConnectionFailed(f"{request}: lost on the way")
            code = self._weather.chance.choice([410, 429, 500, 503, 504])
            refused = _status(code, f"{request}: refused")
            yield InProcessStream(refused.status, refused.headers, refused.body)
            return
        async with self._behind.stream(request) as stream:
            yield _LaggingStream(stream, self, self._weather)

    async def close(self) -> None:
        """End with the process."""

    def _refused(self, request: Request) -> Response:
        codes = [429, 500, 503, 504] if request.method == "GET" else [409, 429, 500, 503, 504]
        if self._weather.chance.random() < 0.3:
            self._weather.faults["request lost"] += 1
            raise ConnectionFailed(f"{request}: lost on the way")
        code = self._weather.chance.choice(codes)
        self._weather.faults[str(code)] += 1
        return _status(code, f"{request}: refused")

    def die_after(self, requests: int) -> None:
        """Let this life end at the given request from now."""
        self._left = requests

    def _live(self) -> None:
        """Count down to the end of this life."""
        if self._left is not None and not self.dead.is_set():
            self._left -= 1
            if self._left <= 0:
                self.dead.set()
                self._weather.kills[self._weather.phase if self._weather.rate else "calm"] += 1
        if self.dead.is_set():
            raise ConnectionRefused("this process was killed")


class _LaggingStream:
    """A watch whose events come late, so that what a cache shows is old, and that may break between any two."""

    def __init__(self, stream: InProcessStream, line: StormyTransport, weather: Weather) -> None:
        self.status = stream.status
        self.headers = stream.headers
        self._stream = stream
        self._line = line
        self._weather = weather
        self._lag = weather.chance.choice([0.0, 0.05, 0.5]) if weather.rate else 0.0

    async def body(self) -> bytes:
        return await self._stream.body()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            if self._lag and self._weather.rate:
                await asyncio.sleep(self._lag * self._weather.chance.random())
            if self._line.dead.is_set():
                raise ConnectionFailed("this process was killed")
            if self._weather.chance.random() < self._weather.rate / 2:
                self._weather.breaks += 1
                raise ConnectionFailed("the watch broke")
            yield chunk


def _status(code: int, message: str) -> Response:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": _REASONS[code]}
    return Response(code, {"content-type": "application/json"}, json.dumps(body | {"message": message}).encode())


@dataclass
class Lives:
    """An operator that is started again whenever it died. Mutable."""

    server: ApiServer
    runtime: Runtime
    settings: Settings
    weather: Weather
    storm: bool = False
    repairs: int = 0
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    line: StormyTransport | None = None

    async def run(self) -> None:
        """Live one life after the other until asked to stop."""
        while not self.stop.is_set():
            line = self.line = StormyTransport(self.server, self.weather)
            if self.storm:
                self._doom()
            operator = Operator(Client(line, self.runtime), self.settings)
            running = asyncio.create_task(operator.run())
            ends = [asyncio.create_task(each.wait()) for each in (line.dead, self.stop)]
            await asyncio.wait([running, *ends], return_when=asyncio.FIRST_COMPLETED)
            line.dead.set()
            await end(running, *ends)
            self.repairs += sum(controller.repairs for controller in operator.controllers)
            if not self.stop.is_set():
                await asyncio.sleep(self.weather.chance.random() * 5)

    async def through_a_storm(self, phase: str, act: Callable[[], Awaitable[Any]], seconds: float) -> None:
        """Do something while everything goes wrong and the operator is killed again and again."""
        self.weather.rate, self.weather.phase, self.storm = FAULTS, phase, True
        self._doom()
        await act()
        await asyncio.sleep(seconds)
        self.weather.rate, self.storm = 0.0, False

    def _doom(self) -> None:
        weather = self.weather
        span = LIFE if weather.kills[weather.phase] else PHASES[weather.phase]
        if self.line is not None:
            self.line.die_after(weather.chance.randrange(1, span))


def workload(name: str, replicas: int, scheduler: str, *, image: str = "registry.example/worker:1") -> PodCliqueSet:
    """Return a set that makes one of everything: start-up order, autoscalers, base and scaled gangs."""
    spec = a_pod_spec(scheduler=scheduler, image=image)
    cliques = [
        a_clique("leader", 2, 1, pod_spec=spec, autoscaling=AutoScalingConfig(min_replicas=2, max_replicas=5)),
        a_clique("worker", 2, 1, pod_spec=spec, after=["leader"]),
        a_clique("decode", 1, pod_spec=spec, after=["worker"]),
    ]
    groups = [a_scaling_group("sg", ["worker", "decode"], 2, 1)]
    return a_pod_clique_set(name, cliques, groups, replicas=replicas, startup=EXPLICIT)


@dataclass(frozen=True)
class Outcome:
    """What a history ended in, and what was noticed on the way."""

    state: Mapping[str, JSON]
    violations: tuple[str, ...]
    repairs: int
    weather: Weather


async def history(seed: int, scheduler: str, *, stormy: bool, hasty: bool = False) -> Outcome:
    """Create, scale, update and delete, in a storm or in calm weather; return what is left.

    With ``hasty``, each begins while the one before is still under way.
    """
    runtime = Runtime.virtual(seed)
    server = ApiServer(runtime)
    client = Client(InProcessTransport(server), runtime)
    profiles = check(f"scheduler: {{profiles: [{{name: {scheduler}, default: true}}]}}", every_backend()).profiles
    async with server.running():
        await client.create(NAMESPACE, {"metadata": {"name": "test"}})
        await client.create(NODE, {"metadata": {"name": "node-1"}})
        await install_crds(client)
        lives = Lives(server, runtime, Settings(profiles=profiles), Weather(random.Random(seed)))
        world = World(client, runtime, Operator(client, lives.settings), Witness(), server)
        tasks = [asyncio.create_task(each) for each in (lives.run(), follow(world), place_pods(world))]
        await asyncio.sleep(1)

        async def phase(act: Callable[[], Awaitable[Any]], *, calm: float) -> None:
            hurried = hasty and act is not delete
            seconds = lives.weather.chance.random() * 3 if hurried else 20
            if stormy:
                await lives.through_a_storm(act.__name__, act, seconds)
            else:
                await act()
                await asyncio.sleep(seconds)
            await asyncio.sleep(0 if hurried else calm)

        async def create() -> None:
            await world.apply(workload("model", 2, scheduler))
            await world.apply(workload("fleeting", 1, scheduler))

        async def scale() -> None:
            await _resize(client, POD_CLIQUE_SCALING_GROUP, "model-0-sg", 4)
            await asyncio.sleep(lives.weather.chance.random() * 5)
            await _resize(client, POD_CLIQUE_SET, "model", 3)
            await _resize(client, POD_CLIQUE, "model-1-leader", 4)
            await asyncio.sleep(lives.weather.chance.random() * 5)
            await _resize(client, POD_CLIQUE_SCALING_GROUP, "model-0-sg", 3)

        async def update() -> None:
            world.witness.updating = not hasty  # else there is no telling what an update takes away
            await world.apply(workload("model", 3, scheduler, image="registry.example/worker:2"))

        async def delete() -> None:
            world.witness.updating = False
            await client.delete(POD_CLIQUE_SET, "fleeting", "test")
            await _resize(client, POD_CLIQUE_SET, "model", 1)

        await phase(create, calm=0)
        await phase(scale, calm=400)
        await phase(update, calm=400)
        await phase(delete, calm=400)
        state = await snapshot(client, (*KINDS, *_written_by(scheduler)))
        lives.stop.set()
        await tasks[0]
        for task in tasks[1:]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return Outcome(state, tuple(world.witness.violations), lives.repairs, lives.weather)


def _written_by(scheduler: str) -> tuple[Resource, ...]:
    groups = Resource("scheduling.x-k8s.io", "v1alpha1", "PodGroup", "podgroups", namespaced=True)
    return (groups,) if scheduler == "coscheduling" else ()


async def _resize(client: Client, resource: Resource, name: str, replicas: int) -> None:
    """Set the replicas of an object, once the operator has made it."""
    async for event in client.watch(resource, "test"):
        if event.object["metadata"]["name"] == name:
            break
    await client.patch(resource, name, {"spec": {"replicas": replicas}}, "test")


# -- what two histories have in common ---------------------------------------------------------------------------------

_DIFFERS = frozenset(
    {
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "lastTransitionTime",
        "updateStartedAt",
        "updateEndedAt",
        "managedFields",
        "generation",
        "observedGeneration",
        "readyPodsSelectedToUpdate",
        "readyReplicaIndicesSelectedToUpdate",
        "lastUpdateTime",
        "startTime",
        "grove.io/applied-digest",  # of a manifest that names its owner's uid
    }
)
_CHOSEN = re.compile(r'(ready for structure |"grove.io/podgang-incarnation":"|kube-api-access-)[a-z0-9]+')
"""What follows from uids or chance: the name of a gang's life, the hash that has it in it, the token's volume."""


async def snapshot(client: Client, kinds: tuple[Resource, ...]) -> Mapping[str, JSON]:
    """Return every object of the namespace by kind and name, with generated names replaced by what they stand for."""
    objects: list[tuple[str, JSON]] = []
    named: dict[str, str] = {}
    for resource in kinds:
        for each in (await client.list(resource, "test")).items:
            metadata = each["metadata"]
            name = each["spec"]["hostname"] if resource == POD else metadata["name"]
            objects.append((f"{resource.kind}/{name}", each))
            named[metadata["uid"]] = f"<{resource.kind} {name}>"
            named[metadata["uid"][:8]] = f"<{resource.kind} {name}>"
            if resource == POD:
                named[metadata["name"]] = f"<pod {name}>"
    return {name: _settled(each, named) for name, each in objects}


def _settled(found: JSON, named: Mapping[str, str]) -> JSON:
    text = msgspec.json.encode(_without_history(found)).decode()
    for generated in sorted(named, key=len, reverse=True):
        text = text.replace(generated, named[generated])
    settled: JSON = msgspec.json.decode(_CHOSEN.sub(r"\1*", text))
    status, metadata = found.get("status") or {}, found["metadata"]
    if "observedGeneration" in status:
        settled["status"]["observed"] = status["observedGeneration"] == metadata["generation"]
    _sort(settled)
    return settled


def _without_history(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_history(each) for key, each in value.items() if key not in _DIFFERS}
    return [_without_history(each) for each in value] if isinstance(value, list) else value


def _sort(found: JSON) -> None:
    """Put in order what has none: the record of a gang's PodCliques, its references, conditions."""
    annotations: dict[str, str] = found["metadata"].get("annotations") or {}
    if record := annotations.get(additions.INCARNATION_CLIQUES):
        recycling, _, cliques = record.rpartition("|")
        annotations[additions.INCARNATION_CLIQUES] = f"{recycling}|{','.join(sorted(cliques.split(',')))}"
    for group in found.get("spec", {}).get("podgroups", ()):
        group["podReferences"] = sorted(group.get("podReferences", ()), key=str)
    status = found.get("status") or {}
    if isinstance(status.get("conditions"), list):
        status["conditions"] = sorted(status["conditions"], key=lambda each: str(each["type"]))
