"""The configuration file: both documents' forms, Grove's defaults, and everything that is wrong said at once."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from spinney.api.documents import InvalidDocument
from spinney.backends import catalogue, every_backend
from spinney.backends.kube import KubeSchedulerConfig
from spinney.cli.commands.processes import operator
from spinney.operator.configuration import LoadedOperatorConfiguration, check, effective, without_effect
from spinney.operator.operator import Settings


def load(text: str) -> LoadedOperatorConfiguration:
    """Check a configuration text."""
    return check(text, every_backend(), source="operator.yaml")


def problems(text: str) -> list[str]:
    """Return what is wrong with a configuration text."""
    with pytest.raises(InvalidDocument) as caught:
        load(text)
    return [str(problem) for problem in caught.value.problems]


def test_an_empty_file_means_kube_scheduler() -> None:
    """Without profiles only the kube backend is enabled, and it is the default."""
    loaded = load("")
    assert loaded.profiles.names() == ["default-scheduler"]
    assert loaded.profiles.default == "default-scheduler"
    assert load("scheduler: {profiles: []}").profiles == loaded.profiles


GROVES_DEFAULTS = {
    "runtimeClientConnection": {"qps": 100.0, "burst": 120, "contentType": "", "acceptContentTypes": ""},
    "leaderElection": {
        "enabled": False,
        "leaseDuration": "15s",
        "renewDeadline": "10s",
        "retryPeriod": "2s",
        "resourceLock": "leases",
        "resourceName": "grove-operator-leader-election",
        "resourceNamespace": "",
    },
    "controllers": {
        "podCliqueSet": {"concurrentSyncs": 10},
        "podClique": {"concurrentSyncs": 10},
        "podCliqueScalingGroup": {"concurrentSyncs": 5},
        "podGang": {"concurrentSyncs": 5},
    },
    "logLevel": "info",
    "logFormat": "json",
    "topologyAwareScheduling": {"enabled": False},
    "network": {"autoMNNVLEnabled": False},
    "debugging": None,
}

GROVES_CHART = """
apiVersion: operator.config.grove.io/v1alpha1
kind: OperatorConfiguration
runtimeClientConnection: {qps: 100, burst: 150}
leaderElection:
  enabled: true
  leaseDuration: 15s
  renewDeadline: 10s
  retryPeriod: 2s
  resourceLock: leases
  resourceName: grove-operator-leader-election
  resourceNamespace: grove-system
server:
  webhooks:
    port: 9443
    serverCertDir: /etc/grove-operator/webhook-certs
    secretName: grove-webhook-server-cert
    certProvisionMode: auto
  healthProbes: {enable: true, port: 9444}
  metrics: {port: 9445}
debugging: {enableProfiling: false}
controllers:
  podCliqueSet: {concurrentSyncs: 3}
  podClique: {concurrentSyncs: 3}
  podCliqueScalingGroup: {concurrentSyncs: 3}
logLevel: info
logFormat: json
authorizer:
  enabled: false
  exemptServiceAccountUserNames: ["system:serviceaccount:kube-system:generic-garbage-collector"]
  reconcilerServiceAccountUserName: system:serviceaccount:grove-system:grove-operator
topologyAwareScheduling: {enabled: false}
network: {autoMNNVLEnabled: false}
scheduler:
  profiles:
    - name: default-scheduler
    - name: kai-scheduler
"""


def test_defaults_are_groves() -> None:
    """Every field that is not written has Grove's default."""
    found = yaml.safe_load(effective(load("")))
    assert {key: found[key] for key in GROVES_DEFAULTS} == GROVES_DEFAULTS
    server = found["server"]
    assert (server["webhooks"]["port"], server["healthProbes"]["port"], server["metrics"]["port"]) == (2750, 2751, 2752)
    assert server["webhooks"]["serverCertDir"] == "/etc/grove-operator/webhook-certs"
    assert server["webhooks"]["secretName"] == "grove-webhook-server-cert"
    assert server["webhooks"]["certProvisionMode"] == "auto"
    assert found["authorizer"]["enabled"] is False


def test_the_file_of_groves_chart_is_valid() -> None:
    """A configuration as Grove's chart renders it is read whole, and means the same."""
    loaded = load(GROVES_CHART)
    assert loaded.profiles.names() == ["default-scheduler", "kai-scheduler"]
    assert loaded.profiles.default == "default-scheduler"
    assert list(Settings.of(loaded).workers.values()) == [3, 3, 3, 5]
    assert loaded.written.leader_election.enabled
    assert loaded.written.server.webhooks.port == 9443


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("runtimeClientConnection: {burst: -1}", "runtimeClientConnection.burst"),
        ("leaderElection: {enabled: true, leaseDuration: 10s}", "leaderElection.leaseDuration"),
        ("leaderElection: {enabled: true, retryPeriod: 0s}", "leaderElection.retryPeriod"),
        ("leaderElection: {enabled: true, resourceName: ''}", "leaderElection.resourceName"),
        ("leaderElection: {enabled: true, resourceLock: ''}", "leaderElection.resourceLock"),
        ("server: {webhooks: {certProvisionMode: sometimes}}", "server.webhooks.certProvisionMode"),
        ("controllers: {podClique: {concurrentSyncs: 0}}", "controllers.podClique.concurrentSyncs"),
        ("logLevel: loud", "logLevel"),
        ("logFormat: xml", "logFormat"),
        ("apiVersion: v2", "apiVersion"),
        ("kind: ConfigMap", "kind"),
    ],
)
def test_every_rule_of_groves_names_its_field(text: str, path: str) -> None:
    """Each validation of Grove's configuration refuses what Grove refuses, with the field's path."""
    (found,) = problems(text)
    assert found.startswith(f"operator.yaml:1: {path}: ")


def test_leader_election_is_only_checked_where_it_is_used() -> None:
    """Periods of an election that is switched off do not matter."""
    assert not load("leaderElection: {leaseDuration: 1s, resourceName: ''}").written.leader_election.enabled


@pytest.mark.parametrize(
    ("text", "default"),
    [
        ("scheduler: {profiles: [{name: kube-scheduler, default: true}]}", "default-scheduler"),
        ("scheduler: {profiles: [{name: kai-scheduler, config: {}, default: true}]}", "kai-scheduler"),
        ("scheduler: {profiles: [{name: kai-scheduler}]}", "default-scheduler"),
        ("scheduler: {profiles: [{name: kai-scheduler}], defaultProfileName: kai-scheduler}", "kai-scheduler"),
        ("scheduler: {profiles: [{name: volcano, default: true}], defaultProfileName: volcano}", "volcano"),
        ("scheduler: {defaultProfileName: kube-scheduler}", "default-scheduler"),
    ],
)
def test_the_default_profile_is_found_in_both_forms(text: str, default: str) -> None:
    """``default: true`` and ``defaultProfileName`` both name the default; kube-scheduler is always enabled."""
    profiles = load(text).profiles
    assert profiles.default == default
    assert "default-scheduler" in profiles.names()


@pytest.mark.parametrize("key", ["gangScheduling", "GangScheduling"])
def test_kube_config_is_typed_and_has_the_drafts_spelling_too(key: str) -> None:
    """Gang scheduling of the kube backend is read in both spellings."""
    loaded = load(f"scheduler: {{profiles: [{{name: kube-scheduler, config: {{{key}: true}}}}]}}")
    assert loaded.profiles.enabled[0].config == KubeSchedulerConfig(gang_scheduling=True)


def test_two_defaults_name_both_lines() -> None:
    """Two profiles marked as default are refused with both lines."""
    text = """
scheduler:
  profiles:
    - name: kube-scheduler
      default: true
    - name: kai-scheduler
      default: true
"""
    assert problems(text) == [
        "operator.yaml:7: scheduler.profiles[1].default: 'kai-scheduler' is marked as the default, and so is "
        "'default-scheduler' in line 5; only one profile can be"
    ]


def test_the_two_forms_must_agree() -> None:
    """``defaultProfileName`` and ``default: true`` for different profiles are refused, naming the lines."""
    text = """
scheduler:
  defaultProfileName: default-scheduler
  profiles:
    - name: kai-scheduler
      default: true
"""
    assert problems(text) == [
        "operator.yaml:3: scheduler.defaultProfileName: names 'default-scheduler', but line 6 marks 'kai-scheduler' "
        "as the default"
    ]


def test_kube_under_both_names_is_listed_twice() -> None:
    """kube-scheduler and default-scheduler are one backend."""
    found = problems("scheduler:\n  profiles:\n    - name: kube-scheduler\n    - name: default-scheduler\n")
    assert found == [
        "operator.yaml:4: scheduler.profiles[1].name: backend 'default-scheduler' is already listed in line 3; "
        "remove one of the two"
    ]


def test_unknown_keys_are_named_with_the_nearest_one() -> None:
    """Every unknown key is reported with its line and the key that was probably meant."""
    text = """
leaderElection:
  enabld: true
scheduler:
  profiles:
    - name: kube-scheduler
      config:
        gangSchedulin: true
"""
    assert problems(text) == ["operator.yaml:3: leaderElection.enabld: unknown key; did you mean 'enabled'?"]
    assert problems(text.replace("enabld", "enabled")) == [
        "operator.yaml:8: scheduler.profiles[0].config.gangSchedulin: unknown key; did you mean 'gangScheduling'?"
    ]


def test_an_unknown_backend_is_named_with_the_nearest_one() -> None:
    """A profile for a backend that is not installed is refused with a suggestion."""
    (found,) = problems("scheduler: {profiles: [{name: kai-sheduler}]}")
    assert found.startswith("operator.yaml:1: scheduler.profiles[0].name: no backend is called 'kai-sheduler'; did you")


def test_wrong_types_and_values_are_said_with_their_line() -> None:
    """Values of the wrong type, durations that are none and impossible periods are named."""
    assert problems("logLevel: loud") == ["operator.yaml:1: logLevel: found 'loud'; expected one of debug, error, info"]
    (found,) = problems("leaderElection:\n  leaseDuration: soon\n")
    assert found.startswith("operator.yaml:2: leaderElection.leaseDuration: 'soon' is not a duration; expected numbers")
    (found,) = problems("leaderElection: {leaseDuration: 15}")
    assert "leaderElection.leaseDuration: '15' is not a duration" in found
    (found,) = problems("leaderElection: {leaseDuration: 3000000h}")
    assert "leaderElection.leaseDuration: '3000000h' is too long; the longest duration is 2562047h47m16s" in found
    found_all = problems(
        "leaderElection: {enabled: true, leaseDuration: 5s}\ncontrollers: {podGang: {concurrentSyncs: 0}}"
    )
    assert [each.split(": ", 2)[1] for each in found_all] == [
        "leaderElection.leaseDuration",
        "controllers.podGang.concurrentSyncs",
    ]


def test_a_key_given_twice_is_refused() -> None:
    """A duplicate key, of which YAML would silently keep the last, is refused."""
    assert problems("logLevel: info\nlogLevel: debug") == ["operator.yaml:2: logLevel: given twice, first in line 1"]


def test_config_for_a_backend_that_takes_none_is_refused() -> None:
    """A backend without configuration says so."""
    assert problems("scheduler: {profiles: [{name: volcano, config: {queue: x}}]}") == [
        "operator.yaml:1: scheduler.profiles[0].config: backend 'volcano' takes no configuration; remove it"
    ]


def test_the_command_checks_a_file(tmp_path: Path) -> None:
    """``spinney operator --check`` says what is wrong with status 2, or prints what is in force with status 0."""
    file = tmp_path / "operator.yaml"
    file.write_text("scheduler: {profiles: [{name: kai-scheduler, default: true}]}")
    good = CliRunner().invoke(operator, ["--config", str(file), "--check"])
    assert (good.exit_code, "kai-scheduler (default)" in good.output) == (0, True)
    file.write_text(good.output)
    again = CliRunner().invoke(operator, ["--config", str(file), "--check"])
    assert again.output == good.output, "what is printed can be used as it is"
    file.write_text("schduler: {}")
    bad = CliRunner().invoke(operator, ["--config", str(file), "--check"])
    assert (bad.exit_code, "did you mean 'scheduler'?" in bad.output) == (2, True)


BROKEN = {
    "a name that is not installed": (
        "scheduler:\n  profiles:\n    - name: acme-scheduler\n",
        "3: scheduler.profiles[0].name: no backend is called 'acme-scheduler'",
    ),
    "a duplicate": (
        "scheduler:\n  profiles:\n    - name: kai-scheduler\n    - name: kai-scheduler\n",
        "4: scheduler.profiles[1].name: backend 'kai-scheduler' is already listed in line 3",
    ),
    "two defaults": (
        "scheduler:\n  profiles:\n    - {name: volcano, default: true}\n    - {name: kai-scheduler, default: true}\n",
        "4: scheduler.profiles[1].default: 'kai-scheduler' is marked as the default, and so is 'volcano' in line 3",
    ),
    "a default that is not enabled": (
        "scheduler:\n  defaultProfileName: volcano\n",
        "2: scheduler.defaultProfileName: profile 'volcano' is not enabled",
    ),
    "a profile without a name": (
        "scheduler:\n  profiles:\n    - default: true\n",
        "3: scheduler.profiles[0]: object missing required field `name`",
    ),
    "an unknown key": ("logLevl: info\n", "1: logLevl: unknown key; did you mean 'logLevel'?"),
    "an unknown key of a backend": (
        "scheduler:\n  profiles:\n    - name: kube-scheduler\n      config:\n        gangs: true\n",
        "5: scheduler.profiles[0].config.gangs: unknown key",
    ),
    "a mistyped value of a backend": (
        "scheduler:\n  profiles:\n    - name: kube-scheduler\n      config:\n        gangScheduling: sometimes\n",
        "5: scheduler.profiles[0].config.gangScheduling: expected `bool`, got `str`",
    ),
    "another major version": (
        "scheduler:\n  profiles:\n    - name: theirs\n",
        "3: scheduler.profiles[0].name: backend 'theirs' (tests.backends.test_registry.FromTheFuture) is written for "
        "backend interface 2.0, this operator serves 1.1",
    ),
    "a name that two packages claim": (
        "scheduler:\n  profiles:\n    - name: volcano\n",
        "3: scheduler.profiles[0].name: two backends are called 'volcano'",
    ),
    "a package that cannot be imported": (
        "scheduler:\n  profiles:\n    - name: broken\n",
        "3: scheduler.profiles[0].name: backend 'broken': importing no.such:Thing failed",
    ),
    "not YAML": ("scheduler: [\n", "2: document: "),
}

ENTRY_POINTS = """\
[spinney.backends]
theirs = tests.backends.test_registry:FromTheFuture
volcano = somewhere:Else
broken = no.such:Thing
"""


@pytest.fixture
def a_package_of_somebody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package on the path, as installing leaves it: its backends are outdated, disputed and broken."""
    package = tmp_path / "packages" / "theirs-1.0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(package.parent))
    catalogue._installed.cache_clear()
    yield
    catalogue._installed.cache_clear()


@pytest.mark.usefixtures("a_package_of_somebody_else")
@pytest.mark.parametrize("what", BROKEN)
def test_the_operator_does_not_start_and_names_the_line(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is wrong in the file ends the operator with status 2 before it speaks to any cluster."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    text, message = BROKEN[what]
    file = tmp_path / "operator.yaml"
    file.write_text(text)
    ended = CliRunner().invoke(operator, ["--config", str(file)])
    assert ended.exit_code == 2
    assert f"{file}:{message}" in ended.output


@pytest.mark.usefixtures("a_package_of_somebody_else")
def test_what_is_wrong_with_a_package_nobody_enables_does_not_matter() -> None:
    """Broken, outdated and disputed backends stop nobody who leaves them alone."""
    assert load("scheduler: {profiles: [{name: kai-scheduler}]}").profiles.names() == [
        "default-scheduler",
        "kai-scheduler",
    ]


def test_the_configuration_in_force_says_everything() -> None:
    """Written out, a configuration has every default and every enabled backend, and loads as the same again."""
    loaded = load(
        """
controllers: {podGang: {concurrentSyncs: 3}}
leaderElection: {leaseDuration: 1m30s}
scheduler:
  profiles:
    - {name: kai-scheduler, default: true}
    - {name: coscheduling, config: {schedulerName: plugins}}
"""
    )
    text = effective(loaded)
    for line in ("concurrentSyncs: 3", "concurrentSyncs: 10", "leaseDuration: 1m30s", "gangScheduling: false"):
        assert line in text
    again = load(text)
    assert effective(again) == text
    assert again.profiles.default == "kai-scheduler"
    assert {each.name: each.config for each in again.profiles.enabled} == {
        each.name: each.config for each in loaded.profiles.enabled
    }


def test_every_key_that_has_no_effect_is_known() -> None:
    """Each key whose description says that it has no effect is one that is told at start."""
    page = (Path(__file__).parents[2] / "docs" / "reference" / "configuration.md").read_text(encoding="utf-8")
    idle = set(re.findall(r"^\| `([\w.]+)` .*Without effect here", page, re.MULTILINE))
    text = (
        "runtimeClientConnection: {qps: 1, burst: 1, contentType: a, acceptContentTypes: a}\n"
        "debugging: {enableProfiling: true, pprofBindHost: a, pprofBindPort: 1}"
    )
    assert {key for key, _ in without_effect(check(text, every_backend()).written)} == idle


def test_keys_without_effect_are_told() -> None:
    """A limit on requests that is not kept is said at start, and only where somebody wrote one that differs."""
    quiet = check("runtimeClientConnection: {qps: 100, burst: 120}", every_backend())
    told = check("runtimeClientConnection: {qps: 5}\ndebugging: {enableProfiling: true}", every_backend())
    assert list(without_effect(quiet.written)) == []
    assert [key for key, _ in without_effect(told.written)] == [
        "runtimeClientConnection.qps",
        "debugging.enableProfiling",
    ]
