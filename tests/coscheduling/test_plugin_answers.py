"""What is in an answer counts as well as its type; what a plugin is given cannot be written to."""

from collections.abc import Callable, Coroutine, Mapping
from functools import partialmethod
from typing import Any

import numpy as np
import pytest
from structlog.testing import capture_logs

from spinney.api.core import Pod
from spinney.api.documents import InvalidConfiguration
from spinney.cluster.filters import Refusal
from spinney.cluster.table import NodeTable
from spinney.coscheduling.framework import (
    SUCCESS,
    Code,
    CycleState,
    Filter,
    FrameworkRegistry,
    Handle,
    Permit,
    PostBind,
    PostFilter,
    PostFilterResult,
    PreBind,
    PreFilter,
    QueueSort,
    Reserve,
    Status,
)
from spinney.coscheduling.plugins import BUILT_IN

from .bench import Bench, a_node, a_pod

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)


class Odd:
    """What all plugins of these tests have in common: they answer oddly about bad pods."""

    name = "Odd"
    answer: Any = None

    def __init__(self, handle: Handle, arguments: Mapping[str, Any]) -> None:
        self.handle = handle

    def about(self, pod: Pod, proper: Any = SUCCESS) -> Any:
        """Answer."""
        return self.answer if pod.metadata.name.startswith("bad") else proper


class OddPreFilter(Odd, PreFilter):
    def pre_filter(self, state: CycleState, pod: Pod) -> Status:
        return self.about(pod)  # type: ignore[no-any-return]


class OddReserve(Odd, Reserve):
    def reserve(self, state: CycleState, pod: Pod, node: str) -> Status:
        return self.about(pod)  # type: ignore[no-any-return]

    def unreserve(self, state: CycleState, pod: Pod, node: str) -> None: ...


class OddPreBind(Odd, PreBind):
    async def pre_bind(self, state: CycleState, pod: Pod, node: str) -> Status:
        return self.about(pod)  # type: ignore[no-any-return]


class OddPermit(Odd, Permit):
    def permit(self, state: CycleState, pod: Pod, node: str) -> tuple[Status, float]:
        return self.about(pod), 0.0


class OddFilter(Odd, Filter):
    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Any:
        found = self.about(pod, nodes.alive)
        return found(nodes) if callable(found) else found


class OddPostFilter(Odd, PostFilter, Filter):
    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Any:
        return nodes.alive & (not pod.metadata.name.startswith("bad"))

    def post_filter(self, state: CycleState, pod: Pod) -> PostFilterResult:
        return self.about(pod)  # type: ignore[no-any-return]


def a_bench_with(plugin: Any, answer: Any = None) -> Bench:
    """Return a scheduler with a plugin that gives an answer."""
    registry = FrameworkRegistry(BUILT_IN)
    registry.register("Odd", type("Odd", (plugin,), {"answer": staticmethod(answer) if callable(answer) else answer}))
    here = {"enabled": [{"name": "Odd"}]}
    points = {"postFilter": here, "filter": here} if issubclass(plugin, PostFilter) else {"multiPoint": here}
    return Bench(registry=registry, plugins=points)


async def refused_with(plugin: Any, answer: Any) -> str:
    """Return what a bad pod is told; a good one is bound."""
    with capture_logs():
        bench = a_bench_with(plugin, answer)
        bench.put(a_node("n0"), a_node("n1"), a_pod("bad"), a_pod("good"))
        await bench.run()
    assert list(bench.binds) == ["good"]
    return str(bench.refused["bad"])


@pytest.mark.parametrize("plugin", [OddPreFilter, OddReserve, OddPermit, OddPreBind])
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Status.unschedulable(None), "a Status whose reasons are (None,) (tuple), expected texts"),  # type: ignore[arg-type]
        (Status(Code.UNSCHEDULABLE, "no"), "a Status whose reasons are 'no' (str), expected texts"),  # type: ignore[arg-type]
        (Status("no"), "a Status whose code is 'no' (str), expected a Code"),  # type: ignore[arg-type]
        (Status.unresolvable("no", waits=None), "a Status whose waits is None, expected a text"),  # type: ignore[arg-type]
    ],
)
async def test_a_status_that_cannot_be_told_fails(cluster_name: str, plugin: Any, answer: Status, said: str) -> None:
    """The pod names the plugin; it said nothing at all before, and rested for ever."""
    told = await refused_with(plugin, answer)
    assert "plugin Odd failed at" in told
    assert said in told


async def test_a_reason_that_no_encoding_has_is_told_with_escapes(cluster_name: str) -> None:
    """A pod's status can hold it."""
    assert r"full: caf\\udce9" in await refused_with(OddPreFilter, Status.unschedulable("full: caf\udce9"))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda nodes: nodes.alive[:1], "truth values of shape (1,), expected one truth value per row"),
        (lambda nodes: np.True_, "expected one truth value per row of the node table"),
        (lambda nodes: nodes.alive.astype(int), "returned ndarray, expected one truth value per row"),
        (lambda nodes: nodes.names.clear(), "AttributeError: 'LookedAt' object has no attribute 'clear'"),
        (lambda nodes: nodes.nodes[0].metadata.labels.clear(), "TypeError: what the cluster says cannot be written to"),
    ],
)
async def test_a_mask_has_a_value_for_each_node(cluster_name: str, answer: Any, said: str) -> None:
    """One value for all nodes let the pod go anywhere; names that were cleared left no node for anybody."""
    assert said in await refused_with(OddFilter, answer)


class OddRefusals(OddFilter):
    def refusals(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Any:
        reason = self.about(pod, "")
        return (Refusal.evictable("Odd", reason, nodes.alive.copy()),) if reason != "" else ()


async def test_the_reason_of_a_refusal_can_be_told(cluster_name: str) -> None:
    """One that is no text is a fault; one that no encoding has is told with escapes."""

    async def told(reason: object) -> str:
        with capture_logs():
            bench = a_bench_with(OddRefusals, reason)
            bench.put(a_node("n0"), a_pod("bad"))
            await bench.run()
        found = bench.refused["bad"].found
        assert found is not None
        (refusal,) = found.refusals
        return refusal.reason

    assert await told("full: caf\udce9") == r"full: caf\udce9"
    assert "plugin Odd failed at filter: returned a Refusal whose reason is None, expected a text" in await told(None)


class LettingIn(Odd, Permit):
    def permit(self, state: CycleState, pod: Pod, node: str) -> tuple[Status, float]:
        return SUCCESS, self.answer


@pytest.mark.parametrize("seconds", [np.float32(1.5), np.int64(1), np.float64(1.5), 1])
async def test_numbers_of_numpy_are_seconds(cluster_name: str, seconds: Any) -> None:
    """A plugin that counts with numpy need not convert them."""
    bench = a_bench_with(LettingIn, seconds)
    bench.put(a_node("n0"), a_pod("good"))
    await bench.run()
    assert bench.binds == {"good": "n0"}


class NominatingFromArray(OddPostFilter):
    def post_filter(self, state: CycleState, pod: Pod) -> PostFilterResult:
        return PostFilterResult(SUCCESS, np.array(["n0", "n1"])[1])


async def test_a_name_out_of_an_array_is_nominated_as_a_plain_text(cluster_name: str) -> None:
    """A text of numpy cannot be encoded, so it could not be written to the pod."""
    bench = a_bench_with(NominatingFromArray)
    bench.put(a_node("n0"), a_node("n1"), a_pod("bad"))
    await bench.run()
    nominated = bench.nominated["bad"]
    assert (nominated, type(nominated)) == ("n1", str)


async def test_texts_of_numpy_in_a_status_become_plain_ones(cluster_name: str) -> None:
    """They are written to the pod as any other."""
    with capture_logs():
        bench = a_bench_with(OddPreFilter, Status.unresolvable(np.str_("full"), waits=np.str_("Full")))
        bench.put(a_node("n0"), a_pod("bad"))
        await bench.run()
    status = bench.refused["bad"].status
    assert [(each, type(each)) for each in (*status.reasons, status.waits)] == [("full", str), ("Full", str)]


async def test_a_post_filter_nominates_by_name(cluster_name: str) -> None:
    """Whatever else it gives is no answer: the next post-filter is asked."""
    counted: list[tuple[str, str]] = []
    with capture_logs():
        bench = a_bench_with(OddPostFilter, PostFilterResult(SUCCESS, 5))  # type: ignore[arg-type]
        bench.profile.faults.count = lambda *fault: counted.append(fault)
        bench.put(a_node("n0"), a_pod("bad"))
        await bench.run()
    assert counted == [("Odd", "postFilter")]
    assert "node(s) didn't satisfy a plugin's filter" in str(bench.refused["bad"])


async def asynchronous(*_: Any) -> Any: ...


def synchronous(*_: Any) -> Any: ...


class OddPostBind(Odd, PostBind):
    async def post_bind(self, state: CycleState, pod: Pod, node: str) -> None: ...


class OddSort(Odd, QueueSort):
    def sort_key(self, queued: Any) -> Any: ...


@pytest.mark.parametrize(
    ("plugin", "attributes", "said"),
    [
        (OddPreFilter, {"pre_filter": asynchronous}, "pre_filter is async, write `def pre_filter`"),
        (OddReserve, {"unreserve": asynchronous}, "unreserve is async, write `def unreserve`"),
        (OddFilter, {"concerns": asynchronous}, "concerns is async, write `def concerns`"),
        (OddSort, {"sort_key": asynchronous}, "sort_key is async, write `def sort_key`"),
        (OddPreBind, {"pre_bind": synchronous}, "pre_bind is not awaitable, write `async def pre_bind`"),
        (OddPostBind, {"post_bind": synchronous}, "post_bind is not awaitable, write `async def post_bind`"),
        (OddPreFilter, {"name": 5}, "its name is 5 (int), write a text"),
    ],
)
async def test_a_badly_written_plugin_is_refused_with_what_to_write(
    cluster_name: str, plugin: Any, attributes: dict[str, Any], said: str
) -> None:
    """An async unreserve was never run, and nobody was told."""
    with pytest.raises(InvalidConfiguration) as refused:
        a_bench_with(type("Odd", (plugin,), attributes))
    assert "plugin Odd is badly written" in str(refused.value)
    assert said in str(refused.value)


def passing_on(fn: Callable[..., Any]) -> Callable[..., Any]:
    def inner(*args: Any) -> Any:
        return fn(*args)

    return inner


class Delegating(Odd, PreBind):
    """Written in all the ways in which something to await can be returned."""

    async def _prepare(self, state: CycleState, pod: Pod, node: str) -> Status:
        return SUCCESS

    async def _prepare_as(self, what: str, state: CycleState, pod: Pod, node: str) -> Status:
        return SUCCESS

    def pre_bind(self, state: CycleState, pod: Pod, node: str) -> Coroutine[Any, Any, Status]:
        return self._prepare(state, pod, node)


def delegating_as_text(self: Delegating, state: CycleState, pod: Pod, node: str) -> "Coroutine[Any, Any, Status]":
    return self._prepare(state, pod, node)


@pytest.mark.parametrize(
    "pre_bind",
    [
        Delegating.pre_bind,
        delegating_as_text,
        passing_on(Delegating._prepare),
        partialmethod(Delegating._prepare_as, "pod"),
    ],
)
async def test_whatever_gives_something_to_await_is_awaited(cluster_name: str, pre_bind: Any) -> None:
    """A method that is not async itself may say that what it returns is, or pass calls on to one that is."""
    bench = a_bench_with(type("Odd", (Delegating,), {"pre_bind": pre_bind}))
    bench.put(a_node("n0"), a_pod("good"))
    await bench.run()
    assert bench.binds == {"good": "n0"}


async def test_what_extends_no_extension_point_is_refused(cluster_name: str) -> None:
    """It would be enabled and never asked."""
    with pytest.raises(InvalidConfiguration, match="expected an object of a class that extends an extension point"):
        a_bench_with(Odd)
