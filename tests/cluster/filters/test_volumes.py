"""Volumes that pin a pod to nodes."""

from collections import UserDict
from collections.abc import Mapping, ValuesView

import msgspec
import pytest

from spinney.api.core import Node, Pod
from spinney.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from spinney.api.struct import JSON, convert
from spinney.cluster.filters import ClusterView, FilterFramework, FilterResult, Storage
from spinney.cluster.table import NodeTable

ZONE = "topology.kubernetes.io/zone"
ZONES = {"n1": "east", "n2": "west", "n3": "west"}


def a_claim(name: str, volume: str = "", storage_class: str = "", size: str = "1Gi", **extra: object) -> JSON:
    """Return a claim; with ``volume`` it is bound."""
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    spec: JSON = {"volumeName": volume, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    if storage_class:
        spec["storageClassName"] = storage_class
    return {"metadata": {"name": name, "namespace": "blue", "annotations": annotations}, "spec": {**spec, **extra}}


def a_volume(name: str, zone: str | None = None, storage_class: str = "", size: str = "1Gi", **extra: object) -> JSON:
    """Return an available volume; with ``zone`` only nodes of that zone reach it."""
    spec: JSON = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": storage_class}
    if zone is not None:
        expression = {"key": ZONE, "operator": "In", "values": [zone]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    return {"metadata": {"name": name}, "spec": {**spec, **extra}, "status": {"phase": "Available"}}


def a_class(name: str, provisioner: str = "example.com/disk", zone: str | None = None) -> JSON:
    """Return a class that waits for the first consumer; with ``zone`` it only provisions there."""
    terms = [{"matchLabelExpressions": [{"key": ZONE, "values": [zone]}]}] if zone else []
    return {
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": terms,
    }


def a_pod_with(*claims: str, name: str = "pod", node: str = "") -> Pod:
    """Return a pod that mounts these claims."""
    volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    metadata = {"name": name, "namespace": "blue"}
    return convert(Pod, {"metadata": metadata, "spec": {"nodeName": node, "volumes": volumes}})


def a_cluster(claims: list[JSON], volumes: list[JSON] | None = None, classes: list[JSON] | None = None) -> ClusterView:
    """Return three nodes in two zones with these storage objects."""
    storage = Storage(
        {("blue", claim["metadata"]["name"]): convert(PersistentVolumeClaim, claim) for claim in claims},
        {volume["metadata"]["name"]: convert(PersistentVolume, volume) for volume in volumes or []},
        {found["metadata"]["name"]: convert(StorageClass, found) for found in classes or []},
    )
    view = ClusterView(NodeTable(), storage=storage)
    for name, zone in ZONES.items():
        node = {"metadata": {"name": name, "labels": {ZONE: zone}}, "status": {"allocatable": {"pods": "10"}}}
        view.table.put(convert(Node, node))
    return view


def passing(view: ClusterView, pod: Pod) -> set[str]:
    """Return the nodes that pass."""
    mask = FilterFramework().feasible(view, pod).mask
    return {name for name in view.table if mask[view.table.row(name)]}


def reasons(view: ClusterView, result: FilterResult) -> Mapping[str, set[str]]:
    return {
        name: {refusal.reason for refusal in result.refusals if refusal.nodes[view.table.row(name)]}
        for name in view.table
    }


def test_bound_volume_pins_the_pod() -> None:
    """A pod runs where its volume can be reached, and other nodes say why not."""
    view = a_cluster([a_claim("data", "disk")], [a_volume("disk", "west")])
    assert passing(view, a_pod_with("data")) == {"n2", "n3"}
    found = reasons(view, FilterFramework().feasible(view, a_pod_with("data")))
    assert found["n1"] == {"node(s) didn't match PersistentVolume's node affinity"}


def test_zone_label_of_a_volume_pins_the_pod() -> None:
    """A volume that is labelled with zones is used in one of them, also under the old label's name."""
    volume = a_volume("disk")
    volume["metadata"]["labels"] = {"failure-domain.beta.kubernetes.io/zone": "east__north"}
    view = a_cluster([a_claim("data", "disk")], [volume])
    assert passing(view, a_pod_with("data")) == {"n1"}


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ([], 'persistentvolumeclaim "data" not found'),
        ([a_claim("data")], "pod has unbound immediate PersistentVolumeClaims"),
        ([a_claim("data", storage_class="gone")], "pod has unbound immediate PersistentVolumeClaims"),
        ([a_claim("data", "nowhere")], 'persistentvolume "nowhere" not found'),
    ],
)
def test_claim_that_cannot_be_used_refuses_the_pod(claims: list[JSON], message: str) -> None:
    """A claim that is missing, not bound, or bound to nothing refuses the pod before nodes are looked at."""
    result = FilterFramework().feasible(a_cluster(claims), a_pod_with("data"))
    assert (result.pre_filter, result.feasible) == (message, False)


def test_ephemeral_claim_waits_for_its_controller() -> None:
    """A pod whose ephemeral claim was not made yet says whom it waits for."""
    volumes = [{"name": "scratch", "ephemeral": {}}]
    pod = convert(Pod, {"metadata": {"name": "p", "namespace": "blue"}, "spec": {"volumes": volumes}})
    result = FilterFramework().feasible(a_cluster([]), pod)
    waiting = "waiting for ephemeral volume controller to create the persistentvolumeclaim"
    assert result.pre_filter == f'{waiting} "p-scratch"'


def test_class_that_waits_provisions_where_it_may() -> None:
    """A claim that waits for its consumer allows the nodes of the class's topologies."""
    view = a_cluster([a_claim("data", storage_class="zonal")], classes=[a_class("zonal", zone="west")])
    assert passing(view, a_pod_with("data")) == {"n2", "n3"}


def test_claim_with_a_selected_node_stays_there() -> None:
    """A claim that is being provisioned for a node keeps its pods on that node."""
    claim = a_claim("data", storage_class="anywhere")
    claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] = "n3"
    assert passing(a_cluster([claim], classes=[a_class("anywhere")]), a_pod_with("data")) == {"n3"}


def test_two_claims_need_two_volumes() -> None:
    """Two claims of a class without provisioner need two volumes on the same node, each big enough."""
    claims = [a_claim("small", storage_class="local"), a_claim("big", storage_class="local", size="5Gi")]
    local = a_class("local", provisioner="kubernetes.io/no-provisioner")
    one_each = [a_volume("e", "east", "local", "9Gi"), a_volume("w", "west", "local", "9Gi")]
    assert passing(a_cluster(claims, one_each, [local]), a_pod_with("small", "big")) == set()
    two_in_west = [*one_each, a_volume("w2", "west", "local", "2Gi")]
    assert passing(a_cluster(claims, two_in_west, [local]), a_pod_with("small", "big")) == {"n2", "n3"}


class Read(UserDict[str, PersistentVolume]):
    """Volumes by name that count how often they are gone through."""

    times = 0

    def values(self) -> ValuesView[PersistentVolume]:
        """Count and return them."""
        self.times += 1
        return super().values()


def test_volumes_are_gone_through_no_more_once_no_node_is_left() -> None:
    """Of a pod with hundreds of claims the first few that find a volume each rule out every node."""
    claims = [a_claim(f"c{number}", storage_class="local") for number in range(300)]
    volumes = [a_volume(f"{zone}{number}", zone, "local") for zone in ("east", "west") for number in range(2)]
    view = a_cluster(claims, volumes, [a_class("local", provisioner="kubernetes.io/no-provisioner")])
    assert passing(view, a_pod_with("c0", "c1")) == set(ZONES)
    read = Read(view.storage.volumes)
    view.storage = msgspec.structs.replace(view.storage, volumes=read)
    assert passing(view, a_pod_with(*(claim["metadata"]["name"] for claim in claims))) == set()
    assert read.times == 3


def test_volume_kept_for_another_claim_is_not_taken() -> None:
    """A volume that names a claim is for that claim alone."""
    kept = a_volume("disk", None, "local", claimRef={"namespace": "blue", "name": "other"})
    local = a_class("local", provisioner="kubernetes.io/no-provisioner")
    claims = [a_claim("data", storage_class="local"), a_claim("other", storage_class="local")]
    view = a_cluster(claims, [kept], [local])
    assert passing(view, a_pod_with("data")) == set()
    assert passing(view, a_pod_with("other")) == {"n1", "n2", "n3"}


def test_claim_for_one_pod_at_a_time() -> None:
    """A ReadWriteOncePod claim in use refuses a second pod everywhere, until the first is gone; eviction would help."""
    claim = a_claim("data", "disk", accessModes=["ReadWriteOncePod"])
    view = a_cluster([claim], [a_volume("disk")])
    user = a_pod_with("data", name="user", node="n1")
    view.pods.place(user, view.table.row("n1"))
    result = FilterFramework().feasible(view, a_pod_with("data"))
    assert not result.feasible
    assert not result.unresolvable().any()
    view.pods.remove(("blue", "user"))
    assert passing(view, a_pod_with("data")) == {"n1", "n2", "n3"}
