"""What a pod needs that is not there is told at once and with what to do, all of it."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from spinney.cli import main
from tests.cli.workloads import as_yaml

CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kubernetes.io/hostname: n1}}
status: {allocatable: {cpu: 8, pods: 9, memory: 8Gi}, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: slow, namespace: default}
spec: {accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: plain, namespace: default}
spec: {accessModes: [ReadWriteOnce], storageClassName: "", resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: named, namespace: default}
spec: {accessModes: [ReadWriteOnce], volumeName: disk, resources: {requests: {storage: 1Gi}}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: there}
spec: {selectors: [{cel: {expression: 'device.driver == "acme.io"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: classless, namespace: default}
spec: {devices: {requests: [{name: g, exactly: {deviceClassName: absent}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: deviceless, namespace: default}
spec: {devices: {requests: [{name: g, exactly: {deviceClassName: there}}]}}
---
"""


def told(directory: Path, **spec: object) -> str:
    """Return what is said of a pod that waits."""
    pod = {"schedulerName": "spinney-scheduler", "containers": [{"name": "main"}], **spec}
    file = directory / "cluster.yaml"
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}, "spec": pod}
    file.write_text(CLUSTER + as_yaml(manifest))
    return CliRunner().invoke(main, ["why", "pod/p", "--best", "0", "--from", str(file)]).output


@pytest.mark.parametrize(
    ("claim", "need"),
    [
        ("none", "create the PersistentVolumeClaim none in the namespace of the pods"),
        (
            "slow",
            "see that the PersistentVolumeClaim slow is bound: its StorageClass fast has to exist, and its provisioner "
            "to run",
        ),
        (
            "plain",
            "see that the PersistentVolumeClaim plain is bound: it names no StorageClass, so that a PersistentVolume "
            "has to match it",
        ),
        (
            "named",
            "see that the PersistentVolumeClaim named is bound: the PersistentVolume disk that it names has to exist, "
            "and to be for it",
        ),
    ],
)
def test_a_volume_claim_that_cannot_be_used(claim: str, need: str, tmp_path: Path) -> None:
    """A claim that is missing, and one that nobody binds, are named with what they wait for."""
    assert f"what it needs:\n      {need}\n" in told(
        tmp_path, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]
    )


def test_all_device_claims_that_cannot_be_used(tmp_path: Path) -> None:
    """A class that is missing is named beside a claim that is missing: who mends one need not find the other next."""
    claims = [{"name": name, "resourceClaimName": name} for name in ("classless", "none")]

    assert (
        "what it needs:\n"
        "      install the driver that brings the DeviceClass absent, or name another class in the ResourceClaim "
        "classless\n"
        "      create the ResourceClaim none in the namespace of the pods\n"
    ) in told(tmp_path, resourceClaims=claims)


def test_nodes_without_devices_are_told_in_words(tmp_path: Path) -> None:
    """Where a class exists and no node has its devices, that is said, and not which plugin has found it."""
    text = told(tmp_path, resourceClaims=[{"name": "g", "resourceClaimName": "deviceless"}])

    assert "1 cannot allocate all claims (n1)" in text
    assert "n1 has no free devices for the claims of the pod" in text


def test_all_that_no_node_is_large_enough_for(tmp_path: Path) -> None:
    """Who asks for too much of several resources learns of all at once."""
    resources = {"requests": {"cpu": "16", "memory": "16Gi"}}
    text = told(tmp_path, containers=[{"name": "main", "resources": resources}])

    assert "the pod requests 16 CPU cores, but the largest node offers 8 CPU cores; the pod requests 16 GiB of" in text
