"""The built-in kinds: a table of what each is called, and what is special about serving it."""

from dataclasses import replace
from typing import Any

from spinney.api.resource import Resource
from spinney.server.admission.configurations import WebhookConfigurationBehaviour
from spinney.server.admission.policy_kinds import PolicyBehaviour, PolicyBindingBehaviour
from spinney.server.authorization.kinds import BindingBehaviour, RoleBehaviour
from spinney.server.builtin.autoscalers import AutoscalerBehaviour, newer_autoscaler, older_autoscaler
from spinney.server.builtin.events import EventBehaviour, core_event, grouped_event
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
    JobBehaviour,
    LeaseBehaviour,
    NamespaceBehaviour,
    NodeBehaviour,
    PodTemplateBehaviour,
    PriorityClassBehaviour,
    SecretBehaviour,
)
from spinney.server.builtin.storage import (
    AttachmentBehaviour,
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


def _kind(
    plural: str,
    kind: str,
    *,
    group: str = "",
    version: str = "v1",
    namespaced: bool = True,
    short: str = "",
    **traits: Any,
) -> Kind:
    """Return a kind that is stored as itself and whose generations are not counted, unless ``traits`` say otherwise."""
    resource = Resource(group, version, kind, plural, namespaced, tuple(short.split()))
    usual: dict[str, Any] = {"storage": str(resource), "storage_version": resource.api_version, "generation": False}
    return Kind(resource=resource, singular=kind.lower(), list_kind=kind + "List", **(usual | traits))


def _label(name: str, absent: str = "") -> FieldLabel:
    return FieldLabel(name, tuple(name.split(".")), absent)


def _core(pod_gang_fields: tuple[str, ...]) -> list[Kind]:
    return [
        _kind(
            "pods",
            "Pod",
            short="po",
            categories=("all",),
            status=True,
            generation=True,
            returns_deleted=True,
            shape=shapes.POD,
            behaviour=PodBehaviour(pod_gang_fields),
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
        _kind(
            "nodes",
            "Node",
            namespaced=False,
            short="no",
            status=True,
            status_at_create=True,
            shape=shapes.NODE,
            behaviour=NodeBehaviour(),
            subresources=_PROXY,
            labels=(_label("spec.unschedulable", "false"),),
            hidden_labels=_NO_NAMESPACE,
        ),
        _kind(
            "namespaces",
            "Namespace",
            namespaced=False,
            short="ns",
            status=True,
            shape=shapes.NAMESPACE,
            behaviour=NamespaceBehaviour(),
            subresources={"finalize": ("update",)},
            verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
            labels=(_label("status.phase"),),
            hidden_labels=_NO_NAMESPACE,
        ),
        _kind("configmaps", "ConfigMap", short="cm", behaviour=ConfigMapBehaviour()),
        _kind("secrets", "Secret", shape=shapes.SECRET, behaviour=SecretBehaviour(), labels=(_label("type"),)),
        _kind(
            "services",
            "Service",
            short="svc",
            categories=("all",),
            status=True,
            returns_deleted=True,
            shape=shapes.SERVICE,
            behaviour=ServiceBehaviour(),
            subresources=_PROXY,
            labels=(_label("spec.clusterIP"), _label("spec.type")),
        ),
        _kind(
            "endpoints",
            "Endpoints",
            short="ep",
            create_on_update=True,
            behaviour=EndpointsBehaviour(),
            deprecation="v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        ),
        _kind(
            "serviceaccounts",
            "ServiceAccount",
            short="sa",
            returns_deleted=True,
            shape=shapes.SERVICE_ACCOUNT,
            subresources={"token": _CREATE_ONLY},
        ),
        _kind(
            "persistentvolumes",
            "PersistentVolume",
            namespaced=False,
            short="pv",
            status=True,
            returns_deleted=True,
            shape=shapes.PERSISTENT_VOLUME,
            behaviour=VolumeBehaviour(),
        ),
        _kind(
            "persistentvolumeclaims",
            "PersistentVolumeClaim",
            short="pvc",
            status=True,
            returns_deleted=True,
            shape=shapes.CLAIM,
            behaviour=ClaimBehaviour(),
        ),
        _kind(
            "resourcequotas",
            "ResourceQuota",
            short="quota",
            status=True,
            returns_deleted=True,
            behaviour=QuotaBehaviour(),
        ),
        _kind("limitranges", "LimitRange", short="limits", behaviour=LimitRangeBehaviour()),
        _kind(
            "podtemplates",
            "PodTemplate",
            generation=True,
            returns_deleted=True,
            shape=shapes.POD_TEMPLATE,
            behaviour=PodTemplateBehaviour(),
        ),
        _kind(
            "replicationcontrollers",
            "ReplicationController",
            short="rc",
            categories=("all",),
            status=True,
            generation=True,
            scale=_REPLICAS,
            shape=shapes.WORKLOAD_CONTROLLER,
            behaviour=DeploymentBehaviour(),
            labels=(_label("status.replicas", "0"),),
        ),
        _kind("bindings", "Binding", verbs=_CREATE_ONLY),
    ]


def _events() -> list[Kind]:
    labels = (
        *(
            _label(f"involvedObject.{name}")
            for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
        ),
        _label("reason"),
        FieldLabel("reportingComponent", ("reportingComponent",)),
        FieldLabel("source", ("source", "component")),
        _label("type"),
    )
    core = _kind(
        "events",
        "Event",
        short="ev",
        create_on_update=True,
        storage="events",
        labels=labels,
        behaviour=EventBehaviour(),
    )
    grouped = Kind(
        resource=Resource("events.k8s.io", "v1", "Event", "events", True, ("ev",)),
        storage="events",
        storage_version="v1",
        singular="event",
        list_kind="EventList",
        labels=labels,
        label_aliases={
            "regarding." + label.name.removeprefix("involvedObject."): label.name
            for label in labels
            if label.name.startswith("involvedObject.")
        }
        | {"reportingController": "reportingComponent"},
        hidden_labels=frozenset(label.name for label in labels if label.name not in {"reason", "type"}),
        generation=False,
        create_on_update=True,
        behaviour=EventBehaviour(),
        to_storage=core_event,
        from_storage=grouped_event,
    )
    return [core, grouped]


def _workload_controllers() -> list[Kind]:
    return [
        *(
            _kind(
                plural,
                kind,
                group="apps",
                short=short,
                categories=("all",),
                status=True,
                generation=True,
                scale=scale,
                shape=shapes.WORKLOAD_CONTROLLER,
                behaviour=DeploymentBehaviour(),
                labels=labels,
            )
            for plural, kind, short, scale, labels in (
                ("deployments", "Deployment", "deploy", _REPLICAS, ()),
                ("replicasets", "ReplicaSet", "rs", _REPLICAS, ()),
                ("statefulsets", "StatefulSet", "sts", _REPLICAS, ()),
                ("daemonsets", "DaemonSet", "ds", None, ()),
            )
        ),
        _kind("controllerrevisions", "ControllerRevision", group="apps"),
        _kind(
            "jobs",
            "Job",
            group="batch",
            categories=("all",),
            status=True,
            generation=True,
            shape=shapes.WORKLOAD_CONTROLLER,
            behaviour=JobBehaviour(),
            labels=(FieldLabel("status.successful", ("status", "succeeded"), "0"),),
        ),
        _kind(
            "cronjobs",
            "CronJob",
            group="batch",
            short="cj",
            categories=("all",),
            status=True,
            generation=True,
            shape=shapes.CRON_JOB,
            behaviour=CronJobBehaviour(),
        ),
        *_autoscalers(),
        _kind(
            "poddisruptionbudgets",
            "PodDisruptionBudget",
            group="policy",
            short="pdb",
            status=True,
            generation=True,
            unconditional_update=False,
            shape=shapes.BUDGET,
            behaviour=BudgetBehaviour(),
        ),
    ]


def _autoscalers() -> list[Kind]:
    stored = _kind(
        "horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
        group="autoscaling",
        version="v2",
        short="hpa",
        categories=("all",),
        status=True,
        generation=True,
        shape=shapes.AUTOSCALER,
        behaviour=AutoscalerBehaviour(),
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
        _kind(
            "priorityclasses",
            "PriorityClass",
            group=group,
            namespaced=False,
            short="pc",
            behaviour=PriorityClassBehaviour(),
            generation=True,
        )
    ]
    stored = gangs[0] if gangs else "v1beta1"
    for version in gangs:
        kinds.append(
            _kind(
                "workloads",
                "Workload",
                group=group,
                version=version,
                storage_version=f"{group}/{stored}",
                unconditional_update=False,
                shape=shapes.NATIVE_WORKLOAD,
                behaviour=WorkloadBehaviour(version),
            )
        )
        if version == "v1alpha1":
            continue
        kinds.append(
            _kind(
                "podgroups",
                "PodGroup",
                group=group,
                version=version,
                storage_version=f"{group}/{stored}",
                status=True,
                unconditional_update=False,
                shape=shapes.NATIVE_POD_GROUP,
                behaviour=PodGroupBehaviour(version),
            )
        )
        if version == "v1alpha3":
            kinds.append(
                _kind(
                    "compositepodgroups",
                    "CompositePodGroup",
                    group=group,
                    version=version,
                    status=True,
                    unconditional_update=False,
                    shape=shapes.NATIVE_POD_GROUP,
                    behaviour=CompositePodGroupBehaviour(version),
                )
            )
    return kinds


def _storage() -> list[Kind]:
    def kind(plural: str, name: str, behaviour: Behaviour = BASE_BEHAVIOUR, **more: Any) -> Kind:
        return _kind(
            plural, name, group="storage.k8s.io", namespaced=False, returns_deleted=True, behaviour=behaviour, **more
        )

    return [
        kind("storageclasses", "StorageClass", ClassBehaviour(), short="sc", shape=shapes.STORAGE_CLASS),
        kind("csinodes", "CSINode", shape=shapes.CSI_NODE, unconditional_update=False),
        kind("csidrivers", "CSIDriver", DriverBehaviour(), unconditional_update=False),
        _kind("csistoragecapacities", "CSIStorageCapacity", group="storage.k8s.io", unconditional_update=False),
        kind("volumeattachments", "VolumeAttachment", AttachmentBehaviour(), status=True, unconditional_update=False),
    ]


def _devices() -> list[Kind]:
    def kind(plural: str, name: str, behaviour: Behaviour = BASE_BEHAVIOUR, **more: Any) -> Kind:
        return _kind(plural, name, group="resource.k8s.io", returns_deleted=True, behaviour=behaviour, **more)

    return [
        kind("resourceclaims", "ResourceClaim", DeviceClaimBehaviour(), status=True, shape=shapes.RESOURCE_CLAIM),
        kind("resourceclaimtemplates", "ResourceClaimTemplate", DeviceClaimBehaviour()),
        kind(
            "resourceslices",
            "ResourceSlice",
            namespaced=False,
            generation=True,
            labels=(_label("spec.nodeName"), _label("spec.driver"), _label("spec.pool.name")),
            hidden_labels=_NO_NAMESPACE,
        ),
        kind("deviceclasses", "DeviceClass", namespaced=False, generation=True),
        kind("devicetaintrules", "DeviceTaintRule", namespaced=False, status=True, generation=True),
    ]


def _rbac() -> list[Kind]:
    group = "rbac.authorization.k8s.io"
    return [
        _kind("roles", "Role", group=group, behaviour=RoleBehaviour()),
        _kind("rolebindings", "RoleBinding", group=group, behaviour=BindingBehaviour()),
        _kind(
            "clusterroles",
            "ClusterRole",
            group=group,
            namespaced=False,
            shape=shapes.CLUSTER_ROLE,
            behaviour=RoleBehaviour(),
        ),
        _kind("clusterrolebindings", "ClusterRoleBinding", group=group, namespaced=False, behaviour=BindingBehaviour()),
    ]


def _extension() -> list[Kind]:
    def kind(plural: str, name: str, behaviour: Behaviour, shape: MergeShape, *, status: bool = False) -> Kind:
        return _kind(
            plural,
            name,
            group="admissionregistration.k8s.io",
            namespaced=False,
            categories=("api-extensions",),
            generation=True,
            unconditional_update=False,
            status=status,
            shape=shape,
            behaviour=behaviour,
        )

    hooks, policies = WebhookConfigurationBehaviour(), PolicyBehaviour()
    bindings = PolicyBindingBehaviour()
    return [
        kind("validatingwebhookconfigurations", "ValidatingWebhookConfiguration", hooks, shapes.WEBHOOKS),
        kind("mutatingwebhookconfigurations", "MutatingWebhookConfiguration", hooks, shapes.WEBHOOKS),
        kind("validatingadmissionpolicies", "ValidatingAdmissionPolicy", policies, shapes.POLICY, status=True),
        kind("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", bindings, shapes.POLICY_BINDING),
    ]


def _others() -> list[Kind]:
    return [
        _kind(
            "leases",
            "Lease",
            group="coordination.k8s.io",
            unconditional_update=False,
            create_on_update=True,
            behaviour=LeaseBehaviour(),
        ),
        _kind(
            "endpointslices",
            "EndpointSlice",
            group="discovery.k8s.io",
            generation=True,
            behaviour=EndpointSliceBehaviour(),
        ),
        _kind("runtimeclasses", "RuntimeClass", group="node.k8s.io", namespaced=False, unconditional_update=False),
        _kind(
            "networkpolicies",
            "NetworkPolicy",
            group="networking.k8s.io",
            short="netpol",
            generation=True,
            behaviour=NetworkPolicyBehaviour(),
        ),
        _kind(
            "ingresses",
            "Ingress",
            group="networking.k8s.io",
            short="ing",
            status=True,
            generation=True,
            shape=shapes.INGRESS,
            behaviour=IngressBehaviour(),
        ),
        _kind("ingressclasses", "IngressClass", group="networking.k8s.io", namespaced=False, generation=True),
        *(
            _kind(plural, kind, group=group, namespaced=namespaced, verbs=_CREATE_ONLY)
            for group, plural, kind, namespaced in (
                ("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False),
                ("authorization.k8s.io", "selfsubjectrulesreviews", "SelfSubjectRulesReview", False),
                ("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview", False),
                ("authorization.k8s.io", "localsubjectaccessreviews", "LocalSubjectAccessReview", True),
                ("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview", False),
                ("authentication.k8s.io", "tokenreviews", "TokenReview", False),
            )
        ),
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
