"""Pods with volumes are told the same by us and by the stock kube-scheduler."""

import pytest

from spinney.api.core import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from spinney.api.storage import STORAGE_CLASS, PersistentVolumeClaim
from spinney.api.struct import JSON
from tests.cluster.filters.test_volumes import ZONE, a_claim, a_class, a_volume

from .agreement import assert_agreement
from .stock import StockScheduler

pytestmark = pytest.mark.real


def a_node(name: str, zone: str) -> JSON:
    resources = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    labels = {ZONE: zone, "kubernetes.io/hostname": name}
    status = {"allocatable": resources, "capacity": resources, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": status}


def a_pod(name: str, *claims: str, cpu: str = "100m") -> JSON:
    """Return a pod that mounts claims."""
    volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    container = {"name": "main", "image": "registry.example/app:1", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"name": name, "namespace": "blue"},
        "spec": {"containers": [container], "volumes": volumes},
    }


def bound_pair(claim: str, zone: str | None, mode: str = "ReadWriteOnce", **labels: str) -> tuple[JSON, JSON]:
    """Return a claim and a volume that name each other; the volume controller completes the binding."""
    volume = a_volume(f"{claim}-disk", zone)
    volume["metadata"]["labels"] = labels
    volume["spec"] |= {
        "accessModes": [mode],
        "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "blue", "name": claim},
        "hostPath": {"path": "/data"},
        "persistentVolumeReclaimPolicy": "Retain",
    }
    wanted = a_claim(claim)
    wanted["spec"] |= {"accessModes": [mode], "storageClassName": "", "volumeName": f"{claim}-disk"}
    return wanted, volume


async def bound(stock: StockScheduler, claims: set[str]) -> None:
    """Return when the volume controller has bound all of ``claims``."""
    async for event in stock.client.watch(PERSISTENT_VOLUME_CLAIM, "blue", type=PersistentVolumeClaim):
        if event.object.bound:
            claims.discard(event.object.metadata.name)
        if not claims:
            return


async def test_pods_with_volumes(stock: StockScheduler) -> None:
    """Bound, zoned, waiting, missing and exclusive claims: the same feasibility, node and message each time."""
    await stock.build([a_node("n1", "east"), a_node("n2", "west"), a_node("n3", "west")], [])
    for found in (a_class("zonal", zone="west"), a_class("local", provisioner="kubernetes.io/no-provisioner")):
        await stock.client.create(STORAGE_CLASS, found)
    pairs = [
        bound_pair("east", "east"),
        bound_pair("far", "north"),
        bound_pair("labelled", None, **{ZONE: "west"}),
        bound_pair("exclusive", "west", mode="ReadWriteOncePod"),
    ]
    waiting = [a_claim("none-left", storage_class="local"), a_claim("provisioned", storage_class="zonal")]
    for _, volume in pairs:
        await stock.client.create(PERSISTENT_VOLUME, volume)
    for claim in [*(claim for claim, _ in pairs), *waiting, a_claim("unbound", storageClassName="")]:
        await stock.client.create(PERSISTENT_VOLUME_CLAIM, claim)
    await bound(stock, {claim["metadata"]["name"] for claim, _ in pairs})
    last_claim, last_volume = bound_pair("last", None)
    await stock.client.create(PERSISTENT_VOLUME, last_volume)
    await stock.client.create(PERSISTENT_VOLUME_CLAIM, last_claim)
    await stock.see(a_pod("probe", "last"))
    for pod in (
        a_pod("in-the-east", "east"),
        a_pod("too-far", "far"),
        a_pod("in-a-labelled-zone", "labelled"),
        a_pod("first-user", "exclusive"),
        a_pod("second-user", "exclusive"),
        a_pod("no-local-volume", "none-left"),
        a_pod("claim-is-missing", "missing"),
        a_pod("claim-is-unbound", "unbound"),
        a_pod("too-big-and-far", "far", cpu="5"),
        a_pod("east-and-west", "east", "labelled"),
    ):
        submitted = await stock.submit(pod)
        view = await stock.view()
        assert_agreement(view, submitted, await stock.answer(submitted))
