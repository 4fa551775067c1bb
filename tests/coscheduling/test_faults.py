"""Whatever a plugin gets wrong, at whichever extension point: other pods and groups get their nodes."""

import asyncio
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from structlog.testing import capture_logs

from spinney.api.core import NODE, Pod
from spinney.cluster.table import NodeTable
from spinney.coscheduling.framework import (
    SUCCESS,
    Action,
    EventHint,
    Filter,
    FrameworkRegistry,
    Handle,
    NodeFilter,
    Permit,
    PostFilter,
    PreBind,
    PreEnqueue,
    PreFilter,
    Reserve,
    Score,
    Status,
)
from spinney.coscheduling.framework.points import Bind, PostBind, PostFilterResult
from spinney.coscheduling.plugins import BUILT_IN
from spinney.runtime.virtual import VirtualTimeLoop
from tests.scheduler.faults import RAISING, Fault

from .bench import Bench, a_node, a_pod

FAULTY = "Faulty"
NODES, BAD, GOOD = 6, {"bad", "bad-gang-0", "bad-gang-1"}, {"good", "good-gang-0", "good-gang-1"}


def wrong(fault: Fault, proper: Any, args: tuple[Any, ...]) -> Any:
    """Return, or raise, what a function with the fault does where it is asked about a bad pod."""
    if not any(isinstance(arg, Pod) and arg.metadata.name.startswith("bad") for arg in args):
        return proper
    if fault in RAISING:
        raise RAISING[fault]()
    match fault:
        case Fault.WRONG_TYPE:
            return object()
        case Fault.NAN:
            return float("nan")
        case Fault.WRONG_LENGTH:
            return np.ones(3)
        case Fault.SLOW:
            loop = asyncio.get_running_loop()
            assert isinstance(loop, VirtualTimeLoop)
            loop.pass_time(3600)
            return proper
        case _:
            for arg in args:
                if isinstance(arg, NodeTable):
                    arg.alive[:] = False
                    arg.idle[:] = 0
                elif isinstance(arg, np.ndarray):
                    arg[:] = False
            return proper


class Faulty:
    """What all faulty plugins have in common."""

    name = FAULTY
    fault = Fault.RAISES

    def __init__(self, handle: Handle, arguments: Mapping[str, Any]) -> None:
        self.handle = handle

    def does(self, proper: Any, *args: Any) -> Any:
        """Answer properly, or not."""
        return wrong(self.fault, proper, args)


class AtPreEnqueue(Faulty, PreEnqueue):
    def pre_enqueue(self, pod: Pod) -> Status:
        return self.does(SUCCESS, pod)  # type: ignore[no-any-return]


class AtPreFilter(Faulty, PreFilter):
    def pre_filter(self, state: Any, pod: Pod) -> Status:
        return self.does(SUCCESS, pod)  # type: ignore[no-any-return]


class AtConcerns(Faulty, Filter):
    def concerns(self, state: Any, pod: Pod) -> bool:
        return self.does(False, pod)  # type: ignore[no-any-return]

    def filter(self, state: Any, pod: Pod, nodes: NodeTable) -> Any:
        return nodes.alive


class AtFilter(Faulty, Filter):
    def filter(self, state: Any, pod: Pod, nodes: NodeTable) -> Any:
        return self.does(nodes.alive, pod, nodes)


class AtNodeFilter(Faulty, NodeFilter):
    def filter_node(self, state: Any, pod: Pod, node: Any) -> Status:
        return self.does(SUCCESS, pod)  # type: ignore[no-any-return]


class AtPostFilter(Faulty, PostFilter, PreFilter):
    def pre_filter(self, state: Any, pod: Pod) -> Status:
        return SUCCESS

    def post_filter(self, state: Any, pod: Pod) -> PostFilterResult:
        return self.does(PostFilterResult(Status.unschedulable("no")), pod)  # type: ignore[no-any-return]


class AtScore(Faulty, Score):
    def score(self, state: Any, pod: Pod, nodes: NodeTable, feasible: Any) -> Any:
        return self.does(np.full(len(feasible), 1.5), pod, nodes, feasible)


class AtReserve(Faulty, Reserve):
    def reserve(self, state: Any, pod: Pod, node: str) -> Status:
        return self.does(SUCCESS, pod)  # type: ignore[no-any-return]

    def unreserve(self, state: Any, pod: Pod, node: str) -> None: ...


class AtUnreserve(Faulty, Reserve):
    def reserve(self, state: Any, pod: Pod, node: str) -> Status:
        return Status.unschedulable("no") if pod.metadata.name.startswith("bad") else SUCCESS

    def unreserve(self, state: Any, pod: Pod, node: str) -> None:
        self.does(None, pod)


class AtPermit(Faulty, Permit):
    def permit(self, state: Any, pod: Pod, node: str) -> tuple[Status, float]:
        return self.does((SUCCESS, 0.0), pod)  # type: ignore[no-any-return]


class AtPreBind(Faulty, PreBind):
    async def pre_bind(self, state: Any, pod: Pod, node: str) -> Status:
        return self.does(SUCCESS, pod)  # type: ignore[no-any-return]


class AtBind(Faulty, Bind):
    async def bind(self, state: Any, pod: Pod, node: str) -> Status:
        return self.does(Status(code=_SKIP), pod)  # type: ignore[no-any-return]


class AtPostBind(Faulty, PostBind):
    async def post_bind(self, state: Any, pod: Pod, node: str) -> None:
        self.does(None, pod)


class AtHint(Faulty, PreFilter):
    def pre_filter(self, state: Any, pod: Pod) -> Status:
        return Status.unschedulable("no") if pod.metadata.name.startswith("bad") else SUCCESS

    def events(self) -> tuple[EventHint, ...]:
        return (EventHint(NODE, Action.ANY, lambda pod, event: self.does(False, pod)),)


_SKIP = next(code for code in type(SUCCESS.code) if code.name == "SKIP")
CLOSED = (
    AtPreEnqueue,
    AtPreFilter,
    AtConcerns,
    AtFilter,
    AtNodeFilter,
    AtScore,
    AtReserve,
    AtPermit,
    AtPreBind,
    AtBind,
)
OPEN = (AtPostFilter, AtUnreserve, AtPostBind, AtHint)
LATER = (AtPreBind, AtBind, AtPostBind)
"""Points that may take their time: nobody waits for them."""
SILENT = (AtUnreserve, AtPostBind)
"""Points whose answer means nothing."""


@pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)
@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.name.lower())
@pytest.mark.parametrize("plugin", [*CLOSED, *OPEN], ids=lambda plugin: plugin.__name__)
async def test_a_fault_stays_with_whom_it_concerns(cluster_name: str, plugin: Any, fault: Fault) -> None:
    """Good pods are bound; a bad one never gets past a point where it could not be asked about, and says so."""
    counted: list[tuple[str, str]] = []
    slow: list[tuple[str, str]] = []
    registry = FrameworkRegistry(BUILT_IN)
    registry.register(FAULTY, type(plugin.__name__, (plugin,), {"fault": fault}))
    here = {"enabled": [{"name": FAULTY}]}
    first = {"enabled": [{"name": FAULTY}, {"name": "WrittenDown"}]}
    points = {"bind": first} if plugin is AtBind else {"postFilter": here} if plugin is AtPostFilter else {}
    with capture_logs():
        bench = Bench(registry=registry, plugins=points or {"multiPoint": here})
        bench.profile.faults.count = lambda *fault: counted.append(fault)
        bench.queue.faults.count = lambda *fault: counted.append(fault)
        bench.profile.faults.count_slow = bench.queue.faults.count_slow = lambda *where: slow.append(where)
        bench.queue.faults.monotonic = bench.runtime.clock.monotonic
        bench.put(*(a_node(f"n{number}") for number in range(NODES)))
        for kind in ("bad", "good"):
            bench.gang(f"{kind}-gang", 2)
            bench.put(a_pod(kind), a_pod(f"{kind}-large", cpu="100"))
        await bench.run()
        bench.put(a_node("n9"))
        await bench.run(seconds=30)

    assert set(bench.binds) >= GOOD
    if fault is Fault.SLOW:
        assert plugin in LATER or FAULTY in {name for name, _ in slow}
    elif fault is not Fault.CHANGES_ARGUMENT and (fault in RAISING or plugin not in SILENT):
        assert FAULTY in {name for name, _ in counted}
        if plugin in CLOSED:
            assert not BAD & set(bench.binds)
        if plugin in CLOSED and plugin is not AtPreEnqueue:  # its fault is told by the process
            assert FAULTY in str(bench.refused["bad"])
