"""The objects of an installation: CRDs, rights, configuration, deployments. Pure: options in, manifests out.

The operator registers its webhooks itself, with the certificate it makes, so they are not among the manifests.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from spinney.api.coscheduling import POD_GROUP
from spinney.api.schema.crd import manifests as crd_manifests
from spinney.api.struct import JSON
from spinney.backends import Catalogue, Right
from spinney.cli.rights import COSCHEDULER, LEASES, MNNVL, OPERATOR, SCHEDULER, rules
from spinney.operator.configuration import LoadedConfiguration

OPERATOR_NAME: Final = "grove-operator"
SCHEDULER_NAME: Final = "spinney-scheduler"
COSCHEDULER_NAME: Final = "spinney-coscheduler"
COSCHEDULER_CONFIG: Final = "profiles:\n- schedulerName: coscheduling\n"
"""What the coscheduler serves in a cluster, whose own scheduler has the default name."""
GROVE_GROUPS: Final = frozenset({"grove.io", "scheduler.grove.io"})

_CONFIG_DIRECTORY: Final = "/etc/spinney"
_CONFIGURED: Final = ("--config", f"{_CONFIG_DIRECTORY}/config.yaml")


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
    operator: bool = True
    """Whether the operator and, where its profile is enabled, the session scheduler are installed."""
    coscheduler: str = ""
    """The configuration of the coscheduler, as written; empty: it is not installed."""


def installation(options: Installation, catalogue: Catalogue) -> list[JSON]:
    """Return every object of the installation, in the order in which to apply them."""
    ours = options.operator and SCHEDULER_NAME in options.configuration.profiles.names()
    objects = [crd for crd in crd_manifests() if options.crds and _is_used(crd, options, ours)]
    objects.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": options.namespace}})
    if options.operator:
        objects += _identity(OPERATOR_NAME, options.namespace, operator_rights(options, catalogue))
        configuration = _config_map(OPERATOR_NAME, options.text, options)
        objects += [configuration, _webhook_service(options), _operator(options, configuration)]
    if ours:
        objects += _identity(SCHEDULER_NAME, options.namespace, SCHEDULER)
        objects.append(_scheduler(SCHEDULER_NAME, "scheduler", options))
    if options.coscheduler:
        configuration = _config_map(COSCHEDULER_NAME, options.coscheduler, options)
        objects += [*_identity(COSCHEDULER_NAME, options.namespace, COSCHEDULER), configuration]
        objects.append(_scheduler(COSCHEDULER_NAME, "coscheduler", options, configuration))
    return objects


def _is_used(crd: JSON, options: Installation, ours: bool) -> bool:
    """Tell whether somebody of the installation needs a CRD; our own scheduler reads all of them."""
    group = crd["spec"]["group"]
    if options.operator and (ours or group in GROVE_GROUPS):
        return True
    return bool(options.coscheduler) and group == POD_GROUP.group


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


def _config_map(name: str, text: str, options: Installation) -> JSON:
    """Return a configuration under a name that changes with it, so that a change rolls the process that reads it."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{name}-cm-{digest}", "namespace": options.namespace},
        "immutable": True,
        "data": {"config.yaml": text},
    }


def _webhook_service(options: Installation) -> JSON:
    port = options.configuration.written.server.webhooks.port
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": OPERATOR_NAME, "namespace": options.namespace},
        "spec": {"selector": _labels(OPERATOR_NAME), "ports": [{"name": "webhooks", "port": 443, "targetPort": port}]},
    }


def _operator(options: Installation, configuration: JSON) -> JSON:
    server = options.configuration.written.server
    container = {
        "name": "operator",
        "image": options.image,
        "args": ["operator", *_CONFIGURED],
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
        **_confined("128Mi"),
    }
    return _deployment(OPERATOR_NAME, options, container, configuration)


def _scheduler(name: str, command: str, options: Installation, configuration: JSON | None = None) -> JSON:
    port = 8080
    container = {
        "name": command,
        "image": options.image,
        "args": [
            command,
            *(_CONFIGURED if configuration is not None else ()),
            "--leader-elect",
            f"--lease-namespace={options.namespace}",
            f"--metrics-port={port}",
            "--log-json",
        ],
        "ports": [{"name": "metrics", "containerPort": port}],
        **_probes("metrics"),
        **_confined("512Mi"),
    }
    return _deployment(name, options, container, configuration)


def _deployment(name: str, options: Installation, container: JSON, configuration: JSON | None) -> JSON:
    pod: JSON = {
        "serviceAccountName": name,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
    }
    if configuration is not None:
        mount = {"name": "config", "mountPath": _CONFIG_DIRECTORY, "readOnly": True}
        pod["containers"] = [{**container, "volumeMounts": [mount]}]
        pod["volumes"] = [{"name": "config", "configMap": {"name": configuration["metadata"]["name"]}}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": options.namespace, "labels": _labels(name)},
        "spec": {
            "replicas": options.replicas,
            "selector": {"matchLabels": _labels(name)},
            "template": {"metadata": {"labels": _labels(name)}, "spec": pod},
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
