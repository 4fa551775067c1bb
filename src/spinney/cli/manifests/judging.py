"""Everything that can be wrong with a manifest and needs no cluster to be found.

First the fields (unknown ones, wrong types), as the API server looks at them for ``kubectl apply``; then the rules
of the kind and the word of the backend, as admission applies them. Without a configuration all built-in backends,
topologies and MNNVL count as enabled. What only a cluster can answer is listed.
"""

import asyncio
import copy
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import msgspec

from spinney.api import coscheduling, interruption, kai
from spinney.api.documents import Document, DocumentProblem, InvalidDocument, Step, decode, nearest, steps
from spinney.api.field_error import FieldError, FieldPath, invalid
from spinney.api.grove import POD_CLIQUE_SET, PodCliqueSet
from spinney.api.podgang import POD_GANG
from spinney.api.resource import Resource
from spinney.api.schema.crd import KINDS
from spinney.api.schema.defaults import default_pod_clique_set
from spinney.api.schema.structural import structural_schema
from spinney.api.schema.validate_kai import validate_kai_topology, validate_queue
from spinney.api.schema.validate_pod_clique_set import (
    AdmissionPolicy,
    pod_clique_set_warnings,
    validate_pod_clique_set,
)
from spinney.api.schema.validate_pod_groups import validate_coscheduling_pod_group, validate_kai_pod_group
from spinney.api.schema.validate_topology_binding import validate_topology_binding
from spinney.api.struct import convert, to_json
from spinney.api.topology_binding import CLUSTER_TOPOLOGY_BINDING, ClusterTopologyBinding
from spinney.backends import Profile, Rejected, TopologyAware, UnusableBackend, every_backend
from spinney.backends.kube import KubeScheduler, KubeSchedulerConfig
from spinney.cli.manifests.fields import builtin_field_problems, field_problems, is_builtin, schema_faults
from spinney.cli.manifests.objects import Manifest
from spinney.cli.manifests.offline_backends import NeedsCluster, judge
from spinney.cli.running import in_one_line
from spinney.operator.admission.rules import filled, refused_startup_order
from spinney.operator.configuration import load
from spinney.operator.desired.layout import scheduler_name
from spinney.operator.desired.topologies import constraints, topology_name
from spinney.runtime import Runtime
from spinney.runtime.faults import raised
from spinney.server.crd.structure import fill_defaults
from spinney.sim.snapshots.expanding import UNKNOWN_TOPOLOGY, everything_enabled

_TYPES: Final[Mapping[tuple[str, str], tuple[Resource, type[Any]]]] = {
    (kind.resource.api_version, kind.resource.kind): (kind.resource, kind.type) for kind in KINDS
}
_RULES: Final[Mapping[Resource, Callable[[Any], list[FieldError]]]] = {
    kai.QUEUE: validate_queue,
    kai.POD_GROUP: validate_kai_pod_group,
    kai.TOPOLOGY: validate_kai_topology,
    coscheduling.POD_GROUP: validate_coscheduling_pod_group,
}
_NO_PATH: Final = "<nil>"
_MISSING: Final = "Required value"
_EVERYTHING: Final[Mapping[str, Profile]] = {
    KubeScheduler.name: Profile(KubeScheduler.name, KubeSchedulerConfig(gang_scheduling=True))
}
"""Where no configuration says otherwise: what a backend needs a cluster for counts as enabled, too."""


@dataclass(frozen=True)
class Setting:
    """The operator a manifest is meant for: what it allows, and how its backends are configured."""

    policy: AdmissionPolicy
    profiles: Mapping[str, Profile]
    startup_order: bool = True
    """Whether cliques may start after others: the init containers that wait for them can be switched off."""


@dataclass(frozen=True)
class Judgement:
    """What the rules of a kind say of one object."""

    faults: list[FieldError]
    warnings: list[str] = field(default_factory=list)
    not_done: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Verdict:
    """What was found about one object."""

    problems: tuple[DocumentProblem, ...] = ()
    warnings: tuple[str, ...] = ()
    not_done: tuple[str, ...] = ()
    checked: bool = True
    """Whether anything was: nothing is known here about kinds of others."""


def setting_of(config: Path | None, manifests: list[Manifest]) -> Setting:
    topologies: dict[str, ClusterTopologyBinding] = {}
    for manifest in manifests:
        if _TYPES.get((manifest.api_version, manifest.kind), (None,))[0] is CLUSTER_TOPOLOGY_BINDING:
            try:
                topologies[manifest.name] = convert(ClusterTopologyBinding, manifest.value)
            except msgspec.ValidationError:
                continue  # reported when its turn comes
    if config is None:
        return Setting(everything_enabled(topologies), _EVERYTHING)
    with in_one_line(InvalidDocument):
        loaded = load(config, every_backend())
    written = loaded.written
    policy = AdmissionPolicy(
        schedulers=tuple(loaded.profiles.names()),
        default_scheduler=loaded.profiles.default,
        topology_aware=written.topology_aware_scheduling.enabled,
        topologies=topologies,
        mnnvl=written.network.auto_mnnvl_enabled,
        limits=written.limits.sizes(),
    )
    profiles = {profile.name: profile for profile in loaded.profiles.enabled}
    return Setting(policy, profiles, startup_order=written.init_container.enabled)


def verdict_on(manifest: Manifest, setting: Setting) -> Verdict:
    known = _TYPES.get((manifest.api_version, manifest.kind))
    if known is None:
        return _unknown(manifest)
    resource, kind = known
    manifest = Manifest(_without_nulls(kind, manifest.document))
    shape = _shape(resource, kind, manifest)
    try:
        decoded = convert(kind, manifest.value)
    except msgspec.ValidationError:
        return Verdict(_told_once(shape or _undecodable(kind, manifest)))
    not_done = [f"whether a {resource.kind} {manifest.name} exists already and may be changed so"]
    if resource is POD_CLIQUE_SET:
        found = _judged(default_pod_clique_set(decoded), setting)
    elif resource is CLUSTER_TOPOLOGY_BINDING:
        found = _judged_binding(decoded, setting.policy.schedulers)
    else:
        rule = _RULES.get(resource)
        found = Judgement(rule(decoded) if rule is not None else [])
    ruled = [_problem(manifest, fault.path, fault.text) for fault in found.faults]
    # A rule says more of a field than its schema does, so it has the first word.
    problems = _told_once(ruled + shape)
    told = tuple(f"{problem.path}:" for problem in problems)
    warnings = tuple(warning for warning in found.warnings if not warning.startswith(told))
    return Verdict(problems, warnings, (*not_done, *found.not_done))


def misfits(manifest: Manifest) -> tuple[DocumentProblem, ...]:
    """Return fields that the kind does not have, and values that they cannot hold; no rule and no backend is asked."""
    known = _TYPES.get((manifest.api_version, manifest.kind))
    if known is None:
        return _unknown(manifest).problems
    resource, kind = known
    return _told_once(_shape(resource, kind, Manifest(_without_nulls(kind, manifest.document))))


def _shape(resource: Resource, kind: type[Any], manifest: Manifest) -> list[DocumentProblem]:
    document = manifest.document
    faults = schema_faults(kind, _as_admitted(resource, document))
    return [*field_problems(resource, kind, document), *(_problem(manifest, path, text) for path, text in faults)]


def _judged(pcs: PodCliqueSet, setting: Setting) -> Judgement:
    """Apply the rules of admission; where they hold, ask the backend, as admission does."""
    policy = setting.policy
    found = validate_pod_clique_set(pcs, policy)
    if not setting.startup_order:
        found += refused_startup_order(pcs)
    faults = [fault for fault in found if not fault.text.endswith(UNKNOWN_TOPOLOGY)]
    warnings = pod_clique_set_warnings(pcs, policy)
    if policy.topologies:  # whoever gives a topology gives all there are; the cluster may have others yet
        known = ", ".join(sorted(policy.topologies))
        warnings += [f"{fault} in these files, which have {known}" for fault in found if fault not in faults]
    not_done = list(_needs_cluster(pcs, policy))
    name = scheduler_name(pcs) or policy.default_scheduler
    try:
        kind = every_backend().get(name) if not faults else None
    except UnusableBackend as error:  # the rest of the answer stands
        not_done.append(f"whether {name} can honour what is asked for: {error}")
        kind = None
    if kind is None:
        return Judgement(faults, warnings, not_done)
    profile = setting.profiles.get(name, Profile(name))
    runtime = Runtime.system()
    try:
        warnings += map(str, asyncio.run(judge(kind, profile.config, pcs, runtime=runtime)))
    except Rejected as rejected:
        faults = [invalid(FieldPath(rejected.path), name, str(rejected))]
    except NeedsCluster:
        not_done.append(f"whether {name} can honour what is asked for, as it is set up in the cluster")
    except raised() as error:  # a backend may raise anything; the rest of the answer stands
        not_done.append(f"whether {name} can honour what is asked for: {type(error).__name__}: {error}")
    finally:
        runtime.executor.close()
    return Judgement(faults, warnings, not_done)


def _judged_binding(binding: ClusterTopologyBinding, schedulers: Collection[str]) -> Judgement:
    """Judge a binding; of the backends that are installed only those that it names are looked at."""
    catalogue = every_backend()
    aware: list[str] = []
    not_done: list[str] = []
    for name in (each.scheduler_name for each in binding.spec.scheduler_topology_bindings):
        try:
            kind = catalogue.get(name)
        except UnusableBackend as error:
            not_done.append(f"whether {name} manages a topology: {error}")
            aware.append(name)
        else:
            aware += [name] if kind is not None and issubclass(kind, TopologyAware) else []
    return Judgement(validate_topology_binding(binding, schedulers=schedulers, topology_aware=aware), not_done=not_done)


def _without_nulls(kind: type[Any], document: Document) -> Document:
    """Return a document as the API server reads it: a null is the same as nothing, and a label of null is empty."""
    value = copy.deepcopy(document.value)
    fill_defaults(value, structural_schema(kind))
    metadata = value.get("metadata")
    if isinstance(metadata, dict):
        value["metadata"] = {name: part for name, part in metadata.items() if part is not None}
        for name in ("labels", "annotations"):
            texts = value["metadata"].get(name)
            if isinstance(texts, dict):
                value["metadata"][name] = {key: "" if text is None else text for key, text in texts.items()}
    return replace(document, value=value)


def _as_admitted(resource: Resource, document: Document) -> Document:
    """Return a document as its schema sees it: after the defaulting webhook, which takes a null for an absence."""
    if resource is not POD_CLIQUE_SET:
        return document
    try:
        wanted = to_json(default_pod_clique_set(convert(PodCliqueSet, document.value)).spec)
    except msgspec.ValidationError:
        return document
    return replace(document, value={**document.value, "spec": filled(document.value["spec"], wanted)})


def _undecodable(kind: type[Any], manifest: Manifest) -> list[DocumentProblem]:
    """Return why a manifest does not have the shape of its kind, where its schema does not say so."""
    try:
        decode(kind, manifest.document)
    except InvalidDocument as error:
        return error.problems
    return []


def _problem(manifest: Manifest, path: str, message: str) -> DocumentProblem:
    """Return a problem whose path reads as admission spells it."""
    if path == _NO_PATH:  # the API server tells where such a number stands at the end of what it says
        path = message.rpartition(" in ")[2]
    if message == _MISSING:
        message = f"{_MISSING}: it is not there, or null"
    return DocumentProblem(manifest.document.source, manifest.document.line(*steps(path)), path, message)


def _told_once(problems: list[DocumentProblem]) -> tuple[DocumentProblem, ...]:
    """Keep what was said first of each field, in the order of the file; what was misspelt is not missed as well."""
    meant = {(steps(each.path)[:-1], each.message.partition("did you mean ")[2]) for each in problems}
    first: dict[tuple[Step, ...], DocumentProblem] = {}
    for problem in problems:
        path = steps(problem.path)
        if not path or (path[:-1], f"{path[-1]!r}?") not in meant:
            first.setdefault(path, problem)
    return tuple(sorted(first.values(), key=lambda problem: problem.line))


def _unknown(manifest: Manifest) -> Verdict:
    version, kind = manifest.api_version, manifest.kind
    homes = sorted(group for group, each in _TYPES if each.lower() == kind.lower())
    groups = {home.partition("/")[0] for home in homes}
    # Nobody else has kinds of Grove's groups, so a kind of these says which group was meant.
    meant = version.partition("/")[0] in groups or groups <= {POD_CLIQUE_SET.group, POD_GANG.group}
    if homes and meant and version not in homes:
        expected = " or ".join(homes)
        return Verdict((manifest.document.problem(("apiVersion",), f"found {version!r}, expected {expected}"),))
    kinds = [each for group, each in _TYPES if group == version]
    if kinds:
        problem = manifest.document.problem(("kind",), f"{version} has no kind {kind!r}; {nearest(kind, kinds)}")
        return Verdict((problem,))
    if (version, kind) == ("v1", "List"):
        return Verdict((manifest.document.problem(("items",), "a List needs the list of its items"),))
    named = f"{version} {kind} {manifest.name}"
    warnings = tuple(_misread(manifest.value, ""))
    if not is_builtin(version, kind):
        unread = f"{named}: everything; the kind is not known here"
        return Verdict(warnings=warnings, not_done=(unread,), checked=False)
    return Verdict(
        _told_once(builtin_field_problems(version, kind, manifest.document)),
        warnings,
        not_done=(f"{named}: its values; only names and types of its fields were",),
    )


def _misread(value: Any, where: str) -> Iterator[str]:
    """Return which annotations of an object and of pod templates in it state a duration that cannot be read."""
    if isinstance(value, list):
        for number, part in enumerate(value):
            yield from _misread(part, f"{where}[{number}]")
    elif isinstance(value, Mapping):
        for key, part in value.items():
            path = f"{where}.{key}" if where else str(key)
            if key == "metadata" and isinstance(part, Mapping) and isinstance(part.get("annotations"), Mapping):
                texts = {name: text for name, text in part["annotations"].items() if isinstance(text, str)}
                yield from (f"{path}.annotations[{name}]: {fault}" for name, fault in interruption.faults(texts))
            yield from _misread(part, path)


def _needs_cluster(pcs: PodCliqueSet, policy: AdmissionPolicy) -> Iterator[str]:
    name = topology_name(pcs)
    if any(True for _ in constraints(pcs)) and name not in policy.topologies:
        yield f"whether the ClusterTopologyBinding {name} exists and has the domains that {pcs.metadata.name} names"
    if pcs.spec.template.priority_class_name:
        yield f"whether the PriorityClass {pcs.spec.template.priority_class_name} exists"
