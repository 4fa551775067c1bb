"""The grouper's configuration file (``GrouperConfiguration``): whose pods, by which rules, for which schedulers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spinney.api.documents import Document, DocumentProblem, InvalidDocument, Step, decode, parse
from spinney.api.names import label_value_faults, qualified_name_faults
from spinney.api.struct import Struct
from spinney.backends.builtin import every_backend
from spinney.backends.catalogue import Catalogue
from spinney.backends.profiles import Profiles, SchedulerConfiguration, SchedulerProfile, resolve
from spinney.grouping import loading
from spinney.grouping.attributes import PREEMPTIBILITIES, Conventions
from spinney.grouping.rules import Fallback, Rule, RuleSet
from spinney.grouping.world import KindDefault
from spinney.kube.webhooks.configuration import WebhookServing

API_VERSION: Final = "grouper.spinney.dev/v1alpha1"
KIND: Final = "GrouperConfiguration"
OURS: Final = SchedulerProfile(name="spinney-scheduler", default=True)
"""The profile where none is listed."""


class ConfigMapReference(Struct, frozen=True, kw_only=True):
    """A ConfigMap by namespace and name."""

    namespace: str
    """Its namespace."""
    name: str
    """Its name."""


class AdmissionConfiguration(WebhookServing, frozen=True, kw_only=True):
    """Telling pods their gang while they are created."""

    enabled: bool = True
    """Whether pods are told while they are created; otherwise each is written once more after that. The API server asks
    a webhook of the grouper, which is served where the grouper runs in the cluster."""
    server_cert_dir: str = "/etc/spinney-grouper/webhook-certs"
    secret_name: str = "spinney-grouper-webhook-cert"  # noqa: S105 - the name of a Secret


class GrouperConfiguration(Conventions, frozen=True, kw_only=True):
    """The whole file."""

    api_version: str = API_VERSION
    """Always this."""
    kind: str = KIND
    """Always this."""
    scheduler_names: tuple[str, ...] = ()
    """Pods of these schedulers are grouped; absent: of every enabled profile but kube-scheduler."""
    scheduler: SchedulerConfiguration = SchedulerConfiguration()
    """The scheduler backends that gangs are handed to, as in the operator's configuration; without profiles:
    spinney-scheduler."""
    rules: tuple[Rule, ...] = ()
    """Rules of your own, and those that replace ours; docs/grouping.md explains the fields."""
    without: tuple[str, ...] = ()
    """Kinds (`group/Kind`) whose rule of ours is left out."""
    fallback: Fallback = "Wait"
    """What happens to pods whose rule cannot be applied: `Wait`, `Alone` (gangs of their own) or `Default` (the rule
    of unknown kinds)."""
    pod_labels: Mapping[str, str] = {}
    """Only pods with these labels are grouped."""
    namespace_labels: Mapping[str, str] = {}
    """Only pods of namespaces with these labels are grouped."""
    kind_defaults: tuple[KindDefault, ...] = ()
    """Priority class and preemptibility of workloads of a kind that say nothing themselves."""
    kind_defaults_config_map: ConfigMapReference | None = None
    """A ConfigMap with such defaults under the key `types`, as KAI reads it; it comes before `kindDefaults`."""
    admission: AdmissionConfiguration = AdmissionConfiguration()
    """Telling pods their gang while they are created; docs/grouping.md says what that saves."""
    workers: int = 10
    """How many gangs are worked on at the same time."""


@dataclass(frozen=True)
class LoadedGrouperConfiguration:
    """A configuration that may be used: as written, with the rules and scheduler profiles it amounts to."""

    written: GrouperConfiguration
    rules: RuleSet
    profiles: Profiles


def load(path: Path, catalogue: Catalogue | None = None) -> LoadedGrouperConfiguration:
    """Read a file, or raise :class:`InvalidDocument` with everything that is wrong in it."""
    return check(path.read_text(encoding="utf-8"), str(path), catalogue)


def check(text: str, source: str = "configuration", catalogue: Catalogue | None = None) -> LoadedGrouperConfiguration:
    """Read a configuration, or raise :class:`InvalidDocument` with everything that is wrong in it."""
    document = parse(text, source)
    written = decode(GrouperConfiguration, document)
    problems = [document.problem(path, message) for path, message in _faults(written)]
    profiles = Profiles()
    try:
        loading.check(written.rules, document, ("rules",))
    except InvalidDocument as error:
        problems += error.problems
    try:
        profiles = resolve(_scheduler(written), catalogue or every_backend(), document.at("scheduler"))
    except InvalidDocument as error:
        problems += error.problems
    else:
        problems += _unserved(written, profiles, document)
    problems += _unknown_kinds(written, document)
    if problems:
        raise InvalidDocument(problems)
    return LoadedGrouperConfiguration(written, loading.built_in().replaced_by(written.rules, written.without), profiles)


def _scheduler(written: GrouperConfiguration) -> SchedulerConfiguration:
    """Return the scheduler block: as written or, where nobody but kube-scheduler is in it, with our own scheduler."""
    return written.scheduler if written.scheduler.profiles else SchedulerConfiguration(profiles=(OURS,))


def _unserved(written: GrouperConfiguration, profiles: Profiles, document: Document) -> Iterator[DocumentProblem]:
    """Return the scheduler names that no profile is for: nobody's pods would be grouped, and nobody would say so."""
    known = {str(getattr(each.config, "scheduler_name", each.name)) for each in profiles.enabled}
    for number, name in enumerate(written.scheduler_names):
        if name not in known:
            text = f"no profile is for {name!r}, but for {', '.join(sorted(known))}"
            yield document.problem(("schedulerNames", number), f"{text}; list its backend in scheduler.profiles")


def _unknown_kinds(written: GrouperConfiguration, document: Document) -> Iterator[DocumentProblem]:
    known = {rule.kind for rule in loading.built_in().rules.values()}
    for number, kind in enumerate(written.without):
        if kind not in known:
            yield document.problem(("without", number), f"no rule of ours is for {kind!r}")


def _faults(written: GrouperConfiguration) -> Iterator[tuple[tuple[Step, ...], str]]:
    for field, found, expected in (("apiVersion", written.api_version, API_VERSION), ("kind", written.kind, KIND)):
        if found != expected:
            yield (field,), f"found {found!r}, expected {expected!r}"
    if written.workers < 1:
        yield ("workers",), f"found {written.workers}, expected a number above 0"
    yield from _label_faults(written)
    place = written.kind_defaults_config_map
    if place is not None and not (place.namespace and place.name):
        yield ("kindDefaultsConfigMap",), "expected a namespace and a name; found one that is empty"
    for number, each in enumerate(written.kind_defaults):
        if not each.type_name:
            yield ("kindDefaults", number, "typeName"), "is empty, expected a kind such as Deployment"
        if each.preemptibility and each.preemptibility.lower() not in PREEMPTIBILITIES:
            expected = " or ".join(PREEMPTIBILITIES)
            yield ("kindDefaults", number, "preemptibility"), f"found {each.preemptibility!r}, expected {expected}"


def _label_faults(written: GrouperConfiguration) -> Iterator[tuple[tuple[Step, ...], str]]:
    """Return which labels cannot be any."""
    keys: list[tuple[tuple[Step, ...], str]] = [
        ((field,), key)
        for field, key in (("queueLabel", written.queue_label), ("nodePoolLabel", written.node_pool_label))
        if key
    ]
    for field, labels in (("podLabels", written.pod_labels), ("namespaceLabels", written.namespace_labels)):
        keys += [((field, key), key) for key in labels]
        for key, value in labels.items():
            yield from (((field, key), f"{value!r} is no label value: it {each}") for each in label_value_faults(value))
    for place, key in keys:
        yield from ((place, f"{key!r} is no key of a label: it {fault}") for fault in qualified_name_faults(key))
    faults = label_value_faults(written.default_queue) or ([] if written.default_queue else ["must not be empty"])
    yield from ((("defaultQueue",), f"{written.default_queue!r} is no queue: it {fault}") for fault in faults)
