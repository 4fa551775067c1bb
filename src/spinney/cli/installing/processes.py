"""The processes of an installation: account, configuration, deployment, disruption budget."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from spinney.api.labels import APP_NAME, HOSTNAME, PART_OF
from spinney.cli.installing import computed
from spinney.cli.installing.computed import IMAGE, NAMESPACE
from spinney.cli.installing.description import Computed, Condition, Description, Each, Value, When, given, no, text

OPERATOR: Final = "grove-operator"
SCHEDULER: Final = "spinney-scheduler"
COSCHEDULER: Final = "spinney-coscheduler"
GROUPER: Final = "spinney-grouper"
SCHEDULER_PORT: Final = 8080

_CONFIGURATION: Final = "/etc/spinney"
_PLUGINS: Final = "/etc/spinney-plugins"


def labels(name: str) -> dict[str, str]:
    """Return the labels by which the pods of a process are selected, and by which an installation is removed.

    CRDs and namespaces, which hold users' objects, do not have them.
    """
    return {APP_NAME: name, PART_OF: "spinney"}


def metadata(name: str, **more: Description) -> Description:
    """Return the metadata of an object in the namespace of the installation."""
    return {"name": name, "namespace": NAMESPACE, "labels": labels(name), **more}


def service(process: str, port: str, number: Description, **about: Description) -> Description:
    """Return the Service in front of one port of a process."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {**metadata(process), **about},
        "spec": {"selector": labels(process), "ports": [{"name": port, "port": number, "targetPort": port}]},
    }


@dataclass(frozen=True, kw_only=True)
class InstalledProcess:
    """A process and what is special about it."""

    name: str
    command: str
    condition: Condition
    configuration: Computed | None
    """The text of the file it reads, if it reads one."""
    ports: Mapping[str, Description]
    health: str
    """The port that answers probes."""
    replicas: Description = field(default_factory=lambda: Value("replicaCount"))
    strategy: Mapping[str, Description] = field(default_factory=dict)
    """How its pods are replaced, if not as Kubernetes does it."""
    arguments: list[Description] = field(default_factory=list)
    environment: list[Description] = field(default_factory=list)
    volumes: list[Description] = field(default_factory=list)
    mounts: list[Description] = field(default_factory=list)

    def objects(self) -> list[Description]:
        return [
            When(self.condition, each)
            for each in (self._account(), *self._configuration(), self._deployment(), self._budget())
        ]

    def _account(self) -> Description:
        annotations = given(f"{self.command}.serviceAccountAnnotations")
        return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(self.name, annotations=annotations)}

    def _configuration(self) -> list[Description]:
        """Return the ConfigMap of the file it reads, named for its content."""
        if self.configuration is None:
            return []
        name = computed.named_for(self.name, self.configuration)
        return [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {**metadata(self.name), "name": name},
                "immutable": True,
                "data": {"config.yaml": self.configuration},
            }
        ]

    def _configured(self) -> tuple[list[Description], list[Description], list[Description]]:
        """Return the arguments, the volume and the mount of the file it reads."""
        if self.configuration is None:
            return [], [], []
        name = computed.named_for(self.name, self.configuration)
        return (
            ["--config", f"{_CONFIGURATION}/config.yaml"],
            [{"name": "config", "configMap": {"name": name}}],
            [{"name": "config", "mountPath": _CONFIGURATION, "readOnly": True}],
        )

    def _budget(self) -> Description:
        spec = {"maxUnavailable": Value("podDisruptionBudget.maxUnavailable"), "selector": self._selector()}
        about = metadata(self.name)
        budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": about, "spec": spec}
        return When(Value("podDisruptionBudget.enabled"), budget)

    def _selector(self) -> Description:
        return {"matchLabels": labels(self.name)}

    def _deployment(self) -> Description:
        template = {
            "metadata": {
                "labels": computed.with_labels("podLabels", labels(self.name)),
                "annotations": given("podAnnotations"),
            },
            "spec": self._pod(),
        }
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata(self.name),
            "spec": {"replicas": self.replicas, **self.strategy, "selector": self._selector(), "template": template},
        }

    def _pod(self) -> Description:
        return {
            "serviceAccountName": self.name,
            "imagePullSecrets": given("imagePullSecrets"),
            "priorityClassName": given("priorityClassName"),
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [self._container()],
            "nodeSelector": given("nodeSelector"),
            "tolerations": given("tolerations"),
            "affinity": given("affinity"),
            "topologySpreadConstraints": When(
                Value("topologySpread.enabled"),
                [self._spread(key) for key in (HOSTNAME, "topology.kubernetes.io/zone")],
            ),
            "volumes": [*self._configured()[1], *self.volumes, Each(f"{self.command}.extraVolumes")],
        }

    def _spread(self, key: str) -> Description:
        return {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": self._selector(),
        }

    def _container(self) -> Description:
        values = self.command
        return {
            "name": self.command,
            "image": IMAGE,
            "imagePullPolicy": Value("image.pullPolicy"),
            "args": [self.command, *self._configured()[0], *self.arguments, Each(f"{values}.extraArgs")],
            "env": [
                {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
                *self.environment,
                Each(f"{values}.extraEnv"),
            ],
            "ports": [{"name": name, "containerPort": port} for name, port in self.ports.items()],
            "startupProbe": {
                "httpGet": {"path": "/livez", "port": self.health},
                "periodSeconds": 5,
                "failureThreshold": 60,
            },
            "livenessProbe": {"httpGet": {"path": "/livez", "port": self.health}, "timeoutSeconds": 5},
            "readinessProbe": {
                "httpGet": {"path": "/readyz", "port": self.health},
                "periodSeconds": 5,
                "timeoutSeconds": 5,
            },
            "volumeMounts": [*self._configured()[2], *self.mounts, Each(f"{values}.extraVolumeMounts")],
            "resources": Value(f"resources.{values}"),
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            },
        }


def _scheduler(name: str, command: str, condition: Condition, **more: Any) -> InstalledProcess:
    arguments: list[Description] = [
        "--leader-elect",
        text("--lease-namespace=", NAMESPACE),
        f"--metrics-port={SCHEDULER_PORT}",
        "--log-json",
        "-v",
        text(Value(f"{command}.verbosity")),
    ]
    return InstalledProcess(
        name=name,
        command=command,
        condition=condition,
        configuration=more.pop("configuration", computed.as_yaml(f"{command}.config")),
        ports={"metrics": SCHEDULER_PORT, **more.pop("ports", {})},
        health="metrics",
        arguments=[*arguments, *more.pop("arguments", ())],
        **more,
    )


_HAS_PLUGINS: Final = Value("scheduler.pluginsConfigMap")
_IS_MANUAL: Final = computed.OWN_CERTIFICATE
_ONE_AFTER_THE_OTHER: Final = {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
"""Not ``Recreate``, which server-side apply cannot make of a Deployment that exists."""

PROCESSES: Final = (
    InstalledProcess(
        name=OPERATOR,
        command="operator",
        condition=computed.DEPLOYS_OPERATOR,
        configuration=computed.OPERATOR_CONFIGURATION,
        ports={"webhooks": computed.WEBHOOK_PORT, "health": computed.HEALTH_PORT, "metrics": computed.METRICS_PORT},
        health="health",
        strategy={"strategy": When(no(computed.ELECTS), _ONE_AFTER_THE_OTHER)},
        environment=[
            {"name": "GROVE_OPERATOR_SERVICE_ACCOUNT_NAME", "value": OPERATOR},
            {"name": "GROVE_INIT_CONTAINER_IMAGE", "value": IMAGE},
            {"name": "SPINNEY_IMAGE_PULL_POLICY", "value": Value("image.pullPolicy")},
            {"name": "SPINNEY_IMAGE_PULL_SECRETS", "value": computed.PULL_SECRETS},
        ],
        volumes=[When(_IS_MANUAL, {"name": "certificate", "secret": {"secretName": computed.CERTIFICATE_SECRET}})],
        mounts=[
            When(
                _IS_MANUAL,
                {"name": "certificate", "mountPath": computed.CERTIFICATE_DIRECTORY, "readOnly": True},
            )
        ],
    ),
    _scheduler(
        SCHEDULER,
        "scheduler",
        computed.DEPLOYS_SCHEDULER,
        configuration=computed.SCHEDULER_CONFIGURATION,
        arguments=[When(_HAS_PLUGINS, f"--plugin={_PLUGINS}")],
        volumes=[When(_HAS_PLUGINS, {"name": "plugins", "configMap": {"name": _HAS_PLUGINS}})],
        mounts=[When(_HAS_PLUGINS, {"name": "plugins", "mountPath": _PLUGINS, "readOnly": True})],
    ),
    _scheduler(COSCHEDULER, "coscheduler", computed.DEPLOYS_COSCHEDULER),
    _scheduler(
        GROUPER,
        "grouper",
        computed.DEPLOYS_GROUPER,
        configuration=computed.GROUPER_CONFIGURATION,
        ports={"webhooks": computed.GROUPER_WEBHOOK_PORT},
    ),
)
