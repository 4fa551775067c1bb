"""The objects of an installation: CRDs, rights, configuration, deployments. Pure: options in, manifests out.

The operator registers its webhooks itself, with the certificate it makes, so they are not among the manifests.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from spinney.api.schema.crd import definition, kinds_of
from spinney.api.struct import JSON, to_json
from spinney.backends import Catalogue, Right
from spinney.cli.rights import COSCHEDULER, MNNVL, OPERATOR, SCHEDULER, lease, rules
from spinney.operator.configuration import LoadedConfiguration

OPERATOR_NAME: Final = "grove-operator"
SCHEDULER_NAME: Final = "spinney-scheduler"
COSCHEDULER_NAME: Final = "spinney-coscheduler"
COSCHEDULER_CONFIG: Final = "profiles:\n- schedulerName: coscheduling\n"
"""What the coscheduler serves in a cluster, whose own scheduler has the default name."""

PART_OF: Final = "app.kubernetes.io/part-of"

_WHICH_POD: Final[tuple[JSON, ...]] = tuple(
    {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.{field}"}}}
    for name, field in (("POD_NAME", "name"), ("POD_UID", "uid"))
)
_CONFIG_DIRECTORY: Final = "/etc/spinney"
_CONFIGURED: Final = ("--config", f"{_CONFIG_DIRECTORY}/config.yaml")


@dataclass(frozen=True, kw_only=True)
class Installation:
    """What to install, and where."""

    configuration: LoadedConfiguration
    text: str
    """The configuration file, as written."""
    namespace: str = "spinney-system"
    image: str
    pull_policy: str = "IfNotPresent"
    replicas: int = 1
    crds: bool = True
    operator: bool = True
    """Whether the operator and, where its profile is enabled, the session scheduler are installed."""
    coscheduler: str = ""
    """The configuration of the coscheduler, as written; empty: it is not installed."""


def installation(options: Installation, catalogue: Catalogue) -> list[JSON]:
    """Return every object of the installation, in the order in which to apply them."""
    ours = options.operator and SCHEDULER_NAME in options.configuration.profiles.names()
    objects: list[JSON] = []
    if options.crds and options.operator:
        objects += [to_json(definition(kind)) for kind in kinds_of("grove")]
    objects.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": options.namespace}})
    if options.operator:
        objects += _identity(
            OPERATOR_NAME,
            options,
            operator_rights(options, catalogue),
            options.configuration.written.leader_election.resource_name,
        )
        configuration = _config_map(OPERATOR_NAME, options.text, options)
        objects += [configuration, _webhook_service(options), _operator(options, configuration)]
    if ours:
        objects += _identity(SCHEDULER_NAME, options, SCHEDULER, SCHEDULER_NAME)
        objects.append(_scheduler(SCHEDULER_NAME, "scheduler", options))
    if options.coscheduler:
        configuration = _config_map(COSCHEDULER_NAME, options.coscheduler, options)
        objects += [*_identity(COSCHEDULER_NAME, options, COSCHEDULER, COSCHEDULER_NAME), configuration]
        objects.append(_scheduler(COSCHEDULER_NAME, "coscheduler", options, configuration))
    return [_marked(each) for each in objects]


def _marked(manifest: JSON) -> JSON:
    """Return an object with the label by which it is removed; what holds users' objects has none."""
    if manifest["kind"] in ("CustomResourceDefinition", "Namespace"):
        return manifest
    labels = manifest["metadata"].get("labels", {}) | {PART_OF: "spinney"}
    return {**manifest, "metadata": {**manifest["metadata"], "labels": labels}}


def operator_rights(options: Installation, catalogue: Catalogue) -> list[Right]:
    """Return the operator's own rights and those of the enabled backends."""
    rights = list(OPERATOR)
    if options.configuration.written.network.auto_mnnvl_enabled:
        rights.append(MNNVL)
    for name in options.configuration.profiles.names():
        backend = catalogue.get(name)
        rights += backend.rights if backend is not None else ()
    return rights


def _identity(name: str, options: Installation, rights: Iterable[Right], lease_name: str) -> list[JSON]:
    """Return a service account, what it may do in the cluster, and its lease in its own namespace."""
    group = "rbac.authorization.k8s.io"
    namespace = options.namespace
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
        {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": metadata, "rules": rules(lease(lease_name))},
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
        "imagePullPolicy": options.pull_policy,
        "args": ["operator", *_CONFIGURED],
        "env": [
            {"name": "GROVE_OPERATOR_SERVICE_ACCOUNT_NAME", "value": OPERATOR_NAME},
            {"name": "GROVE_INIT_CONTAINER_IMAGE", "value": options.image},
            {"name": "SPINNEY_IMAGE_PULL_POLICY", "value": options.pull_policy},
            *_WHICH_POD,
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
        "imagePullPolicy": options.pull_policy,
        "args": [
            command,
            *(_CONFIGURED if configuration is not None else ()),
            "--leader-elect",
            f"--lease-namespace={options.namespace}",
            f"--metrics-port={port}",
            "--log-json",
        ],
        "env": list(_WHICH_POD),
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
    return {"app.kubernetes.io/name": name, PART_OF: "spinney"}


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
