"""What a workload file comes to in a simulation: workloads become PodGangs and pods, the rest is taken as it is.

PodCliqueSets go through the operator's own pure core: the same layout, gangs and pod manifests that the controllers
write, without a server in between. Gangs are complete at once, so their pods are released; those of a scaled gang keep
their gate until the base gang is placed, and those of a gang whose required topology cannot be translated keep it for
good, with the reason in the gang's ``Initialized`` condition. Jobs, JobSets and other workloads are expanded by the
grouper's rules (:mod:`spinney.grouping.made_gangs`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from spinney.api.core import NODE, POD, Node, Pod
from spinney.api.grove import POD_CLIQUE_SET, PodCliqueSet
from spinney.api.labels import PART_OF, SCHEDULER_NAME
from spinney.api.meta import Condition, ObjectMeta, owner_reference
from spinney.api.names import Check, dns_label_faults, dns_subdomain_faults
from spinney.api.podgang import INITIALIZED, POD_GANG, PodGang, PodGangStatus
from spinney.api.resource import Resource
from spinney.api.scheduling import PRIORITY_CLASS, PriorityClass
from spinney.api.schema.defaults import default_pod_clique_set
from spinney.api.schema.validate_pod_clique_set import AdmissionPolicy, validate_pod_clique_set
from spinney.api.struct import JSON, changed, convert
from spinney.api.topology_binding import CLUSTER_TOPOLOGY_BINDING, ClusterTopologyBinding
from spinney.backends import every_backend
from spinney.grouping import made_gangs
from spinney.grouping.made_workloads import is_template, workload_made
from spinney.grouping.rules import Rule
from spinney.grouping.terms import RuleRefused
from spinney.operator.configuration import InitContainer
from spinney.operator.desired import gangs, podcliques, pods
from spinney.operator.desired.hashes import template_hashes
from spinney.operator.desired.layout import Layout
from spinney.operator.desired.topologies import SetTopology, topology_name
from spinney.operator.headcounts import Headcount
from spinney.sim.snapshots.files import completed
from spinney.sim.snapshots.foreign_workloads import made_of
from spinney.sim.snapshots.snapshot import BY_NAME, Objects, projected

DEFAULT_SCHEDULER: Final = "default-scheduler"
UNKNOWN_TOPOLOGY: Final = "no such ClusterTopologyBinding"
"""What validation says of a topology it was not given."""
_WAITING: Final = InitContainer(image="simulated")


class InvalidWorkload(ValueError):
    """A workload that no cluster would take; the text has every fault."""

    def __init__(self, text: str, manifest: JSON) -> None:
        super().__init__(text)
        self.manifest = manifest


@dataclass(frozen=True)
class ExpansionContext:
    """What of a cluster decides how a workload is expanded."""

    bindings: Mapping[str, ClusterTopologyBinding]
    priorities: Mapping[str, int]
    now: datetime
    namespace: str = "default"
    """Where objects go that do not say so themselves."""
    nodes: tuple[Node, ...] = ()
    """The nodes that DaemonSets run on."""
    default_scheduler: str | None = None
    """Who places sets that name no scheduler, as seen of others; ``None`` if the cluster has none of them."""

    @classmethod
    def of(cls, cluster: Objects, now: datetime, *, namespace: str = "default") -> "ExpansionContext":
        """Return what the objects of ``cluster`` say."""
        bindings = cluster.of(CLUSTER_TOPOLOGY_BINDING, ClusterTopologyBinding)
        classes = cluster.of(PRIORITY_CLASS, PriorityClass)
        return cls(
            {each.metadata.name: each for each in bindings},
            {each.metadata.name: each.value for each in classes},
            now,
            namespace,
            cluster.of(NODE, Node),
            _default_scheduler(cluster),
        )


def names_scheduler(pcs: PodCliqueSet) -> bool:
    """Tell whether a set says who places its pods."""
    return any(clique.spec.pod_spec.get("schedulerName") for clique in pcs.spec.template.cliques)


def _default_scheduler(cluster: Objects) -> str | None:
    """Return the scheduler of the operator's default profile: that of gangs whose set names none."""
    sets = {
        (each.metadata.namespace, each.metadata.name)
        for each in cluster.of(POD_CLIQUE_SET, PodCliqueSet)
        if not names_scheduler(each)
    }
    gangs_of_sets = (
        gang.metadata.labels.get(SCHEDULER_NAME)
        for gang in cluster.of(POD_GANG, PodGang)
        if (gang.metadata.namespace, gang.metadata.labels.get(PART_OF)) in sets
    )
    return next(filter(None, gangs_of_sets), None)


def everything_enabled(topologies: Mapping[str, ClusterTopologyBinding]) -> AdmissionPolicy:
    """Return the admission policy of an operator with every backend, topologies and MNNVL enabled."""
    catalogue = every_backend()
    names = sorted({catalogue.canonical(name) for name in catalogue.names()})
    return AdmissionPolicy(schedulers=tuple(names), topology_aware=True, topologies=topologies, mnnvl=True)


def expand(manifests: Iterable[JSON], surroundings: ExpansionContext) -> list[Any]:
    """Return the objects that a cluster would hold after ``manifests`` were applied; raises :class:`InvalidWorkload`.

    Objects are a microsecond apart in age, in the order of the file.
    """
    expanded: list[Any] = []
    given = list(manifests)
    for each in given:
        _must_have_possible_names(each, surroundings.namespace)
    for number, written in enumerate(_written(given, surroundings.nodes)):
        rule = made_gangs.rule_for(written)
        if rule is not None:
            expanded += _workload(written, rule, surroundings, surroundings.now + timedelta(microseconds=number))
            continue
        resource = _resource(written)
        manifest = _placed(written, resource, surroundings.namespace)
        born = surroundings.now + timedelta(microseconds=number)
        if resource is POD_CLIQUE_SET:
            expanded += _gangs_of(_decoded_set(manifest, surroundings), surroundings, born)
        else:
            expanded.append(_aged(_decoded(resource, manifest), surroundings, born))
    return expanded


def _must_have_possible_names(manifest: JSON, namespace: str) -> None:
    """Raise :class:`InvalidWorkload` for an object that no cluster would store under its name, or in its namespace."""
    metadata = manifest.get("metadata")
    told: JSON = metadata if isinstance(metadata, dict) else {}
    asked: tuple[tuple[str, object, Check], ...] = (
        ("name", told.get("name"), dns_subdomain_faults),
        ("namespace", told.get("namespace") or namespace, dns_label_faults),
    )
    for field, found, check in asked:
        if isinstance(found, str) and found and (faults := check(found)):
            said = f"metadata.{field}: {found!r} {'; '.join(faults)}"
            raise InvalidWorkload(f"{manifest.get('kind')} {_name(manifest)}: {said}", manifest)


def _written(given: Sequence[JSON], nodes: Sequence[Node]) -> Iterator[JSON]:
    """Yield what controllers make of the objects of a file; raises :class:`InvalidWorkload` if that is not known."""
    for each in given:
        try:
            for made in made_of(each, nodes):
                if not is_template(made):
                    yield workload_made(made, given)
        except RuleRefused as error:
            raise InvalidWorkload(f"{each.get('kind')} {_name(each)}: {error}", each) from error


def _workload(written: JSON, rule: Rule, surroundings: ExpansionContext, born: datetime) -> list[Any]:
    """Return the pods and gangs of a workload of any kind that has a rule."""
    metadata = {"namespace": surroundings.namespace, **(written.get("metadata") or {})}

    def decoded(manifest: JSON) -> Pod:
        pod: Pod = _aged(_decoded(POD, manifest), surroundings, born)
        return pod

    try:
        classes = set(surroundings.priorities)
        return list(made_gangs.grouped({**written, "metadata": metadata}, rule, decoded, classes, born))
    except RuleRefused as error:
        raise InvalidWorkload(f"{written.get('kind')} {_name(written)}: {error}", written) from error


def _resource(manifest: JSON) -> Resource:
    named = (str(manifest.get("apiVersion")), str(manifest.get("kind")))
    resource = BY_NAME.get(named)
    if resource is None:
        raise InvalidWorkload(
            f"{' '.join(named)}: cannot be simulated, nothing says which pods its controller makes; put these into "
            "the file instead, or the Job, Deployment, PodCliqueSet or other workload that they come from "
            "(docs/simulate.md lists the kinds)",
            manifest,
        )
    return resource


def _placed(manifest: JSON, resource: Resource, namespace: str) -> JSON:
    """Return a manifest with a namespace, where its kind has one."""
    metadata = manifest.get("metadata") or {}
    if not resource.namespaced or not isinstance(metadata, dict) or metadata.get("namespace"):
        return manifest
    return {**manifest, "metadata": {**metadata, "namespace": namespace}}


def _decoded(resource: Resource, manifest: JSON) -> Any:
    try:
        return projected(resource, completed(manifest))
    except msgspec.ValidationError as error:
        raise InvalidWorkload(f"{resource.kind} {_name(manifest)}: {error}", manifest) from error


def _decoded_set(manifest: JSON, surroundings: ExpansionContext) -> PodCliqueSet:
    try:
        pcs = default_pod_clique_set(convert(PodCliqueSet, manifest))
    except msgspec.ValidationError as error:
        raise InvalidWorkload(f"PodCliqueSet {_name(manifest)}: {error}", manifest) from error
    policy = everything_enabled(surroundings.bindings)
    # A topology that does not exist is no fault of the file: it is shown as the reason why the gang waits.
    faults = [fault for fault in validate_pod_clique_set(pcs, policy) if not fault.text.endswith(UNKNOWN_TOPOLOGY)]
    if faults:
        listed = "; ".join(map(str, faults))
        raise InvalidWorkload(f"PodCliqueSet {_name(manifest)}: {listed}", manifest)
    return pcs


def _gangs_of(pcs: PodCliqueSet, surroundings: ExpansionContext, born: datetime) -> Iterator[Any]:
    uid = f"simulated/{pcs.metadata.namespace}/{pcs.metadata.name}"
    pcs = changed(pcs, metadata={"uid": uid, "creation_timestamp": born})
    yield pcs
    layout, hashes = Layout(pcs), template_hashes(pcs)
    name = topology_name(pcs)
    topology = SetTopology(enabled=True, name=name, binding=surroundings.bindings.get(name or ""))
    owner = owner_reference(POD_CLIQUE_SET, pcs.metadata)
    for plan in gangs.expected_gangs(layout, {}):
        members: dict[str, list[Pod]] = {}
        content = gangs.content(plan, layout, topology, {})
        released = plan.base and not content.held
        for place in plan.places:
            clique = podcliques.desired_clique(layout, place, hashes.cliques[place.template.name], owner)
            clique = changed(clique, metadata={"uid": f"{uid}/{place.name}"})
            for index in range(clique.spec.replicas or 0):
                manifest = pods.pod_manifest(
                    clique, layout, place, index, name=pods.pod_name(clique, index, 0, ()), waiting=_WAITING
                )
                manifest["spec"].setdefault("schedulerName", surroundings.default_scheduler or DEFAULT_SCHEDULER)
                if released:
                    manifest["spec"]["schedulingGates"] = manifest["spec"]["schedulingGates"][1:]
                pod = _aged(_decoded(POD, manifest), surroundings, born)
                members.setdefault(place.name, []).append(pod)
        counted = {name: Headcount.of(each) for name, each in members.items()}
        content = gangs.content(plan, layout, topology, counted)
        scheduler = next((pod.spec.scheduler_name for each in members.values() for pod in each), DEFAULT_SCHEDULER)
        initialized = Condition(
            type=INITIALIZED,
            status="False" if content.held else "True",
            reason="TopologyMissing" if content.held else "Ready",
            message="; ".join(each.reason for each in content.held),
        )
        yield PodGang(
            metadata=ObjectMeta(
                name=plan.name,
                namespace=pcs.metadata.namespace,
                uid=f"{uid}/{plan.name}",
                creation_timestamp=born,
                labels=gangs.gang_labels(layout, plan, scheduler),
                annotations=gangs.gang_annotations(layout, topology, content.spec),
            ),
            spec=content.spec,
            status=PodGangStatus(conditions=(initialized,)),
        )
        for each in members.values():
            yield from each


def _aged(found: Any, surroundings: ExpansionContext, born: datetime) -> Any:
    """Give an object what the API server would have: an identity, an age, a pod's priority."""
    metadata = found.metadata
    changes = {
        "uid": metadata.uid or f"simulated/{found.kind}/{metadata.namespace or ''}/{metadata.name}",
        "creation_timestamp": metadata.creation_timestamp or born,
    }
    found = changed(found, metadata=changes)
    if isinstance(found, Pod) and found.spec.priority is None:
        priority = surroundings.priorities.get(found.spec.priority_class_name)
        found = changed(found, spec={"priority": priority})
    return found


def _name(manifest: JSON) -> str:
    return str((manifest.get("metadata") or {}).get("name", "without a name"))
