"""What follows from the values: names, images, ports, configurations; Helm's rule and ours side by side."""

import hashlib
import json
from collections.abc import Callable
from typing import Any, Final

import yaml

from spinney.api.struct import JSON
from spinney.cli.installing.description import ChartSetting, Computed, Value, either, every, no

NAMESPACE: Final = Computed(".Release.Namespace", lambda setting: setting.namespace)
DEFINITIONS: Final[dict[str, str]] = {}
"""Named templates of the chart, which rules refer to."""


def _defined(name: str, body: str, of: Callable[[ChartSetting], Any]) -> Computed:
    DEFINITIONS[f"spinney.{name}"] = body
    return Computed(f'include "spinney.{name}" .', of)


def _image(setting: ChartSetting) -> str:
    name = f"{setting.at('image.repository')}:{setting.at('image.tag') or setting.version}"
    digest = setting.at("image.digest")
    return f"{name}@{digest}" if digest else name


IMAGE: Final = _defined(
    "image",
    "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
    "{{ with .Values.image.digest }}@{{ . }}{{ end }}",
    _image,
)
PULL_SECRETS: Final = _defined(
    "pullSecrets",
    "{{ range $i, $each := .Values.imagePullSecrets }}{{ if $i }},{{ end }}{{ $each.name }}{{ end }}",
    lambda setting: ",".join(each["name"] for each in setting.at("imagePullSecrets") or ()),
)


# -- the operator's configuration --------------------------------------------------------------------------------------


OWN_CERTIFICATE: Final = either(
    Value("webhooks.certificate.secretName"), Value("webhooks.certificate.certManager.enabled")
)
"""Whether a user or cert-manager provides the webhooks' certificate."""


def operator_configuration(setting: ChartSetting) -> JSON:
    """Return the file that the operator reads."""
    configuration = {
        "apiVersion": "operator.config.grove.io/v1alpha1",
        "kind": "OperatorConfiguration",
        **setting.values["config"],
    }
    if OWN_CERTIFICATE.of(setting):
        server = configuration.get("server") or {}
        webhooks = {**(server.get("webhooks") or {}), "certProvisionMode": "manual"}
        configuration["server"] = {**server, "webhooks": webhooks}
    return configuration


def _operator_text(setting: ChartSetting) -> str:
    written = operator_configuration(setting)
    head = {key: written.pop(key) for key in ("apiVersion", "kind")}
    return f"{_yaml(head)}\n{_yaml(written)}"


OPERATOR_CONFIGURATION: Final = _defined(
    "operatorConfiguration",
    """{{- $config := deepCopy .Values.config -}}
{{- if or .Values.webhooks.certificate.secretName .Values.webhooks.certificate.certManager.enabled -}}
{{- $config = mustMergeOverwrite $config (dict "server" (dict "webhooks" (dict "certProvisionMode" "manual"))) -}}
{{- end -}}
apiVersion: operator.config.grove.io/v1alpha1
kind: OperatorConfiguration
{{ toYaml $config }}
""",
    _operator_text,
)
PROFILES: Final = _defined(
    "profiles",
    """{{- $names := list "default-scheduler" -}}
{{- range (dig "scheduler" "profiles" list .Values.config) -}}{{- $names = append $names .name -}}{{- end -}}
{{- join "," $names -}}
""",
    lambda setting: ["default-scheduler", *_profiles(setting)],
)


def _profiles(setting: ChartSetting) -> list[str]:
    return [each["name"] for each in (setting.values["config"].get("scheduler") or {}).get("profiles") or ()]


def profile(name: str, *aliases: str) -> Computed:
    """Return the condition that a backend is enabled, by its name or an alias; kube-scheduler's always is."""

    def enabled(each: str) -> Computed:
        return Computed(f'has "{each}" (splitList "," ({PROFILES.helm}))', lambda setting: each in PROFILES.of(setting))

    return either(*map(enabled, (name, *aliases))) if aliases else enabled(name)


def configured(*path: str, default: object, of: str = "config") -> Computed:
    """Return a key of a configuration, the operator's unless said otherwise, or what is taken where it is absent."""
    words = " ".join(f'"{step}"' for step in path)
    written = json.dumps(default)

    def found(setting: ChartSetting) -> Any:
        value: Any = setting.at(of)
        for step in path:
            value = (value or {}).get(step)
        return default if value is None else value

    return Computed(f"dig {words} {written} .Values.{of}", found)


WEBHOOK_PORT: Final = configured("server", "webhooks", "port", default=2750)
HEALTH_PORT: Final = configured("server", "healthProbes", "port", default=2751)
METRICS_PORT: Final = configured("server", "metrics", "port", default=2752)
CERTIFICATE_DIRECTORY: Final = configured(
    "server", "webhooks", "serverCertDir", default="/etc/grove-operator/webhook-certs"
)
OPERATOR_LEASE: Final = configured("leaderElection", "resourceName", default="grove-operator-leader-election")
ELECTS: Final = configured("leaderElection", "enabled", default=False)
STARTUP_ORDER: Final = configured("initContainer", "enabled", default=True)
WEBHOOK_SECRET: Final = configured("server", "webhooks", "secretName", default="grove-webhook-server-cert")
MNNVL: Final = configured("network", "autoMNNVLEnabled", default=False)
CERTIFICATE_SECRET: Final = _defined(
    "certificateSecret",
    '{{ .Values.webhooks.certificate.secretName | default "grove-webhook-server-cert" }}',
    lambda setting: setting.values["webhooks"]["certificate"]["secretName"] or "grove-webhook-server-cert",
)
SELF_SIGNED: Final = every(
    Value("webhooks.certificate.certManager.enabled"), no(Value("webhooks.certificate.certManager.issuerRef"))
)

DEPLOYS_OPERATOR: Final = Value("operator.enabled")
DEPLOYS_SCHEDULER: Final = every(Value("operator.enabled"), profile("spinney-scheduler"))
DEPLOYS_COSCHEDULER: Final = Value("coscheduler.enabled")
DEPLOYS_GROUPER: Final = Value("grouper.enabled")
GROUPER_WEBHOOK_PORT: Final = configured("admission", "port", default=2750, of="grouper.config")
GROUPER_WEBHOOK_SECRET: Final = configured(
    "admission", "secretName", default="spinney-grouper-webhook-cert", of="grouper.config"
)
TELLS_AT_CREATION: Final = every(DEPLOYS_GROUPER, configured("admission", "enabled", default=True, of="grouper.config"))


# -- configurations in ConfigMaps --------------------------------------------------------------------------------------


def named_for(name: str, content: Computed) -> Computed:
    """Return a name that changes with what it names, so that a change rolls the process that reads it.

    It is none that an older chart gave: what has such a name is immutable, and may differ in a line end.
    """
    return _defined(
        f"{name}ConfigMap",
        f"{name}-config-{{{{ {content.helm} | sha256sum | trunc 8 }}}}",
        lambda setting: f"{name}-config-{hashlib.sha256(content.of(setting).encode()).hexdigest()[:8]}",
    )


def as_yaml(path: str) -> Computed:
    """Return a value as YAML text."""
    return Computed(f"(toYaml .Values.{path})", lambda setting: _yaml(setting.at(path)))


class _HelmsYaml(yaml.SafeDumper):
    """Writes text as Helm does: in double quotes what would be read as something else, lines as lines."""

    def text(self, value: str) -> yaml.Node:
        tag = self.resolve(yaml.ScalarNode, value, (True, False))  # type: ignore[no-untyped-call]
        style = "|" if "\n" in value else '"' if tag in _OTHER_THAN_TEXT else None
        return self.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_HelmsYaml.add_representer(str, _HelmsYaml.text)
_OTHER_THAN_TEXT: Final = {f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "timestamp")}


def _yaml(value: object) -> str:
    """Return YAML as Helm writes it, so that names made of its hash are the same."""
    dumped: str = yaml.dump(value, Dumper=_HelmsYaml, allow_unicode=True)
    return dumped.rstrip("\n")


SCHEDULER_CONFIGURATION: Final = Computed(
    '(toYaml (ternary (set (deepCopy .Values.scheduler.config) "waitForGrouper" '
    '(dig "waitForGrouper" true .Values.scheduler.config)) .Values.scheduler.config .Values.grouper.enabled))',
    lambda setting: _yaml(
        {
            **({"waitForGrouper": True} if setting.at("grouper.enabled") else {}),
            **setting.values["scheduler"]["config"],
        }
    ),
)
"""Where the grouper runs, the session scheduler waits for it unless it is told not to.

Helm's ``merge`` takes ``false`` for a value that is not there.
"""
GROUPER_CONFIGURATION: Final = Computed(
    '(toYaml (set (set (set (deepCopy .Values.grouper.config) "apiVersion" '
    '(dig "apiVersion" "grouper.spinney.dev/v1alpha1" .Values.grouper.config)) "kind" '
    '(dig "kind" "GrouperConfiguration" .Values.grouper.config)) "scheduler" '
    '(dig "scheduler" (dig "scheduler" dict .Values.config) .Values.grouper.config)))',
    lambda setting: _yaml(
        {
            "apiVersion": "grouper.spinney.dev/v1alpha1",
            "kind": "GrouperConfiguration",
            "scheduler": setting.values["config"].get("scheduler") or {},
            **setting.values["grouper"]["config"],
        }
    ),
)
"""The grouper's own values, with the operator's profiles."""


def has_rule(kind: str) -> Computed:
    """Return the condition that a rule of ours is in force: its kind is not left out."""

    def holds(setting: ChartSetting) -> bool:
        return kind not in (setting.values["grouper"]["config"].get("without") or ())

    return Computed(f'not (has "{kind}" (dig "without" list .Values.grouper.config))', holds)


ASKS_FOR_NODES: Final = configured("provisioningRequests", "className", default="", of="scheduler.config")
"""The class of the ProvisioningRequests that the scheduler makes, if it makes some."""


def queues_kind(kind: str) -> Computed:
    """Return the condition that suspended workloads of a kind wait in the scheduler's queues."""

    def holds(setting: ChartSetting) -> bool:
        return kind in ((setting.values["scheduler"]["config"].get("suspendedWorkloads") or {}).get("kinds") or ())

    return Computed(f'has "{kind}" (dig "suspendedWorkloads" "kinds" list .Values.scheduler.config)', holds)


def with_labels(path: str, labels: dict[str, str]) -> Computed:
    """Return labels of ours and those of the values; ours win, for objects are selected by them."""
    ours = " ".join(f'"{key}" "{value}"' for key, value in labels.items())
    return Computed(
        f"merge (dict {ours}) (.Values.{path} | default dict)", lambda setting: {**(setting.at(path) or {}), **labels}
    )
