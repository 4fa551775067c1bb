"""How each peer is run: as it ships, but for the limits that a benchmark would measure instead of the program.

Requests per second are raised for all, and KAI and Volcano wait 100 ms between two cycles instead of a second.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import yaml

from spinney.api.core import NAMESPACE
from spinney.api.kai import QUEUE, UNLIMITED
from spinney.api.struct import JSON
from spinney.runtime.certificates import Authority
from spinney.testing.peers.peer import LOOPBACK, Ground, Peer, Program

QPS, BURST = 5000, 10_000
PERIOD = "100ms"
KAI_PARENT_QUEUE, KAI_QUEUE = "default-parent-queue", "default-queue"


def a_kai_queue(name: str, parent: str | None = None) -> JSON:
    """Return a queue of KAI's that may use everything and is promised nothing."""
    share = {"quota": 0, "limit": UNLIMITED, "overQuotaWeight": 1}
    spec: JSON = {"resources": dict.fromkeys(("gpu", "cpu", "memory"), share)}
    return {"metadata": {"name": name}, "spec": spec if parent is None else spec | {"parentQueue": parent}}


# -- KAI --------------------------------------------------------------------------------------------------------------


def _kai_binder(ground: Ground) -> list[str]:
    return [
        f"--qps={QPS}",
        f"--burst={BURST}",
        "--max-concurrent-reconciles=50",
        "--leader-elect=false",
        f"--metrics-bind-address={ground.address()}",
        f"--health-probe-bind-address={ground.address()}",
        "--fake-gpu-nodes",
        "--zap-log-level=error",
    ]


def _kai_scheduler(ground: Ground) -> list[str]:
    return [
        f"--qps={QPS}",
        f"--burst={BURST}",
        "--leader-elect=false",
        f"--schedule-period={PERIOD}",
        f"--listen-address={ground.address()}",
        f"--plugin-server-port={ground.address().rpartition(':')[2]}",
        "--num-of-status-recording-workers=20",
        "--v=0",
    ]


KAI: Final = Peer(
    "kai",
    "0.17.0",
    (Program("binder", _kai_binder), Program("scheduler", _kai_scheduler)),
    objects=(
        *((NAMESPACE, {"metadata": {"name": name}}) for name in ("kai-scheduler", "kai-resource-reservation")),
        (QUEUE, a_kai_queue(KAI_PARENT_QUEUE)),
        (QUEUE, a_kai_queue(KAI_QUEUE, KAI_PARENT_QUEUE)),
    ),
    remark="100 ms between cycles (1 s as shipped), 50 binder workers (10), requests raised",
)


# -- scheduler-plugins ------------------------------------------------------------------------------------------------

COSCHEDULING_NAME: Final = "coscheduling"
"""What pods call the scheduler that runs the plugin: the name that our backend gives them, too."""


def _plugins_scheduler(ground: Ground) -> list[str]:
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(ground.kubeconfig), "qps": QPS, "burst": BURST},
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 1,
        "profiles": [
            {
                "schedulerName": COSCHEDULING_NAME,
                "plugins": {
                    "queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]},
                    "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
                },
                "pluginConfig": [{"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": 60}}],
            }
        ],
    }
    return [
        f"--config={ground.write('scheduler.yaml', yaml.safe_dump(configuration))}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={ground.address().rpartition(':')[2]}",
        f"--cert-dir={ground.directory / 'certificates'}",
        f"--authentication-kubeconfig={ground.kubeconfig}",
        f"--authorization-kubeconfig={ground.kubeconfig}",
        "--authentication-skip-lookup=true",
        # A gang that the plugin refused is not always woken when a node is opened; then it waits for this.
        "--pod-max-in-unschedulable-pods-duration=20s",
    ]


def _plugins_controller(ground: Ground) -> list[str]:
    return [
        f"--qps={QPS}",
        f"--burst={BURST}",
        "--workers=10",
        f"--metricsAddr={ground.address()}",
        f"--probeAddr={ground.address()}",
    ]


COSCHEDULING: Final = Peer(
    "scheduler-plugins",
    "903da7df",
    (Program("scheduler", _plugins_scheduler), Program("controller", _plugins_controller)),
    remark="at most 1 s of back-off (10 s as shipped), refused pods tried again after 20 s (5 min), requests raised",
)


# -- Volcano ----------------------------------------------------------------------------------------------------------

_VOLCANO_PLUGINS = (
    ("priority", "gang", "conformance"),
    ("overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack"),
)


def _volcano_scheduler(ground: Ground) -> list[str]:
    configuration = {
        "actions": "enqueue, allocate, preempt, reclaim, backfill",
        "tiers": [{"plugins": [{"name": name} for name in tier]} for tier in _VOLCANO_PLUGINS],
    }
    path = ground.write("scheduler.conf", yaml.safe_dump(configuration))
    return [*_volcano(ground), f"--schedule-period={PERIOD}", "--cache-dumper=false", f"--scheduler-conf={path}"]


def _volcano_controllers(ground: Ground) -> list[str]:
    return [*_volcano(ground), "--controllers=queue-controller,pg-controller"]


def _volcano(ground: Ground) -> list[str]:
    return [
        f"--kubeconfig={ground.kubeconfig}",
        "--leader-elect=false",
        f"--kube-api-qps={QPS}",
        f"--kube-api-burst={BURST}",
        f"--listen-address={ground.address()}",
        f"--healthz-address={ground.address()}",
        "--logtostderr",
        "-v=1",
    ]


VOLCANO: Final = Peer(
    "volcano",
    "1.15.1",
    (Program("scheduler", _volcano_scheduler), Program("controller-manager", _volcano_controllers)),
    objects=((NAMESPACE, {"metadata": {"name": "volcano-system"}}),),
    remark="100 ms between cycles (1 s as shipped), binpack, preempt and reclaim on, requests raised",
)


# -- Grove ------------------------------------------------------------------------------------------------------------


def _grove_operator(ground: Ground) -> list[str]:
    authority = Authority("spinney-test-peers", now=datetime.now(UTC))
    pair = authority.serving([LOOPBACK])
    for file, content in (("tls.crt", pair.certificate), ("tls.key", pair.key), ("ca.crt", authority.pem)):
        ground.write(f"certificates/{file}", content)
    kinds = ("podCliqueSet", "podClique", "podCliqueScalingGroup", "podGang")
    configuration = {
        "apiVersion": "operator.config.grove.io/v1alpha1",
        "kind": "OperatorConfiguration",
        "runtimeClientConnection": {"qps": QPS, "burst": BURST},
        "leaderElection": {"enabled": False},
        "server": {
            "webhooks": {
                **_listening(ground),
                "serverCertDir": str(ground.directory / "certificates"),
                "certProvisionMode": "manual",
            },
            "healthProbes": _listening(ground),
            "metrics": _listening(ground),
        },
        "controllers": {kind: {"concurrentSyncs": 10} for kind in kinds},
        "scheduler": {"defaultProfileName": "default-scheduler", "profiles": [{"name": "default-scheduler"}]},
        "logLevel": "error",
        "logFormat": "json",
        "topologyAwareScheduling": {"enabled": False},
        "authorizer": {"enabled": False},
        "network": {"autoMNNVLEnabled": False},
    }
    return [f"--config={ground.write('operator.yaml', yaml.safe_dump(configuration))}"]


def _listening(ground: Ground) -> JSON:
    host, _, port = ground.address().rpartition(":")
    return {"bindAddress": host, "port": int(port)}


GROVE: Final = Peer(
    "grove",
    "0.1.0-alpha.11",
    (Program("operator", _grove_operator),),
    environment=(
        ("GROVE_INIT_CONTAINER_IMAGE", "grove-initc"),
        ("GROVE_OPERATOR_SERVICE_ACCOUNT_NAME", "grove-operator"),
    ),
    remark="10 workers a controller (3 as shipped), no webhooks, requests raised",
)

PEERS: Mapping[str, Peer] = {peer.name: peer for peer in (KAI, GROVE, COSCHEDULING, VOLCANO)}
