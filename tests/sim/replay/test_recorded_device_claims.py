"""Device claims of a recording are met in its replay, by devices that drivers published then, each for one claim."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from spinney.api.struct import JSON
from spinney.cluster.dra.allocating import GivenDevice
from spinney.kube.keys import Key
from spinney.sim.replay import History, Trace
from spinney.sim.replay.checking import problems_of
from spinney.sim.replay.history import JobHappening
from spinney.sim.replay.reading import Wanted, read_trace
from spinney.sim.snapshots.snapshot import FORBIDDEN, Unseen
from tests.sim.replay.building import told
from tests.sim.replay.recordings import BEGIN, a_class, a_node, a_pod, a_queue, nodes_by_job, replay_of, taken

DRIVER = "gpu.example.com"
A_CLASS: JSON = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": DRIVER}, "spec": {}}


def a_slice(node: str, count: int, *, name: str = "", minute: int | None = None, generation: int = 1) -> JSON:
    """Return what a driver publishes on a node, since a minute if one is named."""
    devices = [{"name": f"d{number}"} for number in range(count)]
    pool = {"name": node, "generation": generation, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}
    metadata = {"name": name or node}
    if minute is not None:
        metadata["creationTimestamp"] = BEGIN.replace(minute=minute).isoformat().replace("+00:00", "Z")
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": metadata, "spec": spec}


def a_claim(
    name: str, count: int = 1, *, minute: int = 0, has: Sequence[str] = (), node: str = "", pod: str = ""
) -> JSON:
    """Return a claim made for a pod, which may have devices of a node already."""
    exactly = {"deviceClassName": DRIVER, "count": count}
    results = [{"request": "r", "driver": DRIVER, "pool": node, "device": device} for device in has]
    user = {"resource": "pods", "name": pod, "uid": pod}
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": [user]} if has else {}
    metadata: JSON = {"name": name, "namespace": "default", "uid": name}
    metadata["creationTimestamp"] = BEGIN.replace(minute=minute).isoformat().replace("+00:00", "Z")
    metadata["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": pod, "controller": True}]
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
    return {**kind, "metadata": metadata, "spec": spec, "status": status}


def a_user(name: str, claim: str, node: str = "", **pod: Any) -> JSON:
    """Return a pod that has a claim made for it from a template, and asks for no GPUs otherwise."""
    made = [{"name": "gpus", "resourceClaimTemplateName": "gpus"}]
    found = a_pod(name, node, gpus=0, resourceClaims=made, **pod)
    found["status"] = {"resourceClaimStatuses": [{"name": "gpus", "resourceClaimName": claim}]}
    return found


def devices(trace: Trace, history: History) -> dict[str, set[str]]:
    """Return the devices that each job got, as they started last."""
    return {
        trace.jobs[each.job].name: {device.name for held in each.claims for given in held.values() for device in given}
        for each in history.events
        if each.what == "started"
    }


def test_a_pod_waits_for_the_devices_it_claims(tmp_path: Path) -> None:
    """Pods ran without their devices: three shared two, on a node that had none."""
    fixed = (a_node("none"), a_node("some", gpus=0), a_slice("some", 2), A_CLASS)
    claims = [a_claim(f"c{number}", minute=1) for number in range(3)]
    pods = [a_user(f"p{number}", f"c{number}", minute=1 + number / 60) for number in range(3)]
    taken(tmp_path, 0, *fixed)
    taken(tmp_path, 2, *fixed, *claims, *pods)
    taken(tmp_path, 10, *fixed, *claims[:1], *pods[:1], *claims[2:], *pods[2:])
    trace, history = replay_of(tmp_path)

    assert told(trace, history) == [
        (60, "started", "default-p0"),
        (61, "started", "default-p1"),
        (600, "ended", "default-p1"),
        (600, "started", "default-p2"),
    ]
    assert set(nodes_by_job(trace, history).values()) == {("some",)}
    found = devices(trace, history)
    assert found["default-p1"] == found["default-p2"] != found["default-p0"]


def test_who_had_devices_when_the_recording_began_has_the_same(tmp_path: Path) -> None:
    """Others get what is left."""
    fixed = (a_node("n", gpus=0), a_slice("n", 3), A_CLASS)
    running = a_claim("c", has=["d0", "d2"], count=2, node="n", pod="p"), a_user("p", "c", "n")
    taken(tmp_path, 0, *fixed, *running)
    taken(tmp_path, 3, *fixed, *running, a_claim("late", minute=1), a_user("late", "late", minute=1))
    trace, history = replay_of(tmp_path)

    assert devices(trace, history) == {"default-p": {"d0", "d2"}, "default-late": {"d1"}}


def test_an_evicted_job_has_its_claim_still_when_it_begins_anew(tmp_path: Path) -> None:
    """Also after the recording has no claim any more, because the job had ended there."""
    fixed = (a_node("n", gpus=0), a_slice("n", 1), A_CLASS, a_class("low", 10), a_class("high", 60))
    low = a_claim("low"), a_user("low", "low", priority=10, priorityClassName="low")
    high = a_claim("high", minute=2), a_user("high", "high", minute=2, priority=60, priorityClassName="high")
    taken(tmp_path, 0, *fixed, *low)
    taken(tmp_path, 5, *fixed, a_claim("low", has=["d0"], node="n", pod="low"), a_user("low", "low", "n"), *high)
    taken(tmp_path, 15, *fixed, *high)
    taken(
        tmp_path, 30, *fixed, a_claim("high", has=["d0"], node="n", pod="high"), a_user("high", "high", "n", minute=2)
    )
    taken(tmp_path, 40, *fixed)
    trace, history = replay_of(tmp_path)

    assert told(trace, history)[:4] == [
        (0, "started", "default-low"),
        (120, "evicted", "default-low"),
        (120, "started", "default-high"),
        (720, "ended", "default-high"),
    ]
    assert told(trace, history)[4] == (720, "started", "default-low")


def test_devices_come_and_go_with_what_drivers_publish(tmp_path: Path) -> None:
    """Each slice and class counts from the snapshot that has it."""
    fixed = a_node("n", gpus=0), a_claim("c", minute=1), a_user("p", "c", minute=1)
    taken(tmp_path, 0, a_node("n", gpus=0))
    taken(tmp_path, 2, *fixed, A_CLASS)
    taken(tmp_path, 9, *fixed, A_CLASS, a_slice("n", 1))
    trace, history = replay_of(tmp_path)

    assert told(trace, history) == [(540, "started", "default-p")]


@pytest.mark.parametrize("generation", [1, 2])
def test_a_driver_that_was_started_anew_publishes_the_same_devices_once(generation: int, tmp_path: Path) -> None:
    """Its slices have other names then, and for a while both are there: the check went on without the devices."""
    fixed = a_node("n", gpus=0), A_CLASS
    before = a_slice("n", 2, name="n-k4x7d", minute=0)
    after = a_slice("n", 2, name="n-w2b9q", minute=3, generation=generation)
    both = [before] if generation > 1 else []
    taken(tmp_path, 0, *fixed, before)
    taken(tmp_path, 5, *fixed, *both, after, a_claim("c", 2, minute=4), a_user("p", "c", minute=4))
    taken(tmp_path, 7, *fixed, after)
    taken(tmp_path, 9, *fixed, after, a_claim("d", minute=8), a_user("q", "d", minute=8))
    trace, history = replay_of(tmp_path)

    assert devices(trace, history) == {"default-p": {"d0", "d1"}, "default-q": {"d0"}}


def test_a_claim_named_by_pods_of_another_scheduler_may_be_used_without_a_queue(tmp_path: Path) -> None:
    """Ours wants such a claim to be of the job's queue, which means nothing to others; their pods waited for ever."""
    shared = a_claim("shared", minute=1)
    shared["metadata"]["ownerReferences"] = []
    named = [{"name": "gpus", "resourceClaimName": "shared"}]
    pod = a_pod("p", gpus=0, minute=1, schedulerName="default-scheduler", resourceClaims=named)
    fixed = (a_node("n", gpus=0), a_slice("n", 1), A_CLASS, a_queue("q"))
    taken(tmp_path, 0, *fixed)
    taken(tmp_path, 2, *fixed, shared, pod)
    trace, history = replay_of(tmp_path)

    assert told(trace, history) == [(60, "started", "default-p")]


@pytest.mark.parametrize("listed", [True, False])
def test_a_pod_that_ran_with_a_claim_nobody_saw_runs_without(listed: bool, tmp_path: Path) -> None:
    """One that came and went between two snapshots, or that might not be listed: there is nothing to wait for."""
    unseen = () if listed else (Unseen(what="resourceclaims.resource.k8s.io", reason=FORBIDDEN),)
    taken(tmp_path, 0, a_node("n"))
    taken(tmp_path, 3, a_node("n"), a_user("p", "c", "n", minute=1), unseen=unseen)
    trace, history = replay_of(tmp_path)

    assert told(trace, history) == [(60, "started", "default-p")]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ((), "claim default/c1 has 0 devices for request r, which asks for 1"),
        ((GivenDevice("r", DRIVER, "n", "d0"),), "claim default/c1 has device d0 of n, which claim default/c0 has"),
        ((GivenDevice("r", DRIVER, "m", "d0"),), "claim default/c1 has device d0 of m, which n does not offer then"),
        ((GivenDevice("r", DRIVER, "n", "d9"),), "claim default/c1 has device d9 of n, which n does not offer then"),
    ],
)
def test_devices_that_are_not_there_to_be_had_are_found(
    given: tuple[GivenDevice, ...], complaint: str, tmp_path: Path
) -> None:
    """The check knows nothing of the book that schedulers keep."""
    fixed = (a_node("n", gpus=0), a_node("m", gpus=0), a_slice("n", 2), a_slice("m", 1), A_CLASS)
    claims = [a_claim(f"c{number}", minute=1) for number in range(2)]
    pods = [a_user(f"p{number}", f"c{number}", minute=1) for number in range(2)]
    taken(tmp_path, 0, *fixed)
    taken(tmp_path, 2, *fixed, *claims, *pods)
    trace = read_trace(tmp_path, Wanted())
    first = JobHappening(
        60.0, "started", 0, ("n",), ((),), ({Key("default", "c0"): (GivenDevice("r", DRIVER, "n", "d0"),)},)
    )
    right = {Key("default", "c1"): (GivenDevice("r", DRIVER, "n", "d1"),)}

    def second(held: Mapping[Key, tuple[GivenDevice, ...]]) -> JobHappening:
        return JobHappening(60.0, "started", 1, ("n",), ((),), (held,))

    assert problems_of(trace, History([first, second(right)])) == []
    assert problems_of(trace, History([first, second({Key("default", "c1"): given})])) == [
        f"60 s: job default-p1: {complaint}"
    ]


def test_no_pod_has_a_gpu_that_its_node_only_has_for_claims(tmp_path: Path) -> None:
    """A pod that asks for GPUs without a claim is bounded by what is allocatable, whatever drivers publish besides."""
    fixed = (a_node("n", gpus=1), a_slice("n", 2), A_CLASS)
    pods = [a_pod(f"p{number}", minute=1) for number in range(2)]
    taken(tmp_path, 0, *fixed)
    taken(tmp_path, 3, *fixed, *pods)
    trace, history = replay_of(tmp_path)

    assert told(trace, history) == [(60, "started", "default-p0")]


def test_a_job_that_waited_longer_has_what_its_claim_asked_for_when_it_came(tmp_path: Path) -> None:
    """The check held it to what a later claim of the same name asks for."""
    fixed = (a_node("n", gpus=0), a_slice("n", 2), A_CLASS)
    blocker = a_claim("held", 2, has=["d0", "d1"], node="n", pod="blocker"), a_user("blocker", "held", "n")
    former, new = a_claim("c", 1, minute=1), a_claim("c", 2, minute=6)
    new["metadata"]["uid"] = "c-2"
    taken(tmp_path, 0, *fixed, *blocker)
    taken(tmp_path, 3, *fixed, *blocker, former, a_user("p", "c", "n", minute=1))
    taken(tmp_path, 5, *fixed, *blocker)
    taken(tmp_path, 7, *fixed, *blocker, new)
    taken(tmp_path, 9, *fixed, new)
    taken(tmp_path, 20, *fixed, new, a_user("q", "c", "n", minute=15))
    trace, history = replay_of(tmp_path)

    assert {name: len(found) for name, found in devices(trace, history).items()} == {
        "default-blocker": 2,
        "default-p": 1,
        "default-q": 2,
    }
