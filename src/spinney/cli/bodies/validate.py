"""``spinney validate``: everything that can be wrong with a manifest and needs no cluster to be found.

First the shape (unknown fields, wrong types), then the rules of the kind, as admission applies them. Without a
configuration all built-in backends, topologies and MNNVL count as enabled. What only a cluster can answer is listed.
"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from spinney.api import coscheduling, kai
from spinney.api.grove import CLUSTER_TOPOLOGY_BINDING, POD_CLIQUE_SET, ClusterTopologyBinding, PodCliqueSet
from spinney.api.resource import Resource
from spinney.api.schema.crd import KINDS
from spinney.api.schema.defaults import default_pod_clique_set
from spinney.api.schema.field_error import FieldError
from spinney.api.schema.validate_kai import validate_kai_topology, validate_queue
from spinney.api.schema.validate_pod_clique_set import (
    AdmissionPolicy,
    pod_clique_set_warnings,
    validate_pod_clique_set,
)
from spinney.api.schema.validate_pod_groups import validate_coscheduling_pod_group, validate_kai_pod_group
from spinney.api.schema.validate_topology_binding import validate_topology_binding
from spinney.backends import TopologyAware, every_backend
from spinney.backends.documents import InvalidDocument, Problem, Step, decode, nearest
from spinney.cli.objects import Manifest, read
from spinney.cli.output import print_data
from spinney.operator.configuration import load
from spinney.operator.topologies import constraints, topology_name
from spinney.sim.expanding import UNKNOWN_TOPOLOGY, everything_enabled

_TYPES: Final[Mapping[tuple[str, str], tuple[Resource, type[Any]]]] = {
    (kind.resource.api_version, kind.resource.kind): (kind.resource, kind.type) for kind in KINDS
}
_GROUPS: Final = {version for version, _ in _TYPES}
_RULES: Final[Mapping[Resource, Callable[[Any], list[FieldError]]]] = {
    kai.QUEUE: validate_queue,
    kai.POD_GROUP: validate_kai_pod_group,
    kai.TOPOLOGY: validate_kai_topology,
    coscheduling.POD_GROUP: validate_coscheduling_pod_group,
}
_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[([^\]]*)\]")


@dataclass(frozen=True)
class Verdict:
    """What was found about one object."""

    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()
    not_done: tuple[str, ...] = ()


def validate(*, files: tuple[Path, ...], config: Path | None, output: str) -> None:
    """Check manifests offline: every fault with its file, line and field."""
    manifests = read(files)
    policy = _policy(config, manifests)
    verdicts = [(manifest, _verdict(manifest, policy)) for manifest in manifests]
    faulty = sum(bool(verdict.problems) for _, verdict in verdicts)
    if output != "text":
        print_data([_as_data(*each) for each in verdicts], output)
    else:
        for manifest, verdict in verdicts:
            _print(manifest, verdict)
        not_done = dict.fromkeys(line for _, verdict in verdicts for line in verdict.not_done)
        if not_done:
            click.echo("\nnot checked, because it needs a cluster:")
            click.echo("\n".join(f"  {line}" for line in not_done))
        click.echo(f"\n{len(verdicts) - faulty} of {len(verdicts)} objects are valid")
    if faulty:
        sys.exit(1)


def _policy(config: Path | None, manifests: list[Manifest]) -> AdmissionPolicy:
    topologies: dict[str, ClusterTopologyBinding] = {}
    for manifest in manifests:
        if _TYPES.get((manifest.api_version, manifest.kind), (None,))[0] is CLUSTER_TOPOLOGY_BINDING:
            try:
                topologies[manifest.name] = decode(ClusterTopologyBinding, manifest.document)
            except InvalidDocument:
                continue  # reported when its turn comes
    if config is None:
        return everything_enabled(topologies)
    try:
        loaded = load(config, every_backend())
    except InvalidDocument as error:
        raise click.ClickException(str(error)) from error
    return AdmissionPolicy(
        schedulers=tuple(loaded.profiles.names()),
        default_scheduler=loaded.profiles.default,
        topology_aware=loaded.written.topology_aware_scheduling.enabled,
        topologies=topologies,
        mnnvl=loaded.written.network.auto_mnnvl_enabled,
    )


def _verdict(manifest: Manifest, policy: AdmissionPolicy) -> Verdict:
    known = _TYPES.get((manifest.api_version, manifest.kind))
    if known is None:
        return _unknown(manifest)
    resource, kind = known
    try:
        decoded = decode(kind, manifest.document)
    except InvalidDocument as error:
        return Verdict(tuple(error.problems))
    warnings: tuple[str, ...] = ()
    not_done = [f"whether a {resource.kind} {manifest.name} exists already and may be changed so"]
    if resource is POD_CLIQUE_SET:
        pcs = default_pod_clique_set(decoded)
        faults = validate_pod_clique_set(pcs, policy)
        faults = [fault for fault in faults if fault.message != UNKNOWN_TOPOLOGY]
        warnings = tuple(pod_clique_set_warnings(pcs, policy))
        not_done += _needs_cluster(pcs, policy)
    elif resource is CLUSTER_TOPOLOGY_BINDING:
        faults = validate_topology_binding(decoded, schedulers=policy.schedulers, topology_aware=_topology_aware())
    else:
        rule = _RULES.get(resource)
        faults = rule(decoded) if rule is not None else []
    problems = tuple(
        manifest.document.problem(steps(fault.path), str(fault).removeprefix(f"{fault.path}: ")) for fault in faults
    )
    return Verdict(problems, warnings, tuple(not_done))


def _unknown(manifest: Manifest) -> Verdict:
    version, kind = manifest.api_version, manifest.kind
    kinds = [each for group, each in _TYPES if group == version]
    if kinds:
        problem = manifest.document.problem(("kind",), f"{version} has no kind {kind!r}; {nearest(kind, kinds)}")
        return Verdict((problem,))
    same_kind = sorted(group for group, each in _TYPES if each == kind)
    if same_kind and version.partition("/")[0] in {group.partition("/")[0] for group in same_kind}:
        expected = " or ".join(same_kind)
        problem = manifest.document.problem(("apiVersion",), f"found {version!r}, expected {expected}")
        return Verdict((problem,))
    return Verdict(
        not_done=(f"{version} {kind} {manifest.name}: not one of our kinds, so only a cluster can check it",)
    )


def _needs_cluster(pcs: PodCliqueSet, policy: AdmissionPolicy) -> Iterator[str]:
    name = topology_name(pcs)
    if any(True for _ in constraints(pcs)) and name not in policy.topologies:
        yield f"whether the ClusterTopologyBinding {name} exists and has the domains that {pcs.metadata.name} names"
    if pcs.spec.template.priority_class_name:
        yield f"whether the PriorityClass {pcs.spec.template.priority_class_name} exists"
    yield "whether the scheduler of this cluster can honour what is asked for (capabilities of its backend)"


def steps(path: str) -> tuple[Step, ...]:
    """Return the parts of a field path such as ``spec.cliques[0].labels[app]``."""
    found: list[Step] = []
    for name, index in _STEP.findall(path):
        found.append(name if name else int(index) if index.isdecimal() else index)
    return tuple(found)


def _topology_aware() -> list[str]:
    catalogue = every_backend()
    found = ((name, catalogue.get(name)) for name in catalogue.names())
    return [name for name, backend in found if backend is not None and issubclass(backend, TopologyAware)]


def _print(manifest: Manifest, verdict: Verdict) -> None:
    for problem in verdict.problems:
        click.echo(str(problem))
    for warning in verdict.warnings:
        click.echo(f"{manifest.document.source}: warning: {warning}")


def _as_data(manifest: Manifest, verdict: Verdict) -> dict[str, Any]:
    return {
        "source": manifest.document.source,
        "line": manifest.document.line(),
        "kind": manifest.kind,
        "name": manifest.name,
        "valid": not verdict.problems,
        "problems": [{"line": each.line, "path": each.path, "message": each.message} for each in verdict.problems],
        "warnings": verdict.warnings,
        "notDone": verdict.not_done,
    }
