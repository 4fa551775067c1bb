"""The dashboard of an installation: a page for people who bring their own tokens.

Its service account may do nothing: everything is read with the viewers' tokens. What people need to see all
of it is a ClusterRole, which is there to be bound to them.
"""

from typing import Final

from spinney.backends import Right
from spinney.cli.installing import computed, rights
from spinney.cli.installing.computed import NAMESPACE
from spinney.cli.installing.description import Description, Value, When, text
from spinney.cli.installing.processes import SCHEDULER, SCHEDULER_PORT, InstalledProcess, labels, metadata, service
from spinney.dashboard.rights import FOLLOWED
from spinney.scheduler.process.endpoint import CYCLES, EXPLANATIONS

NAME: Final = "spinney-dashboard"
PORT: Final = 8443
REPLICAS: Final = f"{SCHEDULER}-replicas"
"""A headless Service: of the scheduler's replicas only the leader has cycles to tell, so each one is asked."""
_CERTIFICATE: Final = "/etc/spinney-tls"
_SECRET: Final = Value("dashboard.certificate.secretName")

DASHBOARD: Final = InstalledProcess(
    name=NAME,
    command="dashboard",
    condition=Value("dashboard.enabled"),
    configuration=None,
    replicas=1,
    ports={"page": PORT, "metrics": SCHEDULER_PORT},
    health="metrics",
    arguments=[
        "--address=$(POD_IP)",
        f"--port={PORT}",
        f"--metrics-port={SCHEDULER_PORT}",
        When(_SECRET, f"--tls-cert-file={_CERTIFICATE}/tls.crt"),
        When(_SECRET, f"--tls-private-key-file={_CERTIFICATE}/tls.key"),
        When(Value("dashboard.behindProxy"), "--behind-proxy"),
        When(computed.DEPLOYS_SCHEDULER, text(f"--scheduler=http://{REPLICAS}.", NAMESPACE, f".svc:{SCHEDULER_PORT}")),
    ],
    environment=[{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
    volumes=[When(_SECRET, {"name": "certificate", "secret": {"secretName": _SECRET}})],
    mounts=[When(_SECRET, {"name": "certificate", "mountPath": _CERTIFICATE, "readOnly": True})],
)


def page_objects() -> list[Description]:
    """Return the dashboard's objects, its service, and the viewers' role."""
    more = (service(NAME, "page", 443), When(computed.DEPLOYS_SCHEDULER, _replicas()), _viewers())
    return [*DASHBOARD.objects(), *(When(DASHBOARD.condition, each) for each in more)]


def _replicas() -> Description:
    """Return the Service behind which each replica of the scheduler is found; it is no part of what is scraped."""
    ports = [{"name": "cycles", "port": SCHEDULER_PORT, "targetPort": "metrics"}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {**metadata(NAME), "name": REPLICAS},
        "spec": {"clusterIP": "None", "selector": labels(SCHEDULER), "ports": ports},
    }


def _viewers() -> Description:
    kinds: dict[str, list[str]] = {}
    for kind in FOLLOWED:
        kinds.setdefault(kind.group, []).append(kind.plural)
    reading = rights.rules(Right(group, tuple(sorted(set(names))), rights.READ) for group, names in kinds.items())
    paths = {"nonResourceURLs": [CYCLES, EXPLANATIONS], "verbs": ["get"]}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": f"{NAME}-viewer", "labels": labels(NAME)},
        "rules": [*reading, paths],
    }
