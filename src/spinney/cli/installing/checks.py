"""What cannot work is refused before anything is installed; the chart's ``_checks.tpl`` says the same.

How many replicas there may be is not here: the command chooses a number itself where none is given.
"""

from collections.abc import Iterator

from spinney.cli.installing.computed import configured
from spinney.cli.installing.description import ChartSetting

_LEASE_NAMESPACE = configured("leaderElection", "resourceNamespace", default="")
_ANSWERS_PROBES = configured("server", "healthProbes", "enable", default=True)


def unworkable(setting: ChartSetting) -> Iterator[str]:
    """Return what is asked for and cannot work, each with what to do."""
    operator = setting.at("operator.enabled")
    if not operator and not setting.at("coscheduler.enabled"):
        yield "without the operator there is nothing to install; add --coscheduler"
    if (
        setting.at("dashboard.enabled")
        and not setting.at("dashboard.certificate.secretName")
        and not setting.at("dashboard.behindProxy")
    ):
        yield (
            "dashboard.enabled needs dashboard.certificate.secretName (a Secret with tls.crt and tls.key), "
            "or dashboard.behindProxy: true"
        )
    if setting.at("metrics.serviceMonitor.enabled") and not setting.at("metrics.service.enabled"):
        yield (
            "metrics.serviceMonitor.enabled needs metrics.service.enabled: true; "
            "without Services there is nothing to scrape"
        )
    lease = _LEASE_NAMESPACE.of(setting) or setting.namespace
    if operator and lease != setting.namespace:
        yield (
            f"config.leaderElection.resourceNamespace is {lease}; the operator may keep a Lease in "
            f"{setting.namespace} only, where it is installed"
        )
    if operator and not _ANSWERS_PROBES.of(setting):
        yield "config.server.healthProbes.enable is false; the kubelet would take the operator for one that hangs"
