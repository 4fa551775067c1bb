"""Namespaces as platform teams set them up, and sets that run in them."""

from typing import Any

from spinney.api.struct import JSON

from .machine import SYSTEM, TEAM


def guarded(namespace: str) -> list[JSON]:
    """Return a namespace with PodSecurity `restricted`, a compute quota, and a policy that lets nothing in or out."""
    hard = {
        f"{kind}.{name}": amount
        for kind in ("requests", "limits")
        for name, amount in (("cpu", 64), ("memory", "64Gi"))
    }
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "compute", "namespace": namespace}}
    policy = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "deny", "namespace": namespace},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
    }
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}},
        {**quota, "spec": {"hard": {**hard, "pods": 2000}}},
        policy,
    ]


def reach_the_api_server() -> JSON:
    """Return the policy of docs/operate.md, with which pods that wait for others reach the API server."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "start-up-order", "namespace": TEAM},
        "spec": {
            "podSelector": {"matchLabels": {"app.kubernetes.io/managed-by": "grove-operator"}},
            "policyTypes": ["Egress"],
            "egress": [{"ports": [{"port": 443}, {"port": 6443}]}],
        },
    }


def prepared() -> list[JSON]:
    """Return both namespaces of an installation and its users."""
    return [*guarded(SYSTEM), *guarded(TEAM), reach_the_api_server()]


def an_ordered_set(name: str, *, revision: str = "one", **template: Any) -> JSON:
    """Return a set whose two workers start after their leader; a container is ready until it has a file /tmp/broken."""
    cliques = [_clique("leader", 1, revision), _clique("worker", 2, revision)]
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": name, "namespace": TEAM},
        "spec": {
            "replicas": 1,
            "template": {"cliqueStartupType": "CliqueStartupTypeInOrder", "cliques": cliques, **template},
        },
    }


def a_wide_set(name: str, pods: int) -> JSON:
    """Return a set of many pods for simulated nodes."""
    clique = _clique("worker", pods, "one")
    spec = clique["spec"]["podSpec"]
    spec |= {"nodeSelector": {"type": "simulated"}, "tolerations": [{"key": "simulated", "operator": "Exists"}]}
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": name, "namespace": TEAM},
        "spec": {"replicas": 1, "template": {"cliqueStartupType": "CliqueStartupTypeAnyOrder", "cliques": [clique]}},
    }


def _clique(name: str, replicas: int, revision: str) -> JSON:
    container = {
        "name": "main",
        "image": "docker.io/library/busybox:latest",
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1; done"],
        "env": [{"name": "REVISION", "value": revision}],
        "readinessProbe": {"exec": {"command": ["test", "!", "-e", "/tmp/broken"]}, "periodSeconds": 1},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"cpu": "100m", "memory": "32Mi"}},
    }
    pod = {
        "terminationGracePeriodSeconds": 1,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 65534, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
    }
    return {"name": name, "spec": {"roleName": name, "replicas": replicas, "podSpec": pod}}
