"""The built-in kinds: a table of what each is called, and what is special about serving it.

A line begins with the plural, the kind and short names, then says how the kind is served, in the words of ``_TRAITS``.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from spinney.api.resource import Resource
from spinney.server.admission.configurations import WebhookConfigurationBehaviour
from spinney.server.admission.policy_kinds import PolicyBehaviour, PolicyBindingBehaviour
from spinney.server.authorization.kinds import BindingBehaviour, RoleBehaviour
from spinney.server.builtin.autoscalers import AutoscalerBehaviour, newer_autoscaler, older_autoscaler
from spinney.server.builtin.gangs import CompositePodGroupBehaviour, PodGroupBehaviour, WorkloadBehaviour
from spinney.server.builtin.networking import (
    EndpointsBehaviour,
    EndpointSliceBehaviour,
    IngressBehaviour,
    NetworkPolicyBehaviour,
    ServiceBehaviour,
)
from spinney.server.builtin.rules import (
    BudgetBehaviour,
    ConfigMapBehaviour,
    CronJobBehaviour,
    DeploymentBehaviour,
    EventBehaviour,
    FirstStatus,
    JobBehaviour,
    LeaseBehaviour,
    NamespaceBehaviour,
    NodeBehaviour,
    PodTemplateBehaviour,
    PriorityClassBehaviour,
    SecretBehaviour,
    core_event,
    grouped_event,
)
from spinney.server.builtin.storage import (
    ClaimBehaviour,
    ClassBehaviour,
    DeviceClaimBehaviour,
    DriverBehaviour,
    VolumeBehaviour,
)
from spinney.server.kinds import shapes
from spinney.server.kinds.kind import BASE_BEHAVIOUR, Behaviour, FieldLabel, Kind, ScalePaths
from spinney.server.kinds.shape import MergeShape
from spinney.server.options import GangVersion
from spinney.server.pods.behaviour import PodBehaviour
from spinney.server.quota.kinds import LimitRangeBehaviour, QuotaBehaviour

_REPLICAS = ScalePaths(("spec", "replicas"), ("status", "replicas"), ("spec", "selector"))
_NO_NAMESPACE = frozenset(("metadata.namespace",))
_CREATE_ONLY = ("create",)
_PROXY = {"proxy": ("create", "delete", "get", "patch", "update")}
_TRAITS: Mapping[str, Mapping[str, Any]] = {
    "all": {"categories": ("all",)},  # what "kubectl get all" shows
    "extension": {"categories": ("api-extensions",)},
    "status": {"status": True},
    "counted": {"generation": True},  # generations are counted
    "conditional": {"unconditional_update": False},  # an update names the version that it is for
    "made-by-update": {"create_on_update": True},
    "returned": {"returns_deleted": True},  # a deletion answers with the object
    "posted": {"verbs": _CREATE_ONLY},  # a question, which is never stored
}


def _kind(
    names: str,
    traits: str = "",
    behaviour: Behaviour = BASE_BEHAVIOUR,
    shape: MergeShape = shapes.PLAIN,
    *,
    group: str = "",
    version: str = "v1",
    namespaced: bool = True,
    **more: Any,
) -> Kind:
    """Return a kind that is stored as itself, unless ``more`` says otherwise."""
    plural, kind, *short = names.split()
    resource = Resource(group, version, kind, plural, namespaced, tuple(short))
    served: dict[str, Any] = {"storage": str(resource), "storage_version": resource.api_version, "generation": False}
    for trait in traits.split():
        served |= _TRAITS[trait]
    return Kind(
        resource=resource,
        singular=kind.lower(),
        list_kind=kind + "List",
        behaviour=behaviour,
        shape=shape,
        **(served | more),
    )


def _label(name: str, absent: str = "") -> FieldLabel:
    return FieldLabel(name, tuple(name.split(".")), absent)


def _core(pod_gang_fields: tuple[str, ...]) -> list[Kind]:
    cluster = partial(_kind, namespaced=False)
    return [
        _kind(
            "pods Pod po",
            "all status counted returned",
            PodBehaviour(pod_gang_fields),
            shapes.POD,
            subresources={
                "attach": ("create", "get"),
                "binding": _CREATE_ONLY,
                "eviction": _CREATE_ONLY,
                "ephemeralcontainers": ("get", "patch", "update"),
                "exec": ("create", "get"),
                "log": ("get",),
                "portforward": ("create", "get"),
                "resize": ("get", "patch", "update"),
                **_PROXY,
            },
            labels=(
                _label("spec.nodeName"),
                _label("spec.restartPolicy"),
                _label("spec.schedulerName"),
                _label("spec.serviceAccountName"),
                _label("spec.hostNetwork", "false"),
                _label("status.phase"),
                _label("status.podIP"),
                FieldLabel("status.podIPs", ("status", "podIPs", "")),  # known, and equal to nothing
                _label("status.nominatedNodeName"),
            ),
        ),
        cluster(
            "nodes Node no",
            "status",
            NodeBehaviour(),
            shapes.NODE,
            status_at_create=True,
            subresources=_PROXY,
            labels=(_label("spec.unschedulable", "false"),),
            hidden_labels=_NO_NAMESPACE,
        ),
        cluster(
            "namespaces Namespace ns",
            "status",
            NamespaceBehaviour(),
            shapes.NAMESPACE,
            subresources={"finalize": ("update",)},
            verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
            labels=(_label("status.phase"),),
            hidden_labels=_NO_NAMESPACE,
        ),
        _kind("configmaps ConfigMap cm", "", ConfigMapBehaviour()),
        _kind("secrets Secret", "", SecretBehaviour(), shapes.SECRET, labels=(_label("type"),)),
        _kind(
            "services Service svc",
            "all status returned",
            ServiceBehaviour(),
            shapes.SERVICE,
            subresources=_PROXY,
            labels=(_label("spec.clusterIP"), _label("spec.type")),
        ),
        _kind(
            "endpoints Endpoints ep",
            "made-by-update",
            EndpointsBehaviour(),
            deprecation="v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        ),
        _kind(
            "serviceaccounts ServiceAccount sa",
            "returned",
            shape=shapes.SERVICE_ACCOUNT,
            subresources={"token": _CREATE_ONLY},
        ),
        cluster(
            "persistentvolumes PersistentVolume pv", "status returned", VolumeBehaviour(), shapes.PERSISTENT_VOLUME
        ),
        _kind("persistentvolumeclaims PersistentVolumeClaim pvc", "status returned", ClaimBehaviour(), shapes.CLAIM),
        _kind("resourcequotas ResourceQuota quota", "status returned", QuotaBehaviour()),
        _kind("limitranges LimitRange limits", "", LimitRangeBehaviour()),
        _kind("podtemplates PodTemplate", "counted returned", PodTemplateBehaviour(), shapes.POD_TEMPLATE),
        _kind(
            "replicationcontrollers ReplicationController rc",
            "all status counted",
            DeploymentBehaviour(),
            shapes.WORKLOAD_CONTROLLER,
            scale=_REPLICAS,
            labels=(_label("status.replicas", "0"),),
        ),
        _kind("bindings Binding", "posted"),
    ]


def _events() -> list[Kind]:
    about = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    labels = (
        *(_label(f"involvedObject.{name}") for name in about),
        _label("reason"),
        _label("reportingComponent"),
        FieldLabel("source", ("source", "component")),
        _label("type"),
    )
    core = _kind("events Event ev", "made-by-update", EventBehaviour(), labels=labels)
    grouped = replace(
        core,
        resource=replace(core.resource, group="events.k8s.io"),
        label_aliases={f"regarding.{name}": f"involvedObject.{name}" for name in about}
        | {"reportingController": "reportingComponent"},
        hidden_labels=frozenset(label.name for label in labels if label.name not in {"reason", "type"}),
        to_storage=core_event,
        from_storage=grouped_event,
    )
    return [core, grouped]


def _workload_controllers() -> list[Kind]:
    def kind(names: str, behaviour: Behaviour, shape: MergeShape = shapes.WORKLOAD_CONTROLLER, **more: Any) -> Kind:
        return _kind(names, "all status counted", behaviour, shape, **more)

    deployments = DeploymentBehaviour()
    succeeded = FieldLabel("status.successful", ("status", "succeeded"), "0")
    return [
        kind("deployments Deployment deploy", deployments, group="apps", scale=_REPLICAS),
        kind("replicasets ReplicaSet rs", deployments, group="apps", scale=_REPLICAS),
        kind("statefulsets StatefulSet sts", deployments, group="apps", scale=_REPLICAS),
        kind("daemonsets DaemonSet ds", deployments, group="apps"),
        _kind("controllerrevisions ControllerRevision", group="apps"),
        kind("jobs Job", JobBehaviour(), group="batch", labels=(succeeded,)),
        kind("cronjobs CronJob cj", CronJobBehaviour(), shapes.CRON_JOB, group="batch"),
        *_autoscalers(),
        _kind(
            "poddisruptionbudgets PodDisruptionBudget pdb",
            "status counted conditional",
            BudgetBehaviour(),
            shapes.BUDGET,
            group="policy",
        ),
    ]


def _autoscalers() -> list[Kind]:
    stored = _kind(
        "horizontalpodautoscalers HorizontalPodAutoscaler hpa",
        "all status counted",
        AutoscalerBehaviour(),
        shapes.AUTOSCALER,
        group="autoscaling",
        version="v2",
    )
    older = replace(
        stored,
        resource=replace(stored.resource, version="v1"),
        shape=shapes.PLAIN,
        to_storage=newer_autoscaler,
        from_storage=older_autoscaler,
    )
    return [stored, older]


def _scheduling(gangs: tuple[GangVersion, ...]) -> list[Kind]:
    group = "scheduling.k8s.io"
    kinds = [
        _kind("priorityclasses PriorityClass pc", "counted", PriorityClassBehaviour(), group=group, namespaced=False)
    ]
    for version in gangs:
        kind = partial(_kind, group=group, version=version, storage_version=f"{group}/{gangs[0]}")
        workload, pod_group = WorkloadBehaviour(version), PodGroupBehaviour(version)
        kinds.append(kind("workloads Workload", "conditional", workload, shapes.NATIVE_WORKLOAD))
        if version != "v1alpha1":
            kinds.append(kind("podgroups PodGroup", "status conditional", pod_group, shapes.NATIVE_POD_GROUP))
        if version == "v1alpha3":
            kinds.append(
                _kind(
                    "compositepodgroups CompositePodGroup",
                    "status conditional",
                    CompositePodGroupBehaviour(version),
                    shapes.NATIVE_POD_GROUP,
                    group=group,
                    version=version,
                )
            )
    return kinds


def _storage() -> list[Kind]:
    kind = partial(_kind, group="storage.k8s.io", namespaced=False)
    return [
        kind("storageclasses StorageClass sc", "returned", ClassBehaviour(), shapes.STORAGE_CLASS),
        kind("csinodes CSINode", "returned conditional", shape=shapes.CSI_NODE),
        kind("csidrivers CSIDriver", "returned conditional", DriverBehaviour()),
        _kind("csistoragecapacities CSIStorageCapacity", "conditional", group="storage.k8s.io"),
        kind("volumeattachments VolumeAttachment", "status returned conditional", FirstStatus(attached=False)),
    ]


def _devices() -> list[Kind]:
    kind = partial(_kind, group="resource.k8s.io")
    return [
        kind("resourceclaims ResourceClaim", "status returned", DeviceClaimBehaviour(), shapes.RESOURCE_CLAIM),
        kind("resourceclaimtemplates ResourceClaimTemplate", "returned", DeviceClaimBehaviour()),
        kind(
            "resourceslices ResourceSlice",
            "counted returned",
            namespaced=False,
            labels=(_label("spec.nodeName"), _label("spec.driver"), _label("spec.pool.name")),
            hidden_labels=_NO_NAMESPACE,
        ),
        kind("deviceclasses DeviceClass", "counted returned", namespaced=False),
        kind("devicetaintrules DeviceTaintRule", "status counted returned", namespaced=False),
    ]


def _rbac() -> list[Kind]:
    kind = partial(_kind, group="rbac.authorization.k8s.io")
    return [
        kind("roles Role", "", RoleBehaviour()),
        kind("rolebindings RoleBinding", "", BindingBehaviour()),
        kind("clusterroles ClusterRole", "", RoleBehaviour(), shapes.CLUSTER_ROLE, namespaced=False),
        kind("clusterrolebindings ClusterRoleBinding", "", BindingBehaviour(), namespaced=False),
    ]


def _extension() -> list[Kind]:
    kind = partial(_kind, group="admissionregistration.k8s.io", namespaced=False)
    served, hooks = "extension counted conditional", WebhookConfigurationBehaviour()
    return [
        kind("validatingwebhookconfigurations ValidatingWebhookConfiguration", served, hooks, shapes.WEBHOOKS),
        kind("mutatingwebhookconfigurations MutatingWebhookConfiguration", served, hooks, shapes.WEBHOOKS),
        kind(
            "validatingadmissionpolicies ValidatingAdmissionPolicy",
            f"{served} status",
            PolicyBehaviour(),
            shapes.POLICY,
        ),
        kind(
            "validatingadmissionpolicybindings ValidatingAdmissionPolicyBinding",
            served,
            PolicyBindingBehaviour(),
            shapes.POLICY_BINDING,
        ),
    ]


def _others() -> list[Kind]:
    network = partial(_kind, group="networking.k8s.io")
    access = partial(_kind, traits="posted", group="authorization.k8s.io")
    identity = partial(_kind, traits="posted", group="authentication.k8s.io", namespaced=False)
    return [
        _kind("leases Lease", "conditional made-by-update", LeaseBehaviour(), group="coordination.k8s.io"),
        _kind("endpointslices EndpointSlice", "counted", EndpointSliceBehaviour(), group="discovery.k8s.io"),
        _kind("runtimeclasses RuntimeClass", "conditional", group="node.k8s.io", namespaced=False),
        network("networkpolicies NetworkPolicy netpol", "counted", NetworkPolicyBehaviour()),
        network("ingresses Ingress ing", "status counted", IngressBehaviour(), shapes.INGRESS),
        network("ingressclasses IngressClass", "counted", namespaced=False),
        access("selfsubjectaccessreviews SelfSubjectAccessReview", namespaced=False),
        access("selfsubjectrulesreviews SelfSubjectRulesReview", namespaced=False),
        access("subjectaccessreviews SubjectAccessReview", namespaced=False),
        access("localsubjectaccessreviews LocalSubjectAccessReview"),
        identity("selfsubjectreviews SelfSubjectReview"),
        identity("tokenreviews TokenReview"),
    ]


def builtin_kinds(gangs: tuple[GangVersion, ...]) -> list[Kind]:
    """Return every built-in kind, with the given generations of the native gang API; the first is stored."""
    pod_gang_fields = ("workloadRef",) if gangs == ("v1alpha1",) else ("schedulingGroup",) if gangs else ()
    return [
        *_core(pod_gang_fields),
        *_events(),
        *_workload_controllers(),
        *_scheduling(gangs),
        *_storage(),
        *_devices(),
        *_rbac(),
        *_extension(),
        *_others(),
    ]
