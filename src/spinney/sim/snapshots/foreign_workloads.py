"""Workload files of other projects: what their controllers make of an object, as far as the object alone says.

What is returned is simulated in its place: pods, or a workload whose rule says which pods it makes. Objects that make
no pods are left out. Where an object does not say which pods run at one time, the refusal says what to simulate.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from spinney.api.affinity import Toleration
from spinney.api.core import Node
from spinney.api.struct import JSON, convert
from spinney.cluster.filters.taint_toleration import tolerates
from spinney.grouping.owners import group_kind
from spinney.grouping.terms import RuleRefused

WITHOUT_PODS: Final = frozenset(
    {
        "v1/Service",
        "v1/ConfigMap",
        "v1/Secret",
        "v1/ServiceAccount",
        "networking.k8s.io/Ingress",
        "networking.k8s.io/NetworkPolicy",
        "rbac.authorization.k8s.io/Role",
        "rbac.authorization.k8s.io/RoleBinding",
        "rbac.authorization.k8s.io/ClusterRole",
        "rbac.authorization.k8s.io/ClusterRoleBinding",
        "autoscaling/HorizontalPodAutoscaler",
        "apiextensions.k8s.io/CustomResourceDefinition",
        "monitoring.coreos.com/ServiceMonitor",
        "monitoring.coreos.com/PodMonitor",
    }
)
"""Kinds that stand beside workloads in many files and make no pods."""
_LIKE: Final[Mapping[str, tuple[str, str]]] = {
    "v1/ReplicationController": ("apps/v1", "ReplicaSet"),
    "argoproj.io/Rollout": ("apps/v1", "Deployment"),
    "run.ai/RunaiJob": ("batch/v1", "Job"),
}
"""Kinds with the pod template and the counts of one that Kubernetes has."""
_INSTEAD: Final = {
    "argoproj.io/Workflow": "which of its steps run at one time is known when it runs; simulate a step as a Job",
    "nvidia.com/DynamoGraphDeployment": (
        "its operator makes a PodCliqueSet; simulate that ('kubectl get podcliquesets -o yaml' prints it)"
    ),
    "serving.kserve.io/InferenceService": (
        "its container comes from a ServingRuntime; simulate the Deployment that KServe makes"
    ),
    "tekton.dev/TaskRun": "its pod is made by Tekton; simulate a Pod with the requests of its steps",
    "tekton.dev/PipelineRun": "which of its tasks run at one time is known when it runs; simulate a task as a Pod",
}
_RUN_AI: Final = "run.ai/"
_MIN_SCALE: Final = ("autoscaling.knative.dev/min-scale", "autoscaling.knative.dev/minScale")
_DAEMON_TOLERATIONS: Final = (
    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
)


def made_of(manifest: JSON, nodes: Iterable[Node]) -> list[JSON]:
    """Return what is simulated in the place of an object, mostly the object; raises :class:`RuleRefused`."""
    kind = group_kind(str(manifest.get("apiVersion")), str(manifest.get("kind")))
    spec: JSON = manifest.get("spec") or {}
    if kind in WITHOUT_PODS:
        return []
    if kind in _LIKE:
        return [_as(manifest, *_LIKE[kind], spec)]
    if kind in _INSTEAD or (kind.startswith(_RUN_AI) and "template" not in spec):
        raise RuleRefused(_INSTEAD.get(kind, "run:ai makes another workload of it; simulate that one"))
    match kind:
        case "apps/DaemonSet":
            return _daemons(manifest, spec, nodes)
        case "serving.knative.dev/Service":
            return [_knative(manifest, spec)]
        case "sparkoperator.k8s.io/SparkApplication":
            return _spark(manifest, spec)
        case "batch.volcano.sh/Job":
            return _volcano(manifest, spec)
        case "workload.codeflare.dev/AppWrapper":
            inner = [each.get("template") for each in spec.get("components") or ()]
            return [made for each in inner if isinstance(each, dict) for made in made_of(each, nodes)]
        case _:
            return [manifest]


def _as(manifest: JSON, version: str, kind: str, spec: JSON) -> JSON:
    if "template" not in spec:
        raise RuleRefused("spec.template: not there, expected a pod template")
    return {"apiVersion": version, "kind": kind, "metadata": manifest.get("metadata") or {}, "spec": spec}


def _daemons(manifest: JSON, spec: JSON, nodes: Iterable[Node]) -> list[JSON]:
    """Return a pod for each node that the DaemonSet's controller would make one for, bound to it by its affinity."""
    template: JSON = spec.get("template") or {}
    pod_spec: JSON = template.get("spec") or {}
    tolerations = [*(pod_spec.get("tolerations") or ()), *_DAEMON_TOLERATIONS]
    accepted = convert(tuple[Toleration, ...], tolerations)
    selector = (pod_spec.get("nodeSelector") or {}).items()
    pods = []
    for node in nodes:
        name = node.metadata.name
        if not selector <= node.metadata.labels.items() or not tolerates(accepted, node.spec.taints):
            continue
        field = {"key": "metadata.name", "operator": "In", "values": [name]}
        required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        own = {**pod_spec, "tolerations": tolerations, "affinity": {**(pod_spec.get("affinity") or {}), **affinity}}
        pods.append(_pod(manifest, name, template.get("metadata") or {}, own))
    return pods


def _knative(manifest: JSON, spec: JSON) -> JSON:
    """Return a Deployment of as many pods as a Service keeps at least; they are placed together if it is several."""
    template: JSON = spec.get("template") or {}
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    least = next((str(annotations[name]) for name in _MIN_SCALE if name in annotations), "1")
    count = max(int(least) if least.isdecimal() else 1, 1)
    metadata: JSON = dict(manifest.get("metadata") or {})
    metadata["annotations"] = {**(metadata.get("annotations") or {}), "kai.scheduler/min-member": str(count)}
    deployment = _as(manifest, "apps/v1", "Deployment", {"replicas": count, "template": template})
    return {**deployment, "metadata": metadata} if count > 1 else deployment


def _spark(manifest: JSON, spec: JSON) -> list[JSON]:
    """Return the driver's pod, and the application with a pod template for its executors."""
    driver, executor = (_spark_template(spec.get(role) or {}, role) for role in ("driver", "executor"))
    executors = {**(spec.get("executor") or {}), "template": executor}
    application = {**manifest, "spec": {**spec, "executor": executors}}
    return [_pod(manifest, "driver", driver["metadata"], driver["spec"]), application]


def _spark_template(role: JSON, name: str) -> JSON:
    """Return a role as a pod template: what its own template says, with the role's cores, memory and GPUs."""
    template: JSON = role.get("template") or {}
    requests: JSON = {"cpu": str(role.get("coreRequest") or role.get("cores") or 1)}
    if memory := str(role.get("memory") or "1g"):
        requests["memory"] = memory.upper().removesuffix("B").replace("G", "Gi").replace("M", "Mi").replace("K", "Ki")
    gpu: JSON = role.get("gpu") or {}
    if gpu:
        requests[str(gpu.get("name", "nvidia.com/gpu"))] = str(gpu.get("quantity", 1))
    containers = (template.get("spec") or {}).get("containers") or []
    own = {**(containers[0] if containers else {"name": f"spark-{name}"}), "resources": {"requests": requests}}
    given = {key: role[key] for key in ("nodeSelector", "tolerations", "affinity") if key in role}
    labels = {**((template.get("metadata") or {}).get("labels") or {}), **(role.get("labels") or {})}
    pod_spec = {**(template.get("spec") or {}), **given, "containers": [own, *containers[1:]]}
    if scheduler := role.get("schedulerName"):
        pod_spec["schedulerName"] = scheduler
    return {"metadata": {"labels": {**labels, "spark-role": name}}, "spec": pod_spec}


def _volcano(manifest: JSON, spec: JSON) -> list[JSON]:
    """Return the PodGroup and the pods that Volcano makes of its Job."""
    metadata: JSON = manifest.get("metadata") or {}
    name, tasks = metadata.get("name", ""), spec.get("tasks") or []
    total = sum(int(task.get("replicas", 1)) for task in tasks)
    group: JSON = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, **({"namespace": metadata["namespace"]} if "namespace" in metadata else {})},
        "spec": {"minMember": spec.get("minAvailable") or total, "queue": spec.get("queue") or "default"},
    }
    if spec.get("priorityClassName"):
        group["spec"]["priorityClassName"] = spec["priorityClassName"]
    pods = []
    for task in tasks:
        template: JSON = task.get("template") or {}
        own: JSON = template.get("metadata") or {}
        annotations = {**(own.get("annotations") or {}), "scheduling.k8s.io/group-name": name}
        pod_spec = {"schedulerName": spec.get("schedulerName") or "volcano", **(template.get("spec") or {})}
        pods += [
            _pod(manifest, f"{task.get('name', 'task')}-{number}", {**own, "annotations": annotations}, pod_spec)
            for number in range(int(task.get("replicas", 1)))
        ]
    return [group, *pods]


def _pod(manifest: JSON, suffix: str, metadata: Mapping[str, Any], spec: JSON) -> JSON:
    """Return a pod of an object, owned by it."""
    of: JSON = manifest.get("metadata") or {}
    owner = {
        "apiVersion": manifest["apiVersion"],
        "kind": manifest["kind"],
        "name": of.get("name", ""),
        "uid": of.get("uid") or f"simulated-{of.get('name', '')}",
        "controller": True,
    }
    own = {**metadata, "name": f"{of.get('name', '')}-{suffix}", "ownerReferences": [owner]}
    if "namespace" in of:
        own["namespace"] = of["namespace"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": own, "spec": spec}
