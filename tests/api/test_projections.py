"""What schedulers keep of pods and nodes."""

from typing import Any

import pytest

from spinney.api.affinity import Taint, Toleration
from spinney.api.core import Node, Pod
from spinney.api.resource_claims import ResourceClaim, ResourceSlice
from spinney.api.storage import PersistentVolumeClaim
from spinney.api.struct import JSON, convert

POD: JSON = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "ns", "managedFields": [{"manager": "m"}], "creationTimestamp": None},
    "spec": {
        "schedulerName": "spinney-scheduler",
        "containers": [
            {
                "name": "c",
                "env": [{"name": "A"}],
                "ports": [{"containerPort": 80, "hostPort": 80, "hostIP": "10.0.0.1"}],
                "resources": {"requests": {"cpu": "100m", "memory": 1024}, "claims": [{"name": "gpu"}]},
            }
        ],
        "initContainers": [{"name": "side", "restartPolicy": "Always"}],
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "d"}},
            {"name": "tmp", "emptyDir": {}},
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        ],
        "tolerations": [{"operator": "FromTheFuture"}],
        "schedulingGroup": {"podGroupName": "g"},
        "workloadRef": {"name": "w", "podGroup": "a"},
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
        "securityContext": {"runAsUser": 1},
    },
    "status": {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True", "lastProbeTime": None}],
        "containerStatuses": [
            {"name": "c", "ready": True, "started": True, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
        ],
    },
}


def test_a_pod_keeps_what_decides_and_drops_the_rest() -> None:
    """Requests, ports, volumes, claims and group membership are kept; a field of the future is no obstacle."""
    pod = convert(Pod, POD)
    assert pod.spec.containers[0].resources.requests == {"cpu": "100m", "memory": 1024}
    assert pod.spec.containers[0].ports[0].host_ip == "10.0.0.1"
    assert pod.spec.init_containers[0].restart_policy == "Always"
    assert [bool(v.persistent_volume_claim or v.ephemeral) for v in pod.spec.volumes] == [True, False, True]
    assert pod.spec.scheduling_group is not None
    assert pod.spec.workload_ref is not None
    assert pod.is_true("Ready")
    assert not pod.terminal
    assert not pod.gated
    assert not hasattr(pod.metadata, "managed_fields")


def test_a_node_is_read_with_taints_and_conditions() -> None:
    """Allocatable, taints and readiness are kept."""
    node = convert(
        Node,
        {
            "metadata": {"name": "n"},
            "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}], "providerID": "x"},
            "status": {"allocatable": {"cpu": "4"}, "conditions": [{"type": "Ready", "status": "True"}]},
        },
    )
    assert node.ready
    assert node.spec.taints == (Taint(key="k", effect="NoSchedule"),)
    assert node.spec.provider_id == "x"


@pytest.mark.parametrize(
    ("toleration", "taint", "tolerated"),
    [
        ({"operator": "Exists"}, {"key": "a", "effect": "NoExecute"}, True),
        ({"key": "a", "operator": "Exists"}, {"key": "a", "value": "v", "effect": "NoSchedule"}, True),
        ({"key": "a", "value": "v"}, {"key": "a", "value": "v", "effect": "NoSchedule"}, True),
        ({"key": "a", "value": "w"}, {"key": "a", "value": "v", "effect": "NoSchedule"}, False),
        ({"key": "a", "value": "v", "effect": "NoExecute"}, {"key": "a", "value": "v", "effect": "NoSchedule"}, False),
        ({"key": "b", "operator": "Exists"}, {"key": "a", "effect": "NoSchedule"}, False),
        ({"key": "a", "operator": "Lt", "value": "5"}, {"key": "a", "value": "3", "effect": "NoSchedule"}, True),
        ({"key": "a", "operator": "Gt", "value": "5"}, {"key": "a", "value": "3", "effect": "NoSchedule"}, False),
        ({"key": "a", "operator": "Gt", "value": "5"}, {"key": "a", "value": "x", "effect": "NoSchedule"}, False),
        ({"key": "a", "operator": "Later"}, {"key": "a", "effect": "NoSchedule"}, False),
    ],
)
def test_tolerations_cover_taints_as_in_kubernetes(
    toleration: dict[str, Any], taint: dict[str, Any], tolerated: bool
) -> None:
    """Key, value, effect and operator decide; an unknown operator tolerates nothing."""
    assert convert(Toleration, toleration).tolerates(convert(Taint, taint)) is tolerated


def test_volumes_and_devices_are_read() -> None:
    """Claims and published devices decode."""
    claim = convert(
        PersistentVolumeClaim,
        {
            "metadata": {"name": "d", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
            "spec": {"volumeName": "pv", "storageClassName": ""},
        },
    )
    assert claim.bound
    assert claim.spec.storage_class_name == ""
    published = convert(
        ResourceSlice,
        {
            "metadata": {"name": "s"},
            "spec": {
                "driver": "gpu.example.com",
                "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
                "devices": [
                    {"name": "gpu-0", "attributes": {"model": {"string": "x"}}, "capacity": {"mem": {"value": "80Gi"}}}
                ],
            },
        },
    )
    assert published.spec.devices[0].attributes["model"].string_value == "x"
    request = convert(
        ResourceClaim,
        {
            "metadata": {"name": "c"},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "g"}}]}},
        },
    )
    assert request.spec.devices.requests[0].exactly is not None
