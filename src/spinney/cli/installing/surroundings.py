"""What stands around the processes: services, network policies, certificates, what Prometheus reads."""

from importlib.resources import files
from typing import Final

import yaml

from spinney.api.struct import JSON
from spinney.cli.installing import computed
from spinney.cli.installing.computed import NAMESPACE
from spinney.cli.installing.dashboard import DASHBOARD_FILE, dashboard_text
from spinney.cli.installing.description import Computed, Description, Each, Value, When, every, given, no, text
from spinney.cli.installing.page import DASHBOARD
from spinney.cli.installing.processes import (
    GROUPER,
    OPERATOR,
    PROCESSES,
    SCHEDULER,
    InstalledProcess,
    labels,
    metadata,
    service,
)

_CERT_MANAGER: Final = "cert-manager.io/v1"
_MONITORING: Final = "monitoring.coreos.com/v1"
_CERTIFICATE: Final = "webhooks.certificate.certManager"


def surroundings() -> list[Description]:
    """Return everything that is there beside processes and their rights."""
    operators = (service(OPERATOR, "webhooks", 443), *_certificate())
    found: list[Description] = [When(computed.DEPLOYS_OPERATOR, each) for each in operators]
    found.append(When(computed.TELLS_AT_CREATION, service(GROUPER, "webhooks", 443)))
    for process in (*PROCESSES, DASHBOARD):
        found += [
            When(every(process.condition, Value("networkPolicy.enabled")), _network_policy(process)),
            When(every(process.condition, Value("metrics.service.enabled")), _metrics(process)),
            When(every(process.condition, Value("metrics.serviceMonitor.enabled")), _monitor(process)),
        ]
    return [
        *found,
        When(Value("metrics.prometheusRule.enabled"), _alerts()),
        When(Value("metrics.dashboard.enabled"), _dashboard()),
    ]


def _certificate() -> list[Description]:
    """Return a certificate by cert-manager and, where no issuer is named, one that signs for itself."""
    about = metadata(OPERATOR)
    issuer = {"apiVersion": _CERT_MANAGER, "kind": "Issuer", "metadata": about, "spec": {"selfSigned": {}}}
    certificate = {
        "apiVersion": _CERT_MANAGER,
        "kind": "Certificate",
        "metadata": about,
        "spec": {
            "secretName": computed.CERTIFICATE_SECRET,
            "dnsNames": [text(OPERATOR, ".", NAMESPACE, ".svc"), text(OPERATOR, ".", NAMESPACE, ".svc.cluster.local")],
            "issuerRef": _ISSUER,
        },
    }
    return [When(computed.SELF_SIGNED, issuer), When(Value(f"{_CERTIFICATE}.enabled"), certificate)]


_ISSUER: Final = Computed(
    f'.Values.{_CERTIFICATE}.issuerRef | default (dict "kind" "Issuer" "name" "{OPERATOR}")',
    lambda setting: setting.at(f"{_CERTIFICATE}.issuerRef") or {"kind": "Issuer", "name": OPERATOR},
)


def _network_policy(process: InstalledProcess) -> Description:
    """Return a policy that lets in what the process serves; who may read metrics can be narrowed down."""
    metrics, others = {"port": "metrics"}, [{"port": name} for name in process.ports if name != "metrics"]
    narrowed = Value("networkPolicy.metricsFrom")
    ingress: list[Description] = [{"ports": [*others]}] if others else []
    ingress += [
        When(narrowed, {"ports": [metrics], "from": narrowed}),
        When(no(narrowed), {"ports": [metrics]}),
    ]
    if process.name == SCHEDULER:  # the dashboard asks it for its cycles
        viewers = [{"podSelector": {"matchLabels": labels(DASHBOARD.name)}}]
        ingress.append(When(every(narrowed, DASHBOARD.condition), {"ports": [metrics], "from": viewers}))
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(process.name),
        "spec": {
            "podSelector": {"matchLabels": labels(process.name)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": ingress,
            "egress": [Each("networkPolicy.egress")],
        },
    }


def _metrics(process: InstalledProcess) -> Description:
    about = {"name": f"{process.name}-metrics", "annotations": given("metrics.service.annotations")}
    return service(process.name, "metrics", process.ports["metrics"], **about)


def _monitor(process: InstalledProcess) -> Description:
    return {
        "apiVersion": _MONITORING,
        "kind": "ServiceMonitor",
        "metadata": metadata(
            process.name, labels=computed.with_labels("metrics.serviceMonitor.labels", labels(process.name))
        ),
        "spec": {
            "selector": {"matchLabels": labels(process.name)},
            "endpoints": [{"port": "metrics", "interval": Value("metrics.serviceMonitor.interval")}],
        },
    }


def alerts() -> JSON:
    """Return what is worth an alert in every installation, as Prometheus reads rules."""
    found: JSON = yaml.safe_load(files("spinney.cli.installing").joinpath("alerts.yaml").read_text(encoding="utf-8"))
    return found


def _alerts() -> Description:
    return {
        "apiVersion": _MONITORING,
        "kind": "PrometheusRule",
        "metadata": metadata(
            "spinney", labels=computed.with_labels("metrics.prometheusRule.labels", labels("spinney"))
        ),
        "spec": alerts(),
    }


def _dashboard() -> Description:
    """Return the dashboard in a ConfigMap, as Grafana's sidecar looks for it."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(
            "spinney-dashboard", labels=computed.with_labels("metrics.dashboard.labels", labels("spinney"))
        ),
        "data": {"spinney.json": Computed(f'.Files.Get "{DASHBOARD_FILE}"', lambda _: dashboard_text())},
    }
