"""What cannot work is refused before anything is installed: by the command, and by the chart in the same words."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from spinney.cli.installing.computed import DEPLOYS_GROUPER, DEPLOYS_OPERATOR, ELECTS, NAMESPACE, configured
from spinney.cli.installing.description import ChartSetting, Computed, Condition, Text, Value, either, every, no, text


@dataclass(frozen=True)
class InstallationRefusal:
    """Values that cannot work, and the sentence that says why and what to do."""

    met: Condition
    words: Text

    @property
    def helm(self) -> str:
        """Return it as part of a template."""
        words = "".join(part if isinstance(part, str) else "%v" for part in self.words.parts)
        found = "".join(f" ({part.helm})" for part in self.words.parts if not isinstance(part, str))
        return f'{{{{- if {self.met.helm} -}}}}\n{{{{- fail (printf "{words}"{found}) -}}}}\n{{{{- end -}}}}\n'


_LEASE_NAMESPACE = Computed(
    'dig "leaderElection" "resourceNamespace" "" .Values.config | default .Release.Namespace',
    lambda setting: configured("leaderElection", "resourceNamespace", default="").of(setting) or setting.namespace,
)
_LEASE_IS_ELSEWHERE = Computed(
    f"ne ({_LEASE_NAMESPACE.helm}) {NAMESPACE.helm}",
    lambda setting: _LEASE_NAMESPACE.of(setting) != setting.namespace,
)
_REPLICAS = Computed("int .Values.replicaCount", lambda setting: setting.at("replicaCount"))
_SEVERAL = Computed(f"gt ({_REPLICAS.helm}) 1", lambda setting: _REPLICAS.of(setting) > 1)

REFUSALS: Final = (
    InstallationRefusal(
        every(DEPLOYS_OPERATOR, _SEVERAL, no(ELECTS)),
        text(
            "replicaCount ",
            _REPLICAS,
            " needs config.leaderElection.enabled: true; without it every replica would act",
        ),
    ),
    InstallationRefusal(
        no(either(DEPLOYS_OPERATOR, Value("coscheduler.enabled"), DEPLOYS_GROUPER)),
        text(
            "operator.enabled, coscheduler.enabled and grouper.enabled are all false: nothing would be installed; "
            "set one of them (to spinney manifests add --coscheduler or --grouper)"
        ),
    ),
    InstallationRefusal(
        every(
            Value("dashboard.enabled"),
            no(Value("dashboard.certificate.secretName")),
            no(Value("dashboard.behindProxy")),
        ),
        text(
            "dashboard.enabled needs dashboard.certificate.secretName (a Secret with tls.crt and tls.key), "
            "or dashboard.behindProxy: true"
        ),
    ),
    InstallationRefusal(
        every(Value("metrics.serviceMonitor.enabled"), no(Value("metrics.service.enabled"))),
        text(
            "metrics.serviceMonitor.enabled needs metrics.service.enabled: true; "
            "without Services there is nothing to scrape"
        ),
    ),
    InstallationRefusal(
        every(DEPLOYS_OPERATOR, _LEASE_IS_ELSEWHERE),
        text(
            "config.leaderElection.resourceNamespace is ",
            _LEASE_NAMESPACE,
            "; the operator may keep a Lease in ",
            NAMESPACE,
            " only, where it is installed",
        ),
    ),
    InstallationRefusal(
        every(DEPLOYS_OPERATOR, no(configured("server", "healthProbes", "enable", default=True))),
        text("config.server.healthProbes.enable is false; the kubelet would take the operator for one that hangs"),
    ),
)


def unworkable(setting: ChartSetting) -> Iterator[str]:
    """Return what is asked for and cannot work, each with what to do."""
    yield from (each.words.of(setting) for each in REFUSALS if each.met.of(setting))


def template_of_checks() -> str:
    """Return the named template of the chart that refuses the same."""
    return f'{{{{- define "spinney.checks" -}}}}\n{"".join(each.helm for each in REFUSALS)}{{{{- end -}}}}\n'
