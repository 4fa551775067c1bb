"""Pods of a PodClique are counted as they change, and the count is always that of a look at each of them."""

from collections.abc import Mapping
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from spinney.api import labels as marks
from spinney.api.core import ContainerStatus, Pod, PodSchedulingGate, PodSpec, PodStatus
from spinney.api.meta import Condition, Metadata, OwnerReference
from spinney.kube.cache import Change
from spinney.kube.keys import Key
from spinney.operator.headcounts import Headcount, Headcounts
from spinney.operator.pod_states import has_gate, is_active, is_ready, is_scheduled

CLIQUES = ("uid-a", "uid-b")


@st.composite
def pods(draw: st.DrawFn, name: str) -> Pod:
    """Draw a pod of either PodClique or of none, in any state."""
    owner, flags = draw(st.sampled_from((*CLIQUES, None))), draw(st.sets(st.sampled_from("dfsrgua")))
    controllers = (
        (OwnerReference(api_version="grove.io/v1alpha1", kind="PodClique", name="c", uid=owner, controller=True),)
        if owner is not None
        else ()
    )
    conditions = tuple(
        Condition(type=kind, status="True") for flag, kind in (("s", "PodScheduled"), ("r", "Ready")) if flag in flags
    )
    return Pod(
        metadata=Metadata(
            name=name,
            namespace="default",
            labels={
                marks.POD_GANG: draw(st.sampled_from(("gang-0", "gang-1"))),
                marks.POD_TEMPLATE_HASH: draw(st.sampled_from(("old", "new"))),
            },
            annotations={marks.EVICTION_REQUEST: "{}"} if "a" in flags else {},
            owner_references=controllers,
            deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC) if "d" in flags else None,
        ),
        spec=PodSpec(scheduling_gates=(PodSchedulingGate(name=marks.POD_GANG_GATE),) if "g" in flags else ()),
        status=PodStatus(
            phase="Failed" if "f" in flags else "Running",
            conditions=conditions,
            container_statuses=(ContainerStatus(name="main", started="u" in flags),),
        ),
    )


@given(st.data())
def test_counts_follow_every_change(data: st.DataObject) -> None:
    """After any changes the headcount of each PodClique is what counting its pods one by one gives."""
    headcounts, there = Headcounts(), dict[str, Pod]()
    for name in data.draw(st.lists(st.sampled_from("uvwxyz"), max_size=12)):
        new = data.draw(st.none() | pods(name))
        headcounts.observe(Change(Key("default", name), there.get(name), new, ""))
        if new is None:
            there.pop(name, None)
        else:
            there[name] = new
        for uid in CLIQUES:
            owned = [
                each for each in there.values() if each.metadata.controller and each.metadata.controller.uid == uid
            ]
            active, counted = [each for each in owned if is_active(each)], headcounts.of(uid)
            assert (counted.pods, counted.active) == (len(owned), len(active))
            assert counted.scheduled == sum(map(is_scheduled, active))
            assert counted.ready == sum(map(is_ready, active))
            assert counted.gated == sum(map(has_gate, active))
            asked = sorted(each.metadata.name for each in owned if each.metadata.annotations)
            assert [each.metadata.name for each in counted.disrupted] == asked
            assert counted.kinds == Headcount.of(owned).kinds
            for gang in ("gang-0", "gang-1"):
                named = sorted(each.metadata.name for each in active if each.metadata.labels[marks.POD_GANG] == gang)
                assert [each.name for each in counted.references.get(gang, ())] == named


@given(st.data())
def test_the_generation_moves_with_the_pods_themselves(data: st.DataObject) -> None:
    """It is another after a pod came, went or got other labels, whatever happened before, and the same otherwise."""
    headcounts, there, seen = Headcounts(), dict[str, Pod](), set[int]()
    for name in data.draw(st.lists(st.sampled_from("uvw"), max_size=12)):
        old, new = there.get(name), data.draw(st.none() | pods(name))
        before = {uid: headcounts.of(uid).generation for uid in CLIQUES}
        headcounts.observe(Change(Key("default", name), old, new, ""))
        there.pop(name, None)
        if new is not None:
            there[name] = new
        for uid in CLIQUES:
            after = headcounts.of(uid).generation
            if _labels(old, uid) == _labels(new, uid):
                assert after == before[uid]
            elif headcounts.of(uid).pods:
                assert after not in seen
        seen |= {headcounts.of(uid).generation for uid in CLIQUES}


def _labels(pod: Pod | None, uid: str) -> Mapping[str, str] | None:
    """Return the labels of a pod that a PodClique controls; ``None`` if it controls no such pod."""
    owner = pod.metadata.controller if pod is not None else None
    return pod.metadata.labels if pod is not None and owner is not None and owner.uid == uid else None
