"""The objects of an installation: CRDs, rights, configuration, deployments. Pure: options in, manifests out.

The operator registers its webhooks itself, with the certificate it makes, so they are not among the manifests.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from spinney.api.schema.crd import manifests as crd_manifests
from spinney.api.struct import JSON
from spinney.backends import Catalogue, Right
from spinney.cli.rights import LEASES, MNNVL, OPERATOR, SCHEDULER, rules
from spinney.operator.configuration import LoadedConfiguration

OPERATOR_NAME: Final = "grove-operator"
SCHEDULER_NAME: Final = "spinney-scheduler"
GROVE_GROUPS: Final = frozenset({"grove.io", "scheduler.grove.io"})


@dataclass(frozen=True, kw_only=True)
class Installation:
    """What to install, and where."""

    configuration: LoadedConfiguration
    text: str
    """The configuration file, as written."""
    namespace: str = "spinney-system"
    image: str = "spinney:latest"
    replicas: int = 1
    crds: bool = True


def installation(options: Installation, catalogue: Catalogue) -> list[JSON]:
    """Return every object of the installation, in the order in which to apply them."""
    enabled = set(options.configuration.profiles.names())
    ours = SCHEDULER_NAME in enabled
    objects = [crd for crd in crd_manifests() if options.crds and (ours or crd["spec"]["group"] in GROVE_GROUPS)]
    objects.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": options.namespace}})
    objects += _identity(OPERATOR_NAME, options.namespace, operator_rights(options, catalogue))
    configuration = _config_map(options)
    objects += [configuration, _webhook_service(options), _operator(options, configuration["metadata"]["name"])]
    if ours:
        objects += _identity(SCHEDULER_NAME, options.namespace, SCHEDULER)
        objects.append(_scheduler(options))
    return objects


def operator_rights(options: Installation, catalogue: Catalogue) -> list[Right]:
    """Return the operator's own rights and those of the enabled backends."""
    rights = list(OPERATOR)
    if options.configuration.written.network.auto_mnnvl_enabled:
        rights.append(MNNVL)
    for name in options.configuration.profiles.names():
        backend = catalogue.get(name)
        rights += backend.rights if backend is not None else ()
    return rights


def _identity(name: str, namespace: str, rights: Iterable[Right]) -> list[JSON]:
    """Return a service account, what it may do in the cluster, and its lease in its own namespace."""
    group = "rbac.authorization.k8s.io"
    subjects = [{"kind": "ServiceAccount", "name": name, "namespace": namespace}]
    metadata = {"name": name, "namespace": namespace}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules(rights)},
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": subjects,
        },
        {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": metadata, "rules": rules([LEASES])},
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
            "subjects": subjects,
        },
    ]


def _config_map(options: Installation) -> JSON:
    """Return the configuration under a name that changes with it, so that a change rolls the operator."""
    digest = hashlib.sha256(options.text.encode()).hexdigest()[:8]
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{OPERATOR_NAME}-cm-{digest}", "namespace": options.namespace},
        "immutable": True,
        "data": {"config.yaml": options.text},
    }


def _webhook_service(options: Installation) -> JSON:
    port = options.configuration.written.server.webhooks.port
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": OPERATOR_NAME, "namespace": options.namespace},
        "spec": {"selector": _labels(OPERATOR_NAME), "ports": [{"name": "webhooks", "port": 443, "targetPort": port}]},
    }


def _operator(options: Installation, config_map: str) -> JSON:
    server = options.configuration.written.server
    container = {
        "name": "operator",
        "image": options.image,
        "args": ["operator", "--config", "/etc/spinney/config.yaml"],
        "env": [
            {"name": "GROVE_OPERATOR_SERVICE_ACCOUNT_NAME", "value": OPERATOR_NAME},
            {"name": "GROVE_INIT_CONTAINER_IMAGE", "value": options.image},
        ],
        "ports": [
            {"name": "webhooks", "containerPort": server.webhooks.port},
            {"name": "health", "containerPort": server.health_probes.port},
            {"name": "metrics", "containerPort": server.metrics.port},
        ],
        **_probes("health"),
        "volumeMounts": [{"name": "config", "mountPath": "/etc/spinney", "readOnly": True}],
        **_confined("128Mi"),
    }
    volumes = [{"name": "config", "configMap": {"name": config_map}}]
    return _deployment(OPERATOR_NAME, options, container, volumes)


def _scheduler(options: Installation) -> JSON:
    port = 8080
    container = {
        "name": "scheduler",
        "image": options.image,
        "args": [
            "scheduler",
            "--leader-elect",
            f"--lease-namespace={options.namespace}",
            f"--metrics-port={port}",
            "--log-json",
        ],
        "ports": [{"name": "metrics", "containerPort": port}],
        **_probes("metrics"),
        **_confined("512Mi"),
    }
    return _deployment(SCHEDULER_NAME, options, container, [])


def _deployment(name: str, options: Installation, container: JSON, volumes: list[JSON]) -> JSON:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": options.namespace, "labels": _labels(name)},
        "spec": {
            "replicas": options.replicas,
            "selector": {"matchLabels": _labels(name)},
            "template": {
                "metadata": {"labels": _labels(name)},
                "spec": {
                    "serviceAccountName": name,
                    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
                    "containers": [container],
                    "volumes": volumes,
                },
            },
        },
    }


def _labels(name: str) -> JSON:
    return {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "spinney"}


def _probes(port: str) -> JSON:
    return {
        "livenessProbe": {"httpGet": {"path": "/livez", "port": port}},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": port}},
    }


def _confined(memory: str) -> JSON:
    return {
        "resources": {"requests": {"cpu": "100m", "memory": memory}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
