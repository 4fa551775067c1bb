"""Volumes of a recording decide in its replay where pods may run: bound ones, and those that are bound there."""

from pathlib import Path
from typing import Any

import pytest

from spinney.api.struct import JSON
from spinney.kube.keys import Key
from spinney.sim.replay import History
from spinney.sim.replay.checking import problems_of
from spinney.sim.replay.history import JobHappening
from spinney.sim.replay.reading import Wanted, read_trace
from spinney.sim.snapshots.snapshot import FORBIDDEN, Unseen
from tests.sim.replay.building import told
from tests.sim.replay.recordings import BEGIN, RACK, a_class, a_group, a_node, a_pod, nodes_by_job, replay_of, taken

BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
LOCAL = "kubernetes.io/no-provisioner"
BY_CONTROLLER = {"pv.kubernetes.io/bound-by-controller": "yes"}


def at(minute: float) -> str:
    """Return a moment of the recording as objects have it."""
    return BEGIN.replace(minute=int(minute)).isoformat().replace("+00:00", "Z")


def a_storage_class(
    name: str = "late", *, late: bool = True, provisioner: str = "csi.example.com", **more: Any
) -> JSON:
    """Return a class whose volumes are bound when the first pod comes, or at once."""
    mode = "WaitForFirstConsumer" if late else "Immediate"
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass"}
    return {**kind, "metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode, **more}


def a_volume_claim(name: str, volume: str = "", *, of: str = "late", minute: float = 0) -> JSON:
    """Return a claim, bound to a volume by the controller if one is named."""
    metadata: JSON = {"name": name, "namespace": "default", "uid": name, "creationTimestamp": at(minute)}
    if volume:
        metadata["annotations"] = BOUND | BY_CONTROLLER
    spec = {"storageClassName": of, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": {**spec, **({"volumeName": volume} if volume else {})},
        "status": {"phase": "Bound" if volume else "Pending"},
    }


def a_volume(
    name: str, claim: str = "", *, of: str = "late", key: str = "", value: str = "", provisioned: bool = False
) -> JSON:
    """Return a volume of nodes with a label, which a claim may have."""
    within = [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}]
    annotations = {"pv.kubernetes.io/provisioned-by": "csi.example.com"} if provisioned else {}
    spec: JSON = {"storageClassName": of, "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
    if key:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": within}}
    if claim:
        spec["claimRef"] = {"namespace": "default", "name": claim, "uid": claim}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": annotations},
        "spec": spec,
        "status": {"phase": "Bound" if claim else "Available"},
    }


def a_user(name: str, claim: str, node: str = "", **pod: Any) -> JSON:
    """Return a pod that mounts a claim."""
    return a_pod(name, node, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": claim}}], **pod)


NODES = (a_node("a", rack="1"), a_node("b", rack="2", gpus=2))


def test_a_bound_volume_keeps_a_pod_to_its_nodes(tmp_path: Path) -> None:
    """Pods ran anywhere: two with a disk of rack 2 began on the first node that had room."""
    disks = (a_storage_class(), a_volume_claim("disk", "d"), a_volume("d", "disk", key=RACK, value="2"))
    pods = [a_user(f"p{number}", "disk", gpus=2, minute=1 + number / 60) for number in range(2)]
    taken(tmp_path, 0, *NODES, *disks)
    taken(tmp_path, 2, *NODES, *disks, *pods)
    trace, history = replay_of(tmp_path)

    assert nodes_by_job(trace, history) == {"default-p0": ("b",)}


@pytest.mark.parametrize("seen_unbound", [True, False])
def test_a_claim_that_waited_for_its_pod_is_bound_where_the_replay_has_it(seen_unbound: bool, tmp_path: Path) -> None:
    """In the recording another pod was in its way; what was decided then does not bind the replay."""
    fixed = (*NODES, a_storage_class(provisioner=LOCAL), a_pod("else", "a", gpus=4, minute=-5))
    free = [a_volume(f"of-{node}", key="kubernetes.io/hostname", value=node) for node in "ab"]
    taken(tmp_path, 0, *fixed, *free)
    if seen_unbound:
        taken(tmp_path, 2, *fixed, *free, a_volume_claim("disk", minute=1), a_user("p", "disk", minute=1))
    after = (*NODES, a_storage_class(provisioner=LOCAL), a_volume("of-b", key="kubernetes.io/hostname", value="b"))
    bound = a_volume_claim("disk", "of-a", minute=1), a_volume("of-a", "disk", key="kubernetes.io/hostname", value="a")
    taken(tmp_path, 5, *after, *bound, a_user("p", "disk", "a", minute=1))
    trace, history = replay_of(tmp_path)

    assert nodes_by_job(trace, history)["default-p"] == ("b",)
    assert [each.volumes for each in history.events if each.what == "started" and each.volumes] == [
        ({Key("default", "disk"): "of-b"},)
    ]


def test_two_pods_of_one_moment_have_a_volume_each(tmp_path: Path) -> None:
    """A volume that one took is free for the other once that one's claim is gone."""
    fixed = (*NODES, a_storage_class(provisioner=LOCAL))
    free = a_volume("d", key="kubernetes.io/hostname", value="a")
    claims = [a_volume_claim(f"c{number}", minute=1) for number in range(2)]
    pods = [a_user(f"p{number}", f"c{number}", minute=1) for number in range(2)]
    taken(tmp_path, 0, *fixed, free)
    taken(tmp_path, 2, *fixed, free, *claims, *pods)
    taken(tmp_path, 9, *fixed, free, claims[1], pods[1])
    trace, history = replay_of(tmp_path)

    assert told(trace, history) == [
        (60, "started", "default-p0"),
        (540, "ended", "default-p0"),
        (540, "started", "default-p1"),
    ]


def test_a_volume_that_is_provisioned_reaches_as_far_as_those_of_its_class(tmp_path: Path) -> None:
    """A job that is evicted begins anew in the rack where its disk was made, and waits for that."""
    fixed = (*NODES, a_storage_class(), a_class("low", 10), a_class("high", 60))
    taken(tmp_path, 0, *fixed, a_pod("blocker", "a", gpus=4))
    made = a_volume("made", "disk", key=RACK, value="1", provisioned=True)
    low = {"priority": 10, "priorityClassName": "low", "gpus": 2, "minute": 1}
    high = a_pod("high", gpus=2, minute=9, nodeSelector={RACK: "2"}, priority=60, priorityClassName="high")
    taken(tmp_path, 3, *fixed, a_volume_claim("disk", "made", minute=1), made, a_user("p", "disk", "a", **low))
    taken(tmp_path, 20, *fixed, a_volume_claim("disk", "made", minute=1), made, a_user("p", "disk", "a", **low), high)
    taken(tmp_path, 40, *fixed, a_volume_claim("disk", "made", minute=1), made, a_user("p", "disk", "a", **low))
    trace, history = replay_of(tmp_path)

    assert trace.reach == {"late": (RACK,)}
    of_p = [(each.at, each.what, each.nodes) for each in history.events if trace.jobs[each.job].name == "default-p"]
    assert of_p[1:3] == [(60.0, "started", ("b",)), (540.0, "evicted", ("b",))]
    restarted = of_p[-1]
    assert (restarted[1], restarted[2]) == ("started", ("b",))
    assert restarted[0] > 540


def test_a_claim_made_for_a_pod_gets_another_volume_with_the_next(tmp_path: Path) -> None:
    """An ephemeral volume does not keep a job where it was evicted."""
    fixed = (
        *NODES,
        a_storage_class(provisioner=LOCAL),
        a_class("low", 10),
        a_class("high", 60),
    )
    volumes = [a_volume(f"of-{node}", key="kubernetes.io/hostname", value=node) for node in "ab"]
    claim = a_volume_claim("p-v", minute=1)
    pod = a_pod("p", gpus=2, minute=1, volumes=[{"name": "v", "ephemeral": {}}], priority=10, priorityClassName="low")
    high = a_pod("high", gpus=2, minute=2, nodeSelector={RACK: "2"}, priority=60, priorityClassName="high")
    taken(tmp_path, 0, *fixed, *volumes, a_pod("blocker", "a", gpus=4))
    taken(tmp_path, 3, *fixed, *volumes, claim, pod, high)
    trace, history = replay_of(tmp_path)

    of_p = [(each.at, each.what, each.nodes) for each in history.events if trace.jobs[each.job].name == "default-p"]
    assert of_p[1:] == [
        (60.0, "started", ("b",)),
        (120.0, "evicted", ("b",)),
        (180.0, "started", ("a",)),
    ]


def test_a_claim_that_is_bound_at_once_waits_for_its_volume(tmp_path: Path) -> None:
    """A pod may run when its disk is there, wherever that is; no pod decides about it."""
    fixed = (*NODES, a_storage_class("now", late=False))
    taken(tmp_path, 0, *fixed)
    taken(tmp_path, 2, *fixed, a_volume_claim("disk", of="now", minute=1), a_user("p", "disk", minute=1))
    bound = a_volume_claim("disk", "d", of="now", minute=1), a_volume("d", "disk", of="now", key=RACK, value="2")
    taken(tmp_path, 7, *fixed, *bound, a_user("p", "disk", minute=1))
    trace, history = replay_of(tmp_path)

    assert nodes_by_job(trace, history) == {"default-p": ("b",)}
    assert told(trace, history) == [(60 * 7, "started", "default-p")]


def test_the_pods_of_a_gang_get_all_their_volumes_or_none(tmp_path: Path) -> None:
    """Two pods with one local disk for both on the node that has room: neither starts, and no disk is taken."""
    fixed = (*NODES, a_storage_class(provisioner=LOCAL), a_group("g", minMember=2))
    free = a_volume("d", key="kubernetes.io/hostname", value="a")
    claims = [a_volume_claim(f"c{number}", minute=1) for number in range(3)]
    pods = [a_user(f"g-{number}", f"c{number}", group="g", minute=1) for number in range(2)]
    taken(tmp_path, 0, *fixed, free)
    taken(tmp_path, 9, *fixed, free, *claims, *pods, a_user("alone", "c2", minute=5))
    trace, history = replay_of(tmp_path)

    assert told(trace, history) == [(300, "started", "default-alone")]


@pytest.mark.parametrize("kind", ["persistentvolumeclaims", "persistentvolumes", "storageclasses.storage.k8s.io"])
def test_pods_run_without_volumes_of_which_not_all_may_be_listed(kind: str, tmp_path: Path) -> None:
    """Waiting for what no snapshot can have would be waiting for ever; the report names the kind."""
    unseen = (Unseen(what=kind, reason=FORBIDDEN),)
    there = {
        "persistentvolumeclaims": a_volume_claim("disk", "d"),
        "persistentvolumes": a_volume("d", "disk"),
        "storageclasses.storage.k8s.io": a_storage_class(),
    }
    del there[kind]
    taken(tmp_path, 0, *NODES, *there.values(), unseen=unseen)
    taken(tmp_path, 2, *NODES, *there.values(), a_user("p", "disk", minute=1), unseen=unseen)
    trace, history = replay_of(tmp_path)

    assert told(trace, history) == [(60, "started", "default-p")]
    assert kind in trace.notes[0]


@pytest.mark.parametrize(
    ("node", "volumes", "complaint"),
    [
        ("a", {"c1": "of-b"}, "a pod is on a, which does not reach volume of-b of claim default/c1"),
        ("a", {"c1": "of-a"}, "claim default/c1 has volume of-a, which claim default/c0 has"),
        ("b", {}, "claim default/c1 has no volume"),
        ("b", {"c1": "new"}, "a pod is on b, where the class of claim default/c1 makes no volumes"),
    ],
)
def test_a_volume_that_a_pod_cannot_use_is_found(
    node: str, volumes: dict[str, str], complaint: str, tmp_path: Path
) -> None:
    """The check knows nothing of how volumes are chosen."""
    within = [{"matchLabelExpressions": [{"key": RACK, "values": ["1"]}]}]
    fixed = (*NODES, a_storage_class(allowedTopologies=within))
    disks = [a_volume(f"of-{each}", key="kubernetes.io/hostname", value=each) for each in "ab"]
    claims = [a_volume_claim(f"c{number}", minute=1) for number in range(2)]
    pods = [a_user(f"p{number}", f"c{number}", minute=1) for number in range(2)]
    taken(tmp_path, 0, *fixed, *disks)
    taken(tmp_path, 2, *fixed, *disks, *claims, *pods)
    trace = read_trace(tmp_path, Wanted())

    def start(number: int, node: str, device: int, volumes: dict[str, str]) -> JobHappening:
        held = {Key("default", claim): volume for claim, volume in volumes.items()}
        return JobHappening(60.0, "started", number, (node,), ((device,),), (), (held,))

    first, right = start(0, "a", 0, {"c0": "of-a"}), start(1, "b", 1, {"c1": "of-b"})
    assert problems_of(trace, History([first, right])) == []
    assert problems_of(trace, History([first, start(1, node, 1, volumes)])) == [f"60 s: job default-p1: {complaint}"]


def test_a_claim_that_pods_of_a_gang_share_keeps_them_together(tmp_path: Path) -> None:
    """Each pod had a node by itself, and the second did not reach the disk that the first one got."""
    fixed = (a_node("a", gpus=2), a_node("b", gpus=2), a_storage_class(provisioner=LOCAL), a_group("g", minMember=2))
    volumes = [a_volume(f"of-{node}", key="kubernetes.io/hostname", value=node) for node in "ab"]
    pods = [a_user(f"g-{number}", "shared", group="g", gpus=2, minute=1) for number in range(2)]
    taken(tmp_path, 0, *fixed, *volumes)
    taken(tmp_path, 5, *fixed, *volumes, a_volume_claim("shared", minute=1), *pods)
    trace, history = replay_of(tmp_path)

    assert told(trace, history) == []


def test_a_claim_that_was_made_anew_and_bound_stays(tmp_path: Path) -> None:
    """Its job waited longer than in the recording; what had become of the former claim was done to the new one then."""
    fixed = (a_node("a"), a_storage_class("now", late=False))
    blocker = a_pod("blocker", "a", gpus=4)
    former = a_volume_claim("disk", "d", of="now"), a_volume("d", "disk", of="now")
    new = a_volume_claim("disk", "e", of="now", minute=6), a_volume("e", "disk", of="now")
    new[0]["metadata"]["uid"] = new[1]["spec"]["claimRef"]["uid"] = "disk-2"
    taken(tmp_path, 0, *fixed, blocker, *former)
    taken(tmp_path, 2, *fixed, blocker, *former, a_user("p", "disk", "a", gpus=4, minute=1))
    taken(tmp_path, 5, *fixed, blocker)
    taken(tmp_path, 7, *fixed, blocker, *new)
    taken(tmp_path, 9, *fixed, *new)
    taken(tmp_path, 20, *fixed, *new, a_user("q", "disk", "a", gpus=4, minute=15))
    trace, history = replay_of(tmp_path)

    assert told(trace, history)[-1] == (60 * 15, "started", "default-q")


def test_a_claim_that_is_changed_between_two_jobs_keeps_its_volume(tmp_path: Path) -> None:
    """A label, or a larger size, does not take a disk away: the second job began in another rack, with another one."""
    fixed = (*NODES, a_storage_class(provisioner=LOCAL))
    volumes = [a_volume(f"of-{node}", key="kubernetes.io/hostname", value=node) for node in "ab"]
    claim = a_volume_claim("disk", minute=1)
    labelled = {**claim, "metadata": {**claim["metadata"], "labels": {"team": "a"}}}
    taken(tmp_path, 0, *fixed, *volumes)
    taken(tmp_path, 3, *fixed, *volumes, claim, a_user("p", "disk", "b", minute=1, nodeSelector={RACK: "2"}))
    taken(tmp_path, 5, *fixed, *volumes, claim)
    taken(tmp_path, 7, *fixed, *volumes, labelled)
    taken(tmp_path, 9, *fixed, *volumes, labelled, a_user("q", "disk", minute=8, nodeSelector={RACK: "1"}))
    trace, history = replay_of(tmp_path)

    assert nodes_by_job(trace, history) == {"default-p": ("b",)}


def test_the_volume_of_a_claim_that_was_made_anew_is_free(tmp_path: Path) -> None:
    """The check went on to say that the new claim has it."""
    fixed = (*NODES, a_storage_class(provisioner=LOCAL))
    free = a_volume("d", key="kubernetes.io/hostname", value="a")
    new = a_volume_claim("disk", minute=6)
    new["metadata"]["uid"] = "disk-2"
    taken(tmp_path, 0, *fixed, free)
    taken(tmp_path, 3, *fixed, free, a_volume_claim("disk", minute=1), a_user("p", "disk", "a", minute=1))
    taken(tmp_path, 7, *fixed, free, new)
    other = a_volume_claim("other", minute=8), a_user("q", "other", "a", minute=8)
    taken(tmp_path, 9, *fixed, free, new, *other)
    trace, history = replay_of(tmp_path)

    assert told(trace, history)[-1] == (60 * 8, "started", "default-q")
