"""Builders of workloads for tests: what matters to a test is an argument, everything else has a sensible value."""

from collections.abc import Mapping, Sequence

from spinney.api.grove import (
    ANY_ORDER,
    AutoScalingConfig,
    PodCliqueScalingGroupConfig,
    PodCliqueSet,
    PodCliqueSetSpec,
    PodCliqueSetTemplateSpec,
    PodCliqueSpec,
    PodCliqueTemplateSpec,
    ResourceClaimTemplateConfig,
    ResourceSharing,
    UpdateStrategy,
)
from spinney.api.meta import ObjectMeta
from spinney.api.struct import JSON
from spinney.api.topology_binding import ClusterTopologyBinding, ClusterTopologyBindingSpec, TopologyLevel
from spinney.api.topology_constraint import TopologyConstraint, TopologyPack


def a_pod_spec(
    *, scheduler: str = "", image: str = "registry.example/worker:1", cpu: str = "10m", gpus: int = 0, **more: object
) -> JSON:
    """Return a pod spec with one container."""
    requests: JSON = {"cpu": cpu}
    resources: JSON = {"requests": requests}
    if gpus:
        requests["nvidia.com/gpu"] = str(gpus)
        resources["limits"] = {"nvidia.com/gpu": str(gpus)}
    spec: JSON = {"containers": [{"name": "main", "image": image, "resources": resources}], **more}
    return spec | ({"schedulerName": scheduler} if scheduler else {})


def a_clique(
    name: str,
    replicas: int = 1,
    minimum: int | None = None,
    *,
    after: Sequence[str] = (),
    pod_spec: JSON | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    required: str | None = None,
    preferred: str | None = None,
    autoscaling: AutoScalingConfig | None = None,
    sharing: Sequence[ResourceSharing] = (),
) -> PodCliqueTemplateSpec:
    """Return a clique template; its minimum is all its replicas unless said otherwise."""
    return PodCliqueTemplateSpec(
        name=name,
        labels=labels or {},
        annotations=annotations or {},
        topology_constraint=a_constraint(required, preferred),
        resource_sharing=tuple(sharing),
        spec=PodCliqueSpec(
            role_name=f"{name}-role",
            pod_spec=pod_spec if pod_spec is not None else a_pod_spec(),
            replicas=replicas,
            min_available=replicas if minimum is None else minimum,
            starts_after=tuple(after),
            auto_scaling_config=autoscaling,
        ),
    )


def a_scaling_group(
    name: str,
    cliques: Sequence[str],
    replicas: int = 1,
    minimum: int = 1,
    *,
    required: str | None = None,
    preferred: str | None = None,
    autoscaling: AutoScalingConfig | None = None,
    annotations: Mapping[str, str] | None = None,
    sharing: Sequence[ResourceSharing] = (),
) -> PodCliqueScalingGroupConfig:
    """Return a scaling group of the cliques named."""
    return PodCliqueScalingGroupConfig(
        name=name,
        clique_names=tuple(cliques),
        replicas=replicas,
        min_available=minimum,
        topology_constraint=a_constraint(required, preferred),
        scale_config=autoscaling,
        annotations=annotations or {},
        resource_sharing=tuple(sharing),
    )


def a_pod_clique_set(
    name: str = "model",
    cliques: Sequence[PodCliqueTemplateSpec] | None = None,
    groups: Sequence[PodCliqueScalingGroupConfig] = (),
    *,
    replicas: int = 1,
    namespace: str = "test",
    startup: str = ANY_ORDER,
    priority_class: str | None = None,
    required: str | None = None,
    preferred: str | None = None,
    topology: str | None = None,
    termination_delay: str = "4h",
    strategy: str | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    claim_templates: Sequence[ResourceClaimTemplateConfig] = (),
    sharing: Sequence[ResourceSharing] = (),
    uid: str | None = None,
) -> PodCliqueSet:
    """Return a PodCliqueSet as admission leaves it: defaults filled in."""
    return PodCliqueSet(
        metadata=ObjectMeta(
            name=name, namespace=namespace, labels=labels or {}, annotations=annotations or {}, uid=uid
        ),
        spec=PodCliqueSetSpec(
            replicas=replicas,
            update_strategy=UpdateStrategy(type=strategy) if strategy is not None else None,
            template=PodCliqueSetTemplateSpec(
                cliques=tuple(cliques if cliques is not None else [a_clique("worker", 2)]),
                clique_startup_type=startup,
                priority_class_name=priority_class,
                topology_constraint=a_constraint(required, preferred, topology),
                termination_delay=termination_delay,
                pod_clique_scaling_groups=tuple(groups),
                resource_claim_templates=tuple(claim_templates),
                resource_sharing=tuple(sharing),
            ),
        ),
    )


def a_constraint(
    required: str | None = None, preferred: str | None = None, topology: str | None = None
) -> TopologyConstraint | None:
    """Return a topology constraint, or ``None`` when nothing is constrained."""
    if required is None and preferred is None:
        return None
    return TopologyConstraint(topology_name=topology, pack=TopologyPack(required=required, preferred=preferred))


def a_topology(name: str = "cluster", **levels: str) -> ClusterTopologyBinding:
    """Return a topology binding with levels from broad to narrow, by default zone, block, rack and host."""
    known = levels or {
        "zone": "topology.example/zone",
        "block": "topology.example/block",
        "rack": "topology.example/rack",
        "host": "kubernetes.io/hostname",
    }
    return ClusterTopologyBinding(
        metadata=ObjectMeta(name=name),
        spec=ClusterTopologyBindingSpec(
            levels=tuple(TopologyLevel(domain=domain, key=key) for domain, key in known.items())
        ),
    )
