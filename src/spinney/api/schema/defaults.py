"""Filling in what a user left out, as the API server and Grove's defaulting webhook do together.

First what the CRD says (absent fields get their schema default), then what needs other fields to be known. Defaulting
is idempotent and never changes a value that was given, with one exception Grove makes too: a clique's ``replicas: 0``
means one. A clique's ``minAvailable`` follows its replicas *after* that, so leaving both out is valid.
"""

from typing import Final

from msgspec.structs import replace

from spinney.api.grove import (
    ANY_ORDER,
    ROLLING_RECREATE,
    AutoScalingConfig,
    HeadlessServiceConfig,
    PodCliqueScalingGroupConfig,
    PodCliqueSet,
    PodCliqueSetSpec,
    PodCliqueSetTemplateSpec,
    PodCliqueSpec,
    UpdateStrategy,
)
from spinney.api.struct import JSON

TERMINATION_DELAY: Final = "4h0m0s"
RESTART_POLICY: Final = "Always"
TERMINATION_GRACE_SECONDS: Final = 30
NAMESPACE: Final = "default"


def default_pod_clique_set(pcs: PodCliqueSet) -> PodCliqueSet:
    """Return ``pcs`` with every default filled in."""
    return replace(
        pcs,
        metadata=replace(pcs.metadata, namespace=pcs.metadata.namespace or NAMESPACE),
        spec=_spec(pcs.spec),
    )


def _spec(spec: PodCliqueSetSpec) -> PodCliqueSetSpec:
    strategy = spec.update_strategy
    if strategy is not None and strategy.type is None:
        strategy = UpdateStrategy(type=ROLLING_RECREATE)
    return replace(
        spec,
        replicas=0 if spec.replicas is None else spec.replicas,
        update_strategy=strategy,
        template=_template(spec.template),
    )


def _template(template: PodCliqueSetTemplateSpec) -> PodCliqueSetTemplateSpec:
    service = template.headless_service_config
    if service is None or service.publish_not_ready_addresses is None:
        service = HeadlessServiceConfig(publish_not_ready_addresses=True)
    return replace(
        template,
        clique_startup_type=template.clique_startup_type or ANY_ORDER,
        headless_service_config=service,
        termination_delay=TERMINATION_DELAY if template.termination_delay is None else template.termination_delay,
        cliques=tuple(replace(each, spec=default_pod_clique_spec(each.spec)) for each in template.cliques),
        pod_clique_scaling_groups=tuple(_scaling_group(group) for group in template.pod_clique_scaling_groups),
    )


def default_pod_clique_spec(spec: PodCliqueSpec) -> PodCliqueSpec:
    """Return the spec of one clique with every default filled in."""
    replicas = spec.replicas or 1
    return replace(
        spec,
        replicas=replicas,
        min_available=spec.minimum,
        auto_scaling_config=_auto_scaling(spec.auto_scaling_config, replicas),
        pod_spec=_pod_spec(spec.pod_spec),
    )


def _scaling_group(group: PodCliqueScalingGroupConfig) -> PodCliqueScalingGroupConfig:
    return replace(
        group,
        replicas=group.copies,
        min_available=group.minimum,
        scale_config=_auto_scaling(group.scale_config, group.copies),
    )


def _auto_scaling(config: AutoScalingConfig | None, replicas: int) -> AutoScalingConfig | None:
    if config is None or config.min_replicas is not None:
        return config
    return replace(config, min_replicas=replicas)


def _pod_spec(pod_spec: JSON) -> JSON:
    filled = dict(pod_spec)
    filled["restartPolicy"] = pod_spec.get("restartPolicy") or RESTART_POLICY
    if filled.get("terminationGracePeriodSeconds") is None:
        filled["terminationGracePeriodSeconds"] = TERMINATION_GRACE_SECONDS
    return filled
