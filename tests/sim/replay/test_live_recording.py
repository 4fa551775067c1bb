"""A cluster with a live scheduler is recorded while pods wait for gates, devices and volumes, and replayed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from spinney.api.core import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD, Pod
from spinney.api.policy import POD_DISRUPTION_BUDGET
from spinney.api.resource_claims import DEVICE_CLASS, RESOURCE_CLAIM_TEMPLATE, RESOURCE_SLICE
from spinney.api.scheduling import PRIORITY_CLASS
from spinney.api.storage import STORAGE_CLASS
from spinney.api.struct import JSON
from spinney.cli import main
from spinney.kube.client import Client
from spinney.runtime import Runtime
from spinney.sim.embedded.shapes import gpu_cluster
from spinney.sim.embedded.stack import EmbeddedCluster, StackOptions
from spinney.sim.snapshots.files import write_snapshot
from spinney.sim.snapshots.snapshot import take
from tests.sim.replay.building import told
from tests.sim.replay.recordings import nodes_by_job, replay_of
from tests.virtual_time import on_virtual_time

HOSTNAME = "kubernetes.io/hostname"
DRIVER = "gpu.example.com"


async def look(client: Client, directory: Path) -> None:
    """Have what was done come about, and take a snapshot, as ``spinney record`` does."""
    await client.runtime.clock.sleep(30)
    snapshot = await take(client)
    write_snapshot(snapshot, directory / f"{snapshot.taken:%Y%m%dT%H%M%S%f}.json.gz")


async def a_pod(client: Client, name: str, gpus: int = 0, **more: Any) -> None:
    """Create a pod for the scheduler of the cluster."""
    resources = {"requests": {"cpu": "1"}, "limits": {"nvidia.com/gpu": str(gpus)} if gpus else {}}
    spec = {
        "schedulerName": "spinney-scheduler",
        "containers": [{"name": "main", "image": "pause", "resources": resources}],
        **more.pop("spec", {}),
    }
    await client.create(POD, {"metadata": {"name": name, **more}, "spec": spec}, "default")


async def nodes(client: Client) -> dict[str, str]:
    """Return which pod is where."""
    pods = await client.list(POD, "default", type=Pod)
    return {each.metadata.name: each.spec.node_name for each in pods.items if each.spec.node_name}


async def publish_devices(client: Client, node: str) -> None:
    """Publish two devices of a node, and say how pods ask for one."""
    exactly = {"deviceClassName": DRIVER, "count": 1}
    devices: JSON = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    spec = {"driver": DRIVER, "nodeName": node, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}}
    published = [{"name": "d0"}, {"name": "d1"}]
    await client.create(DEVICE_CLASS, {"metadata": {"name": DRIVER}, "spec": {}})
    await client.create(RESOURCE_SLICE, {"metadata": {"name": node}, "spec": {**spec, "devices": published}})
    await client.create(RESOURCE_CLAIM_TEMPLATE, {"metadata": {"name": "one"}, "spec": {"spec": devices}}, "default")


async def offer_a_disk(client: Client, node: str) -> None:
    """Have a local volume of a node, and a claim that waits for its first pod."""
    body = {"metadata": {"name": "local"}, "provisioner": "kubernetes.io/no-provisioner"}
    await client.create(STORAGE_CLASS, {**body, "volumeBindingMode": "WaitForFirstConsumer"})
    within = [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [node]}]}]
    common = {"accessModes": ["ReadWriteOnce"], "storageClassName": "local"}
    volume = {
        **common,
        "capacity": {"storage": "1Gi"},
        "local": {"path": "/data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": within}},
    }
    await client.create(PERSISTENT_VOLUME, {"metadata": {"name": "disk"}, "spec": volume})
    await client.patch(PERSISTENT_VOLUME, "disk", {"status": {"phase": "Available"}}, subresource="status")
    claim = {**common, "resources": {"requests": {"storage": "1Gi"}}}
    await client.create(PERSISTENT_VOLUME_CLAIM, {"metadata": {"name": "data"}, "spec": claim}, "default")


async def bind_the_disk(client: Client) -> None:
    """Do what the volume controller does once the scheduler has given the volume to the claim."""
    done = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
    patch = {"metadata": {"annotations": done}, "spec": {"volumeName": "disk"}}
    await client.patch(PERSISTENT_VOLUME_CLAIM, "data", patch, "default")
    for resource, name, namespace in ((PERSISTENT_VOLUME, "disk", None), (PERSISTENT_VOLUME_CLAIM, "data", "default")):
        await client.patch(resource, name, {"status": {"phase": "Bound"}}, namespace, subresource="status")


async def live(client: Client, look: Callable[[], Any], a: str, b: str) -> dict[str, str]:
    """Have everything happen, with a snapshot after each step; return which pod was where."""
    await client.create(PRIORITY_CLASS, {"metadata": {"name": "high"}, "value": 60})
    await client.create(PRIORITY_CLASS, {"metadata": {"name": "low"}, "value": 10})
    await publish_devices(client, a)
    await offer_a_disk(client, b)
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}}
    await client.create(POD_DISRUPTION_BUDGET, {"metadata": {"name": "kept"}, "spec": budget}, "default")
    on_b = {"nodeSelector": {HOSTNAME: b}}
    await a_pod(client, "kept", 8, labels={"app": "kept"}, spec={**on_b, "priorityClassName": "low"})
    await look()
    using = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}]}
    for number in range(3):
        await a_pod(client, f"device-{number}", spec=using)
        await client.runtime.clock.sleep(1)
    await a_pod(client, "gated", 8, spec={"schedulingGates": [{"name": "example.com/quota"}]})
    await a_pod(client, "disk", spec={"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]})
    await look()
    await bind_the_disk(client)
    await a_pod(client, "high", 8, spec={**on_b, "priorityClassName": "high"})
    await look()
    await client.patch(POD, "gated", {"spec": {"schedulingGates": None}}, "default")
    await client.delete(POD, "device-0", "default")
    await look()
    return await nodes(client)


@on_virtual_time
async def recorded(directory: Path, found: dict[str, str]) -> None:
    """Record a cluster of two nodes, and note which pod was where in the end."""
    cluster = EmbeddedCluster(Runtime.virtual(seed=1), StackOptions(nodes=gpu_cluster(2, 8, rack=2, block=2)))
    async with cluster.running():
        client = cluster.client
        await look(client, directory)
        a, b = (each.metadata.name for each in (await take(client)).nodes)
        found |= await live(client, lambda: look(client, directory), a, b)


def test_what_a_live_scheduler_went_by_is_replayed(tmp_path: Path) -> None:
    """The replay has each pod where the live scheduler had it, and nobody waited less than there."""
    placed: dict[str, str] = {}
    recorded(tmp_path, placed)
    assert sorted(placed) == ["device-1", "device-2", "disk", "gated", "kept"]

    trace, history = replay_of(tmp_path)
    there = {name.removeprefix("default-"): where for name, (where,) in nodes_by_job(trace, history).items()}
    assert {name: there[name] for name in placed} == placed
    assert "high" not in there
    moments = {name: when for when, what, name in told(trace, history) if what == "started"}
    assert moments["default-disk"] < moments["default-gated"]
    assert moments["default-gated"] == 93  # when it was bound, as soon as its gate opened
    assert moments["default-device-2"] == 123  # the first snapshot without the pod whose device it gets
    assert not [what for _, what, _ in told(trace, history) if what in {"evicted", "failed"}]

    answer = CliRunner().invoke(main, ["replay", str(tmp_path)])
    assert answer.exit_code == 0, answer.output
