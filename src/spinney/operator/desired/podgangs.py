"""The manifest of a PodGang, and whether an existing one still agrees.

A gang is created once and then changed field by field, as its PodCliques are: its status has several writers, and
schedulers put labels and annotations of their own on it.
"""

from collections.abc import Iterable

from spinney.api.grove import POD_CLIQUE_SET
from spinney.api.meta import ObjectMeta, owner_reference
from spinney.api.podgang import PodGang, PodGangSpec
from spinney.api.struct import JSON, to_json
from spinney.backends import additions
from spinney.backends.interface import SchedulerBackend
from spinney.operator.desired import corrections, gangs
from spinney.operator.desired.gangs import GangPlan
from spinney.operator.desired.layout import Layout
from spinney.operator.desired.topologies import SetTopology


def new_gang(layout: Layout, plan: GangPlan, topology: SetTopology, *, backend: SchedulerBackend) -> PodGang:
    """Return a gang as it is created: its groups are empty."""
    metadata = ObjectMeta(
        name=plan.name,
        namespace=layout.pcs.metadata.namespace,
        owner_references=(owner_reference(POD_CLIQUE_SET, layout.pcs.metadata),),
    )
    spec = gangs.content(plan, layout, topology, {}).spec
    return manifest(
        metadata,
        spec,
        labels=gangs.gang_labels(layout, plan, backend.name),
        annotations=gangs.gang_annotations(layout, topology, spec),
        backend=backend,
    )


def manifest(
    metadata: ObjectMeta,
    spec: PodGangSpec,
    *,
    labels: dict[str, str],
    annotations: dict[str, str],
    backend: SchedulerBackend | None,
) -> PodGang:
    """Return a gang as the operator wants it: everything it decides on, and nothing else."""
    held = backend is not None and backend.has_delete_hook
    wanted = ObjectMeta(
        name=metadata.name,
        namespace=metadata.namespace,
        labels=labels,
        annotations=annotations,
        owner_references=metadata.owner_references,
        finalizers=(additions.BACKEND_FINALIZER,) if held else (),
    )
    return PodGang(metadata=wanted, spec=spec)


def correction(found: PodGang, wanted: PodGang, lost: Iterable[str] = ()) -> list[JSON]:
    """Return the JSON patch that gives a gang what it lacks; labels and annotations go only if they are ``lost``."""
    there, asked = found.metadata, wanted.metadata
    patch = [
        *corrections.of_texts("/metadata/labels", there.labels, asked.labels, unwanted=lost),
        *corrections.of_texts("/metadata/annotations", there.annotations, asked.annotations, unwanted=lost),
        *corrections.of_members("/metadata/finalizers", there.finalizers, asked.finalizers),
    ]
    if found.spec == wanted.spec:
        return patch
    return patch + corrections.of_fields("/spec", to_json(found.spec), to_json(wanted.spec))
