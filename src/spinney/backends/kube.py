"""The backend of kube-scheduler, with or without native gang scheduling.

Without it pods are placed one by one, and a workload is told so. With it (``gangScheduling: true``) each gang gets a
native group in whatever form the cluster serves (:mod:`spinney.backends.native_gangs`). That a cluster serves the kind
does not mean that pods keep their reference to it: the API server drops the field silently when its feature is off. So
``init`` has a pod created for show, and refuses to start where the reference is lost. What kube-scheduler itself has
switched on can only be tried, which ``verifyGangScheduling`` does (:mod:`spinney.backends.gang_probe`).
"""

import contextlib
from collections.abc import Mapping
from typing import ClassVar

import msgspec
import structlog

from spinney.api import labels as marks
from spinney.api.core import POD, Pod
from spinney.api.grove import PodCliqueSet
from spinney.api.meta import ObjectMeta
from spinney.api.podgang import PodGang, PodGangSpec, PodGroup
from spinney.api.resource import Resource
from spinney.api.struct import JSON, to_json
from spinney.api.workload_v1beta1 import COMPOSITE_POD_GROUP, MAX_TEMPLATES
from spinney.backends import composites
from spinney.backends.ensuring import reject_foreign, serves
from spinney.backends.gang_probe import probe
from spinney.backends.interface import (
    BackendContext,
    BackendUnavailable,
    Capabilities,
    Degradation,
    PodManifest,
    Rejected,
    Right,
    SchedulerBackend,
)
from spinney.backends.membership import is_member, may_release_beyond
from spinney.backends.native_gangs import NEWEST_FIRST, GangTraits, NativeGangs
from spinney.backends.requirements import (
    between_gangs,
    goes_beyond_minimum,
    pod_spec_of,
    preferences_lost,
    priority_of,
    reject_required_topology,
    topology_requirements,
)
from spinney.kube.discovery import served
from spinney.kube.errors import AlreadyExists, ApiError, Conflict, NotFound

log = structlog.get_logger()

NOT_KEPT = "the workload is scheduled without gang guarantees: kube-scheduler does not keep native gangs together"
NO_GANGS = "the workload is scheduled without gang guarantees: kube-scheduler places its pods one by one"
TRIAL_NAMESPACE = "default"


class KubeSchedulerConfig(msgspec.Struct, frozen=True, rename="camel"):
    """Configuration of the kube backend."""

    key_aliases: ClassVar[dict[str, str]] = {"GangScheduling": "gangScheduling"}

    gang_scheduling: bool = False
    """Make a native group for each gang; the cluster must have the feature switched on."""
    composites: bool = False
    """On Kubernetes 1.37 (alpha there): make a tree of groups, each with its own minimum and topology."""
    verify_gang_scheduling: bool = False
    """Try a gang at start, to see whether kube-scheduler has the feature switched on, too."""


class KubeScheduler(SchedulerBackend):
    """kube-scheduler. What it can do is known after ``init``."""

    name: ClassVar[str] = "default-scheduler"
    rights: ClassVar[tuple[Right, ...]] = (
        Right(
            "scheduling.k8s.io",
            ("workloads", "podgroups", "compositepodgroups"),
            ("get", "list", "watch", "create", "patch", "delete"),
        ),
    )
    aliases: ClassVar[tuple[str, ...]] = ("kube-scheduler",)
    config_type: ClassVar[type[msgspec.Struct] | None] = KubeSchedulerConfig

    def __init__(self, context: BackendContext, config: KubeSchedulerConfig | None = None) -> None:
        super().__init__(context, config or KubeSchedulerConfig())
        self._native: NativeGangs | None = None
        self._topology = False
        self._kept = True

    async def init(self) -> None:
        """With gang scheduling, find out in which form the cluster serves it and whether pods can use it."""
        if not self.config.gang_scheduling:
            for key, value in (
                ("composites", self.config.composites),
                ("verifyGangScheduling", self.config.verify_gang_scheduling),
            ):
                if value:
                    raise BackendUnavailable(f"{key} is on and gangScheduling is not; switch both on, or neither")
            return
        self._native = await self._look_around()
        await self._try_pod(self._native)
        if self.config.composites and not await serves(self.context.client, COMPOSITE_POD_GROUP):
            raise BackendUnavailable(
                f"composites is on, and the cluster serves no composite pod groups; it needs {composites.FLAGS}"
            )
        log.info("native gang scheduling", release=self._native.release, topology=self._topology)
        if self.config.verify_gang_scheduling:
            found = await probe(self.context.client, self._native, namespace=TRIAL_NAMESPACE, scheduler=self.name)
            self._kept = found.status != "False"
            report = log.info if found.status == "True" else log.warning
            report("gang scheduling probed", verified=found.status, reason=found.reason, message=found.message)

    @property
    def capabilities(self) -> Capabilities:
        native = self._native is not None
        return Capabilities(
            gang_scheduling=native and self._kept,
            required_topology=self._topology,
            group_topology=self._topology and self.config.composites,
            joins_at_creation=True,
            minimum_members_only=native,
        )

    def prepare_pod(self, pod: PodManifest, gang: PodGang) -> None:
        pod["spec"]["schedulerName"] = self.name
        if self._native is not None and (group := self._group_name(self._native, pod["metadata"]["labels"], gang)):
            self._native.join(pod["spec"], group)

    def is_prepared_for(self, pod: Pod, gang: PodGang) -> bool:
        """Which group a pod names is fixed, and the group of a former life is gone."""
        joined = None if self._native is None else self._native.joined(pod.spec)
        if self._native is None or joined is None:
            return True
        return joined == (self._group_name(self._native, pod.metadata.labels, gang) or joined)

    def may_release(self, pod: Pod, gang: PodGang) -> bool:
        return self._native is None or self._is_tree(gang) or may_release_beyond(pod, gang)

    async def validate_pod_clique_set(self, pcs: PodCliqueSet, old: PodCliqueSet | None) -> list[Degradation]:
        lost = preferences_lost(pcs)
        if self._native is None:
            reject_required_topology(pcs, "which kube-scheduler does only with native gang scheduling")
            return [Degradation("gang_scheduling", NO_GANGS), *lost]
        if not self._kept:
            lost.insert(0, Degradation("gang_scheduling", NOT_KEPT))
        _reject_mixed_priorities(pcs)
        lost += between_gangs(pcs)
        if self.config.composites and _base_groups(pcs) <= MAX_TEMPLATES:
            if not self._topology:
                reject_required_topology(pcs, "and this cluster does not serve topology constraints of native gangs")
            return lost
        self._reject_topology(pcs)
        if self.config.composites:
            text = f"a gang of more than {MAX_TEMPLATES} groups is flat: one minimum and one constraint for all of it"
            lost.append(Degradation("group_topology", text))
        return lost

    async def sync_pod_gang(self, gang: PodGang) -> None:
        if self._native is None:
            return
        try:
            await self._sync(self._native, gang)
        except NotFound:
            # The cluster was upgraded and serves another form now.
            self._native = await self._look_around()
            await self._sync(self._native, gang)

    # -- finding out ---------------------------------------------------------------------------------------------------

    async def _look_around(self) -> NativeGangs:
        """Return the form of native gangs that the cluster serves, and note whether it has topology constraints."""
        available = await served(self.context.client, [native.resource for native in NEWEST_FIRST])
        for native in NEWEST_FIRST:
            if native.resource in available:
                self._topology = native.topology and await self._try_topology(native)
                return native
        wanted = "; or ".join(f"Kubernetes {each.release} with {each.flags}" for each in NEWEST_FIRST)
        raise BackendUnavailable(f"gangScheduling is on, and the cluster serves no native gangs; it needs {wanted}")

    async def _try_pod(self, native: NativeGangs) -> None:
        spec: JSON = {"containers": [{"name": "trial", "image": "trial"}], "schedulerName": self.name}
        native.join(spec, "spinney-trial")
        manifest = {"metadata": {"name": "spinney-trial", "namespace": TRIAL_NAMESPACE}, "spec": spec}
        try:
            created = await self.context.client.create(POD, manifest, dry_run=True, type=Pod)
        except AlreadyExists:
            return
        except ApiError as error:
            raise BackendUnavailable(
                f"gangScheduling is on, and a trial pod in namespace {TRIAL_NAMESPACE!r} was refused: {error}"
            ) from error
        if native.joined(created.spec) is None:
            raise BackendUnavailable(
                "gangScheduling is on, and the API server drops the reference from pods to their group; "
                f"start kube-apiserver and kube-scheduler of {native.release} with {native.flags}"
            )

    async def _try_topology(self, native: NativeGangs) -> bool:
        gang = PodGang(
            metadata=ObjectMeta(name="spinney-trial", namespace=TRIAL_NAMESPACE, uid="trial"),
            spec=PodGangSpec(pod_groups=(PodGroup(name="trial", min_replicas=1),)),
        )
        manifest: JSON = to_json(native.group(gang, GangTraits("", "kubernetes.io/hostname")))
        manifest["metadata"].pop("ownerReferences")
        try:
            created: JSON = await self.context.client.create(native.resource, manifest, dry_run=True)
        except ApiError:
            return False
        return bool(created["spec"].get("schedulingConstraints", {}).get("topology"))

    # -- judging -------------------------------------------------------------------------------------------------------

    def _reject_topology(self, pcs: PodCliqueSet) -> None:
        cliques = pcs.spec.template.cliques
        for requirement in topology_requirements(pcs):
            if requirement.required is None:
                continue
            if not self._topology:
                raise Rejected(
                    f"topology domain {requirement.required!r} is required, and this cluster does not serve topology "
                    "constraints of native gangs (feature TopologyAwareWorkloadScheduling)",
                    path=requirement.path,
                )
            if requirement.level != "set" and _base_groups(pcs) > 1:
                raise Rejected(
                    f"topology domain {requirement.required!r} is required for a part of a gang, and a native gang "
                    "has one constraint for all its pods; require it on spec.template",
                    path=requirement.path,
                )
            beyond = next((clique.name for clique in cliques if goes_beyond_minimum(clique)), None)
            if beyond is not None:
                raise Rejected(
                    f"topology domain {requirement.required!r} is required, and pods of clique {beyond!r} beyond its "
                    "minAvailable are not in the native gang; set minAvailable to replicas",
                    path=requirement.path,
                )

    # -- writing -------------------------------------------------------------------------------------------------------

    def _group_name(self, native: NativeGangs, labels: Mapping[str, str], gang: PodGang) -> str | None:
        """Return the native group of a pod with these labels, unless it is in none."""
        if self._is_tree(gang):
            return composites.name_in_tree(labels[marks.POD_CLIQUE], gang)
        return native.group_name(gang) if is_member(labels, gang) else None

    def _is_tree(self, gang: PodGang) -> bool:
        return bool(self.config.composites) and composites.fits(gang)

    async def _sync(self, native: NativeGangs, gang: PodGang) -> None:
        traits = self._traits(gang)
        if self._is_tree(gang):
            wanted = composites.tree(gang, traits.priority_class, topology=self._topology)
            kinds: tuple[Resource, ...] = composites.KINDS
        else:
            wanted = [(native.resource, native.group(gang, traits))]
            kinds = (native.resource,)
        manifests: list[tuple[Resource, JSON]] = [(resource, to_json(each)) for resource, each in wanted]
        for resource, manifest in manifests:
            await self._put(native, resource, manifest)
        names = {(resource, manifest["metadata"]["name"]) for resource, manifest in manifests}
        for kind in kinds:
            await self._delete_former(kind, gang, names)

    async def _put(self, native: NativeGangs, resource: Resource, manifest: JSON) -> None:
        """Create an object, or change the one thing about an existing one that may be changed."""
        client, metadata = self.context.client, manifest["metadata"]
        existing = await client.find(resource, metadata["name"], metadata["namespace"])
        if existing is None:
            with contextlib.suppress(AlreadyExists):
                await client.create(resource, manifest)
            return
        reject_foreign(resource, manifest, existing)
        if resource == native.resource and native.mutable_minimum:
            policy, stored = (each["spec"]["schedulingPolicy"]["gang"] for each in (manifest, existing))
            if policy["minCount"] != stored["minCount"]:
                patch = {"spec": {"schedulingPolicy": {"gang": {"minCount": policy["minCount"]}}}}
                await client.patch(resource, metadata["name"], patch, metadata["namespace"])

    async def _delete_former(self, kind: Resource, gang: PodGang, kept: set[tuple[Resource, str]]) -> None:
        selector = f"{marks.POD_GANG}={gang.metadata.name}"
        listing = await self.context.client.list(kind, gang.metadata.namespace, type=JSON, label_selector=selector)
        for found in listing.items:
            metadata = found["metadata"]
            if (kind, metadata["name"]) in kept or "deletionTimestamp" in metadata:
                continue
            with contextlib.suppress(NotFound, Conflict):
                await self.context.client.delete(kind, metadata["name"], gang.metadata.namespace, uid=metadata["uid"])

    def _traits(self, gang: PodGang) -> GangTraits:
        pcs = self.context.lookup.pod_clique_set(gang)
        spec = (
            pod_spec_of(gang.spec.pod_groups[0].name, gang, pcs) if pcs is not None and gang.spec.pod_groups else None
        )
        priority = (spec or {}).get("priorityClassName") or gang.spec.priority_class_name or ""
        return GangTraits(priority, _topology_key(gang) if self._topology else None)


def _base_groups(pcs: PodCliqueSet) -> int:
    """Return how many groups the base gang of a set has."""
    template = pcs.spec.template
    members = [name for group in template.pod_clique_scaling_groups for name in group.clique_names]
    grouped = sum((g.min_available or 1) * len(g.clique_names) for g in template.pod_clique_scaling_groups)
    return len(template.cliques) - len(members) + grouped


def _topology_key(gang: PodGang) -> str | None:
    """Return the node label that confines a whole gang: in a gang of one group the narrowest of its constraints."""
    spec = gang.spec
    constraints = [spec.topology_constraint]
    if len(spec.pod_groups) == 1:
        constraints += [config.topology_constraint for config in spec.topology_constraint_group_configs]
        constraints.append(spec.pod_groups[0].topology_constraint)
    packs = [constraint.pack_constraint for constraint in constraints if constraint is not None]
    return next((pack.required for pack in reversed(packs) if pack is not None and pack.required), None)


def _reject_mixed_priorities(pcs: PodCliqueSet) -> None:
    """A native gang is refused by kube-scheduler when its pods differ in priority or preemption policy."""
    cliques = pcs.spec.template.cliques
    first = priority_of(pcs, cliques[0])
    for index, clique in enumerate(cliques):
        other = priority_of(pcs, clique)
        if other != first:
            raise Rejected(
                f"clique {clique.name!r} has priority class {other[0]!r} (preemption policy {other[1]!r}) and clique "
                f"{cliques[0].name!r} {first[0]!r} ({first[1]!r}); all pods of a native gang must have the same",
                path=f"spec.template.cliques[{index}].spec.podSpec.priorityClassName",
            )
