"""What comes late: answers about pods that are gone, promises nobody keeps, and room that no deletion makes."""

import asyncio

import msgspec
import pytest

from spinney.api.affinity import TopologySpreadConstraint
from spinney.api.core import Pod, ResourceRequirements
from spinney.api.selectors import LabelSelector
from spinney.coscheduling.framework import CycleState, Status
from spinney.kube.cache import Change
from spinney.kube.keys import key_of

from .bench import Bench, WrittenDown, a_group, a_node, a_pod
from .test_native_gangs import RACK
from .test_nothing_sleeps import with_container

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)


def of_uid(pod: Pod, uid: str) -> Pod:
    """Return a pod as it is when it was made anew."""
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, uid=uid))


async def test_a_bind_that_fails_late_takes_nothing_from_a_pod_of_the_same_name(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pod that was made anew keeps its node when the bind of its predecessor fails, and is bound there."""
    answers = {uid: asyncio.Event() for uid in ("old", "new")}
    at_once = WrittenDown.bind

    async def slowly(self: WrittenDown, state: CycleState, pod: Pod, node: str) -> Status:
        await answers[pod.metadata.uid or ""].wait()
        if pod.metadata.uid == "old":
            return Status.error(RuntimeError("the pod is gone"))
        return await at_once(self, state, pod, node)

    monkeypatch.setattr(WrittenDown, "bind", slowly)
    bench.put(a_node("n1", 1))
    bench.put(of_uid(a_pod("web-0"), "old"))
    await bench.run()
    bench.delete("web-0")
    bench.put(of_uid(a_pod("web-0"), "new"))
    await bench.run()
    answers["old"].set()
    await bench.run()
    assert bench.record("web-0").node == "n1"
    assert bench.queue.counts["in_flight"] == 1
    bench.put(a_pod("rival"))
    answers["new"].set()
    await bench.run(5)
    assert bench.binds == {"web-0": "n1"}


async def test_a_pod_that_is_deleted_at_permit_keeps_no_promised_node(cluster_name: str) -> None:
    """The node that a waiting member was promised before is free for others when the member is deleted."""
    bench = Bench(podGroupRejectPercentage=100)
    bench.put(a_node("n1", 1))
    bench.gang("gang", 2, priority=10)
    bench.services.nominations.put(bench.record("gang-0"), "n1")
    await bench.run()
    assert bench.waiting() == ["gang-0"]
    bench.delete("gang-0")
    assert len(bench.services.nominations) == 0


async def test_a_group_that_lacks_members_is_promised_nothing(bench: Bench) -> None:
    """When more members are asked for than there are, the node promised to one goes to others of its priority."""
    bench.put(a_node("n1", 1), a_pod("low", node="n1"))
    bench.gang("gang", 1, priority=10)
    await bench.run()
    assert bench.nominated["gang-0"] == "n1"
    bench.put(a_group("gang", 2))
    bench.delete("low")
    bench.put(a_pod("other", priority=10))
    await bench.run(5)
    assert bench.binds == {"other": "n1"}


async def test_a_group_without_back_off_does_not_spin(cluster_name: str) -> None:
    """A gang that does not fit is tried a few times, not without end, though its back-off is zero."""
    bench = Bench(podGroupBackoffSeconds=0)
    bench.put(a_node("n1", 2))
    bench.gang("gang", 3)
    await asyncio.wait_for(bench.run(60), 120)
    assert bench.attempts < 10


async def test_a_pod_that_shrinks_makes_room(bench: Bench) -> None:
    """A pod that is resized in place frees what it gave up for one that was refused."""
    bench.put(a_node("n1", 2), a_pod("large", node="n1", cpu="2"), a_pod("small"))
    await bench.run(5)
    assert not bench.binds
    bench.put(with_container(bench.record("large").pod, resources=ResourceRequirements(requests={"cpu": "1"})))
    await bench.run(15)
    assert bench.binds == {"small": "n1"}


async def test_a_node_that_goes_takes_its_domain_along(bench: Bench) -> None:
    """A pod kept back by an emptier domain it cannot use is placed when that domain's last node is gone."""
    spread = TopologySpreadConstraint(
        max_skew=1,
        topology_key=RACK,
        when_unsatisfiable="DoNotSchedule",
        label_selector=LabelSelector(match_labels={"app": "x"}),
    )
    empty = a_node("n2", 0, labels={RACK: "r2"})
    bench.put(a_node("n1", 4, labels={RACK: "r1"}), empty, a_pod("first", node="n1", labels={"app": "x"}))
    bench.put(a_pod("second", labels={"app": "x"}, spread=(spread,)))
    await bench.run(5)
    assert not bench.binds
    bench.intake.node(Change(key_of(empty), empty, None, "1"))
    await bench.run(15)
    assert bench.binds == {"second": "n1"}
