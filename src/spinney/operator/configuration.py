"""The operator's configuration file (``operator.config.grove.io/v1alpha1 OperatorConfiguration``).

Every field of Grove's file is read, with Grove's defaults, so an installation can be taken over with its ConfigMap.
Unlike Grove's, the reading is strict: what is not understood is named, with its line and the nearest key that exists.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import yaml

from spinney.api.documents import InvalidDocument, Step, decode, parse
from spinney.api.durations import format_duration
from spinney.api.schema.validate_size import DEFAULT_LIMITS, SizeLimits
from spinney.api.struct import JSON, Struct
from spinney.backends.catalogue import Catalogue
from spinney.backends.profiles import Profiles, SchedulerConfiguration, resolve
from spinney.kube.webhooks.configuration import WebhookServing

WORKERS: Final = {"pod_clique_set": 10, "pod_clique": 10, "pod_clique_scaling_group": 5, "pod_gang": 5}
"""How many objects of each kind are reconciled at the same time unless the file says otherwise, as with Grove."""
API_VERSION = "operator.config.grove.io/v1alpha1"
KIND = "OperatorConfiguration"


class ClientConnection(Struct, frozen=True, kw_only=True):
    """How hard the API server may be driven; read so that Grove's files are valid.

    Spinney's client has no limit of its own: it follows the API server's priority and fairness (429, Retry-After).
    """

    qps: float = 100.0
    """Without effect here; Grove's limit on requests per second."""
    burst: int = 120
    """Without effect here; Grove's limit on requests at once."""
    content_type: str = ""
    """Without effect here; requests are sent as JSON."""
    accept_content_types: str = ""
    """Without effect here; answers are read as JSON."""


class LeaderElectionConfiguration(Struct, frozen=True, kw_only=True):
    """Which of several operators acts. The lease has Grove's name, so the two never act at the same time."""

    enabled: bool = False
    """Act only while holding the lease; needed as soon as two operators may run, as in a rolling upgrade."""
    lease_duration: timedelta = timedelta(seconds=15)
    """How long others wait after the last renewal before they take over."""
    renew_deadline: timedelta = timedelta(seconds=10)
    """How long the leader tries to renew before it stops acting; less than leaseDuration."""
    retry_period: timedelta = timedelta(seconds=2)
    """How long to wait between two attempts to get or renew the lease."""
    resource_lock: str = "leases"
    """What kind of object the lease is; only `leases` exists."""
    resource_name: str = "grove-operator-leader-election"
    """What the Lease is called; operators with the same name and namespace exclude each other."""
    resource_namespace: str = ""
    """Where the Lease is; by default the namespace the operator runs in."""


class WebhookServerConfiguration(WebhookServing, frozen=True, kw_only=True):
    """Where the operator answers admission reviews, and with which certificate."""

    server_cert_dir: str = "/etc/grove-operator/webhook-certs"
    secret_name: str = "grove-webhook-server-cert"  # noqa: S105 - the name of a Secret


class EndpointConfiguration(Struct, frozen=True, kw_only=True):
    """A port to listen on; ``enable`` is written by Grove's chart for the probes."""

    bind_address: str = ""
    """Address to listen on; empty is all."""
    port: int = 0
    """Port to listen on."""
    enable: bool = True
    """Whether to listen at all."""


class ServerConfiguration(Struct, frozen=True, kw_only=True):
    """What the operator serves."""

    webhooks: WebhookServerConfiguration = WebhookServerConfiguration()
    health_probes: EndpointConfiguration = EndpointConfiguration(port=2751)
    metrics: EndpointConfiguration = EndpointConfiguration(port=2752)


class Debugging(Struct, frozen=True, kw_only=True):
    """Go profiling endpoints; read so that Grove's files are valid, and without effect here."""

    enable_profiling: bool | None = None
    """Without effect here; Go's profiler."""
    pprof_bind_host: str = "127.0.0.1"
    """Without effect here; where Go's profiler listens."""
    pprof_bind_port: int = 2753
    """Without effect here; where Go's profiler listens."""


class Concurrency(Struct, frozen=True, kw_only=True):
    """How many objects of a kind are reconciled at the same time."""

    concurrent_syncs: int | None = None
    """How many objects of the kind are reconciled at the same time; absent: 10, and 5 for scaling groups and gangs."""


class Controllers(Struct, frozen=True, kw_only=True):
    """Concurrency of each controller."""

    pod_clique_set: Concurrency = Concurrency()
    pod_clique: Concurrency = Concurrency()
    pod_clique_scaling_group: Concurrency = Concurrency()
    pod_gang: Concurrency = Concurrency()


class AuthorizerConfiguration(Struct, frozen=True, kw_only=True):
    """Protection of generated objects against others than the operator."""

    enabled: bool = False
    """Refuse changes to generated objects by users other than the operator and those exempted."""
    exempt_service_account_user_names: tuple[str, ...] = ()
    """Users who may change generated objects, as system:serviceaccount:NAMESPACE:NAME."""
    reconciler_service_account_user_name: str = ""
    """Written by Grove's chart, read by nobody."""


class TopologyAwareScheduling(Struct, frozen=True, kw_only=True):
    """Whether topology constraints are honoured."""

    enabled: bool = False
    """Honour topology constraints; off: a PodCliqueSet that has one is refused."""


class NetworkConfiguration(Struct, frozen=True, kw_only=True):
    """Multi-node NVLink."""

    auto_mnnvl_enabled: bool = msgspec.field(default=False, name="autoMNNVLEnabled")
    """Give workloads that use GPUs a ComputeDomain per replica, for multi-node NVLink; its CRD must be there."""


class SetLimits(Struct, frozen=True, kw_only=True):
    """The most that one PodCliqueSet may come to; one that asks for more is refused. Spinney's own, not in Grove."""

    pods_per_set: int = DEFAULT_LIMITS.pods
    """Pods of all replicas, scaling groups and cliques of one set together."""
    gangs_per_set: int = DEFAULT_LIMITS.gangs
    """PodGangs of one set: one for each replica, and one for each scaling group replica beyond its minimum."""

    def sizes(self) -> SizeLimits:
        """Return the limits as validation takes them."""
        return SizeLimits(pods=self.pods_per_set, gangs=self.gangs_per_set)


def _waiting_resources() -> JSON:
    # Requests equal limits, so that a pod that would be Guaranteed without the container still is.
    amounts = {"cpu": "100m", "memory": "128Mi"}
    return {"requests": amounts, "limits": amounts}


def _waiting_security() -> JSON:
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


class InitContainer(Struct, frozen=True, kw_only=True):
    """The container in which a pod waits for the cliques it starts after. Its image is the operator's own."""

    enabled: bool = True
    """Off: sets with a start-up order are refused, and the operator needs no right to Secrets but its own one."""
    image: str = ""
    """The image; empty: the environment variable GROVE_INIT_CONTAINER_IMAGE, which the installation sets."""
    image_pull_policy: str = ""
    """When the kubelet pulls the image; empty: as it pulls the operator's."""
    image_pull_secrets: tuple[str, ...] = ()
    """Secrets to pull the image with, added to pods that wait; empty: the operator's. Each namespace has its own."""
    resources: JSON = msgspec.field(default_factory=_waiting_resources)
    """Requests and limits of the container; a ResourceQuota asks for them."""
    security_context: JSON = msgspec.field(default_factory=_waiting_security)
    """Security context of the container; the default passes the Pod Security Standard `restricted`."""


class OperatorConfiguration(Struct, frozen=True, kw_only=True):
    """The whole file."""

    api_version: str = API_VERSION
    """Always this."""
    kind: str = KIND
    """Always this."""
    runtime_client_connection: ClientConnection = ClientConnection()
    leader_election: LeaderElectionConfiguration = LeaderElectionConfiguration()
    server: ServerConfiguration = ServerConfiguration()
    debugging: Debugging | None = None
    """Go profiling; read so that Grove's files are valid, and without effect here."""
    controllers: Controllers = Controllers()
    log_level: Literal["debug", "info", "error"] = "info"
    """How much to log."""
    log_format: Literal["json", "text"] = "json"
    """One JSON object per line, or text for people."""
    authorizer: AuthorizerConfiguration = AuthorizerConfiguration()
    topology_aware_scheduling: TopologyAwareScheduling = TopologyAwareScheduling()
    network: NetworkConfiguration = NetworkConfiguration()
    limits: SetLimits = SetLimits()
    init_container: InitContainer = InitContainer()
    scheduler: SchedulerConfiguration = SchedulerConfiguration()


@dataclass(frozen=True)
class LoadedOperatorConfiguration:
    """A configuration that may be used: as written, and the scheduler profiles it amounts to."""

    written: OperatorConfiguration
    profiles: Profiles


def load(path: Path, catalogue: Catalogue) -> LoadedOperatorConfiguration:
    """Read a file, or raise :class:`InvalidDocument` with everything that is wrong in it."""
    return check(path.read_text(encoding="utf-8"), catalogue, source=str(path))


def check(text: str, catalogue: Catalogue, *, source: str = "configuration") -> LoadedOperatorConfiguration:
    """Read a configuration, or raise :class:`InvalidDocument` with everything that is wrong in it."""
    document = parse(text, source)
    written = decode(OperatorConfiguration, document)
    problems = [document.problem(path, message) for path, message in _faults(written)]
    profiles = Profiles()
    try:
        profiles = resolve(written.scheduler, catalogue, document.at("scheduler"))
    except InvalidDocument as error:
        problems += error.problems
    if problems:
        raise InvalidDocument(problems)
    return LoadedOperatorConfiguration(written, profiles)


def workers(written: OperatorConfiguration) -> dict[str, int]:
    """Return how many objects of each kind are reconciled at the same time."""
    return {name: getattr(written.controllers, name).concurrent_syncs or default for name, default in WORKERS.items()}


def effective(configuration: LoadedOperatorConfiguration) -> str:
    """Return the configuration in force as a file that says everything: defaults, enabled backends, their settings.

    Loading it gives the same configuration again.
    """
    written = configuration.written
    profiles = [
        {
            "name": profile.name,
            "default": profile.name == configuration.profiles.default,
            **({} if profile.config is None else {"config": _spelled_out(profile.config)}),
        }
        for profile in configuration.profiles.enabled
    ]
    everything = {
        **_spelled_out(written),
        "controllers": {_camel(name): {"concurrentSyncs": count} for name, count in workers(written).items()},
        "scheduler": {"profiles": profiles},
    }
    return yaml.safe_dump(everything, sort_keys=False)


def _spelled_out(value: Any) -> Any:
    """Return a struct as plain values with every field in it, also those that have their default."""
    if isinstance(value, msgspec.Struct):
        fields = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
        return {spelled: _spelled_out(getattr(value, name)) for spelled, name in fields}
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, tuple | list):
        return [_spelled_out(each) for each in value]
    return value


def without_effect(written: OperatorConfiguration) -> Iterator[tuple[str, str]]:
    """Return the keys that are set to something and change nothing here, each with the reason."""
    for group, names, why in _WITHOUT_EFFECT:
        section = getattr(written, group)
        for name in names:
            default = getattr(type(section)(), name) if section is not None else None
            if section is not None and getattr(section, name) != default:
                yield f"{_camel(group)}.{_camel(name)}", why


_WITHOUT_EFFECT: Final = (
    (
        "runtime_client_connection",
        ("qps", "burst"),
        "requests are not limited here; the API server's priority and fairness is followed (429, Retry-After)",
    ),
    ("runtime_client_connection", ("content_type", "accept_content_types"), "objects are sent and read as JSON"),
    ("debugging", ("enable_profiling", "pprof_bind_host", "pprof_bind_port"), "there is no Go profiler"),
)


Fault = tuple[tuple[Step, ...], str]


def _faults(written: OperatorConfiguration) -> Iterator[Fault]:
    if written.api_version != API_VERSION:
        yield ("apiVersion",), f"found {written.api_version!r}, expected {API_VERSION!r}"
    if written.kind != KIND:
        yield ("kind",), f"found {written.kind!r}, expected {KIND!r}"
    if written.runtime_client_connection.burst < 0:
        yield ("runtimeClientConnection", "burst"), "must not be negative"
    for name in SetLimits.__struct_fields__:
        if (most := getattr(written.limits, name)) <= 0:
            yield ("limits", _camel(name)), f"found {most}, expected a number above 0"
    yield from _election_faults(written.leader_election)
    for name in WORKERS:
        syncs = getattr(written.controllers, name).concurrent_syncs
        if syncs is not None and syncs <= 0:
            yield ("controllers", _camel(name), "concurrentSyncs"), f"found {syncs}, expected a number above 0"


def _election_faults(election: LeaderElectionConfiguration) -> Iterator[Fault]:
    if not election.enabled:
        return
    for name in ("lease_duration", "renew_deadline", "retry_period"):
        if getattr(election, name) <= timedelta():
            yield ("leaderElection", _camel(name)), "must be longer than nothing"
    if election.lease_duration <= election.renew_deadline:
        yield ("leaderElection", "leaseDuration"), "must be longer than renewDeadline"
    if election.renew_deadline < 2 * election.retry_period:
        yield ("leaderElection", "renewDeadline"), "must leave time for two tries: at least twice retryPeriod"
    for name in ("resource_lock", "resource_name"):
        if not getattr(election, name):
            yield ("leaderElection", _camel(name)), "must not be empty"


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
