"""Validation of a PodCliqueSet as a whole: what a user may create, and what may change afterwards.

The object is expected to be defaulted. What depends on the operator's configuration and on the cluster (schedulers,
topologies, multi-node NVLink) is passed in as :class:`AdmissionPolicy`. What a scheduler backend has to say is asked
for elsewhere.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from spinney.api import interruption
from spinney.api.durations import InvalidDuration, parse_duration
from spinney.api.field_error import FieldError, FieldPath, immutable, invalid, not_supported, required
from spinney.api.grove import (
    ANY_ORDER,
    EXPLICIT,
    IN_ORDER,
    ON_DELETE,
    ROLLING_RECREATE,
    PodCliqueSet,
    PodCliqueSetTemplateSpec,
)
from spinney.api.labels import MNNVL_GROUP
from spinney.api.names import dns_label_faults
from spinney.api.schema.validate_carried import carried_warnings, validate_carried
from spinney.api.schema.validate_cliques import MAX_INT32, validate_cliques, validate_scaling_groups
from spinney.api.schema.validate_generated_names import (
    validate_generated_names,
    validate_name_budget,
    validate_reserved_names,
)
from spinney.api.schema.validate_metadata import validate_metadata
from spinney.api.schema.validate_pod_spec import pod_spec_warnings, scheduler_name
from spinney.api.schema.validate_resource_sharing import validate_resource_sharing
from spinney.api.schema.validate_size import DEFAULT_LIMITS, SizeLimits, validate_size
from spinney.api.schema.validate_topology import (
    constraints,
    repaired,
    topology_warnings,
    validate_domains,
    validate_shape,
    validate_topology_update,
)
from spinney.api.schema.validate_update import kept_replicas, validate_immutability
from spinney.api.topology_binding import ClusterTopologyBinding

DEFAULT_SCHEDULER: Final = "default-scheduler"
MNNVL_OPT_OUT: Final = "none"
STARTUP_TYPES: Final = (ANY_ORDER, IN_ORDER, EXPLICIT)
UPDATE_STRATEGIES: Final = (ROLLING_RECREATE, ON_DELETE)

_TEMPLATE: Final = FieldPath("spec.template")


@dataclass(frozen=True, slots=True)
class AdmissionPolicy:
    """What this operator allows: its schedulers by the name pods use, its features, and how large sets may be."""

    schedulers: tuple[str, ...] = (DEFAULT_SCHEDULER,)
    default_scheduler: str = DEFAULT_SCHEDULER
    topology_aware: bool = False
    topologies: Mapping[str, ClusterTopologyBinding] = field(default_factory=dict)
    mnnvl: bool = False
    limits: SizeLimits = DEFAULT_LIMITS


def validate_pod_clique_set(
    pcs: PodCliqueSet, policy: AdmissionPolicy, old: PodCliqueSet | None = None
) -> list[FieldError]:
    """Return every fault of ``pcs``, as created or as an update of ``old``.

    An update that leaves the spec alone is only held to the rules for metadata, so that an object can always be
    labelled, and lose its finalizers, whatever has become of the schedulers it names.
    """
    if old is not None and old.spec == pcs.spec:
        return validate_metadata_update(pcs.metadata.annotations, old.metadata.annotations)
    errors = [*validate_metadata(pcs.metadata), *_spec(pcs, policy, old)]
    placed = constraints(pcs.spec.template, _TEMPLATE)
    if old is None:
        errors += validate_generated_names(pcs)
        errors += validate_shape(placed, creating=True)
        if policy.topology_aware:
            errors += validate_domains(placed, policy.topologies)
        else:
            errors += [
                invalid(each.path, each.constraint.required, "topology-aware scheduling is not enabled")
                for each in placed
            ]
        return [*errors, *_mnnvl(pcs, policy)]
    former = constraints(old.spec.template, _TEMPLATE)
    errors += validate_shape(placed, creating=False)
    errors += validate_immutability(pcs.spec.template, old.spec.template, _TEMPLATE)
    errors += validate_topology_update(placed, former)
    if repaired(placed, former):
        errors += validate_domains(placed, policy.topologies)
    return errors + validate_metadata_update(pcs.metadata.annotations, old.metadata.annotations)


def validate_metadata_update(annotations: Mapping[str, str], old: Mapping[str, str]) -> list[FieldError]:
    """Return the faults of an update that leaves the spec alone: of metadata, only the NVLink group is fixed."""
    return immutable(
        FieldPath("metadata.annotations").key(MNNVL_GROUP), annotations.get(MNNVL_GROUP), old.get(MNNVL_GROUP)
    )


def pod_clique_set_warnings(pcs: PodCliqueSet, policy: AdmissionPolicy, old: PodCliqueSet | None = None) -> list[str]:
    """Return what a user should be told although the object, created or an update of ``old``, is accepted."""
    warnings = [*topology_warnings(constraints(pcs.spec.template, _TEMPLATE), policy.topologies)]
    for path, annotations in _annotated(pcs):
        warnings += [f"{path.key(key)}: {fault}" for key, fault in interruption.faults(annotations)]
    for i, clique in enumerate(pcs.spec.template.cliques):
        where = _TEMPLATE.child("cliques").index(i).child("spec", "podSpec")
        warnings += pod_spec_warnings(clique.spec.pod_spec, where)
        warnings += _priority_warnings(clique.spec.pod_spec, pcs.spec.template.priority_class_name or "", where)
    former = old.spec.template if old is not None else None
    warnings += kept_replicas(pcs, old) if old is not None else ()
    return warnings + carried_warnings(pcs.spec.template, former, _TEMPLATE)


def _priority_warnings(pod_spec: Mapping[str, Any], of_gang: str, where: FieldPath) -> list[str]:
    """Say that a gang is scheduled by the class of the set: Grove's gangs have no other."""
    named = pod_spec.get("priorityClassName")
    if not named or named == of_gang:
        return []
    instead = (
        f"{of_gang!r} of {_TEMPLATE.child('priorityClassName')}" if of_gang else "none, so with the default priority"
    )
    return [
        f"{where.child('priorityClassName')}: {named!r} is the priority of the pods alone; their gang is scheduled "
        f"with {instead}. Name the class in {_TEMPLATE.child('priorityClassName')}"
    ]


def _spec(pcs: PodCliqueSet, policy: AdmissionPolicy, old: PodCliqueSet | None) -> list[FieldError]:
    spec, template = pcs.spec, pcs.spec.template
    errors: list[FieldError] = []
    if spec.replicas is not None and not 0 <= spec.replicas <= MAX_INT32:
        fault = "must not be negative" if spec.replicas < 0 else f"must be at most {MAX_INT32}"
        errors.append(invalid(FieldPath("spec.replicas"), spec.replicas, fault))
    if spec.update_strategy is not None and spec.update_strategy.type not in (None, *UPDATE_STRATEGIES):
        where = FieldPath("spec.updateStrategy.type")
        errors.append(not_supported(where, spec.update_strategy.type, UPDATE_STRATEGIES))
    errors += _startup_type(template) + _termination_delay(template)
    errors += validate_resource_sharing(template, _TEMPLATE)
    former = old.spec.template if old is not None else None
    errors += validate_cliques(template, _TEMPLATE, old=former)
    errors += validate_scaling_groups(template, _TEMPLATE)
    if not any(error.path.endswith("replicas") for error in errors):  # a number that is none has been told
        errors += validate_size(spec, policy.limits, old.spec if old is not None else None)
    errors += validate_name_budget(pcs)
    errors += validate_reserved_names(template, former)
    errors += _schedulers(template, policy)
    return _with_types(errors, validate_carried(template, former, _TEMPLATE))


def _with_types(ruled: list[FieldError], wrong: list[FieldError]) -> list[FieldError]:
    """Add values of the wrong type; what a rule says of such a value, or of what is inside it, does not count."""
    inside = tuple(f"{fault.path}{mark}" for fault in wrong for mark in ".[")
    told = {fault.path for fault in wrong}
    return [error for error in ruled if error.path not in told and not error.path.startswith(inside)] + wrong


def _startup_type(template: PodCliqueSetTemplateSpec) -> list[FieldError]:
    where, found = _TEMPLATE.child("cliqueStartupType"), template.clique_startup_type
    if not found:
        return [required(where, "how cliques start must be said")]
    if found not in STARTUP_TYPES:
        return [invalid(where, found, f"must be one of {', '.join(STARTUP_TYPES)}")]
    return []


def _termination_delay(template: PodCliqueSetTemplateSpec) -> list[FieldError]:
    where, text = _TEMPLATE.child("terminationDelay"), template.termination_delay
    if text is None:
        return [required(where, "terminationDelay is needed")]
    try:
        delay = parse_duration(text)
    except InvalidDuration as fault:
        return [invalid(where, text, str(fault))]
    return [] if delay.total_seconds() > 0 else [invalid(where, text, "must be greater than 0")]


def _schedulers(template: PodCliqueSetTemplateSpec, policy: AdmissionPolicy) -> Iterator[FieldError]:
    """Check that all cliques resolve to one enabled scheduler; an empty name means the default one."""
    enabled = ", ".join(policy.schedulers)
    first: str | None = None
    for i, clique in enumerate(template.cliques):
        where = _TEMPLATE.child("cliques").index(i).child("spec", "podSpec", "schedulerName")
        name = scheduler_name(clique.spec.pod_spec) or policy.default_scheduler
        first = first or name
        if name not in policy.schedulers:
            yield invalid(where, name, f"is not an enabled scheduler; enabled are: {enabled}")
        elif name != first:
            yield invalid(where, name, f"all cliques must use one scheduler, and the first uses {first!r}")


def _annotated(pcs: PodCliqueSet) -> list[tuple[FieldPath, Mapping[str, str]]]:
    """Return the annotations of a set, its scaling groups and its cliques, each with where they are written."""
    template = pcs.spec.template
    return [
        (FieldPath("metadata.annotations"), pcs.metadata.annotations),
        *(
            (_TEMPLATE.child("podCliqueScalingGroups").index(i).child("annotations"), group.annotations)
            for i, group in enumerate(template.pod_clique_scaling_groups)
        ),
        *(
            (_TEMPLATE.child("cliques").index(i).child("annotations"), clique.annotations)
            for i, clique in enumerate(template.cliques)
        ),
    ]


def _mnnvl(pcs: PodCliqueSet, policy: AdmissionPolicy) -> Iterator[FieldError]:
    for annotations, found in _annotated(pcs):
        path, group = annotations.key(MNNVL_GROUP), found.get(MNNVL_GROUP, MNNVL_OPT_OUT)
        if group == MNNVL_OPT_OUT:
            continue
        yield from (invalid(path, group, f"{fault}, or {MNNVL_OPT_OUT!r}") for fault in dns_label_faults(group))
        if not policy.mnnvl:
            yield invalid(path, group, f"multi-node NVLink is not enabled; only {MNNVL_OPT_OUT!r} is accepted")
