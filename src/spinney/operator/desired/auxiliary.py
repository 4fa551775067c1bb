"""What a PodCliqueSet needs beside its pods: services, the rights of init containers, autoscalers, compute domains.

Each is a manifest that is ours alone. It is written when the digest of what is wanted differs from the one recorded on
the object, and deleted when nobody wants it any more. The token, which only init containers carry, exists where some
clique starts after another.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from spinney.api import labels as marks
from spinney.api.autoscaling import HORIZONTAL_POD_AUTOSCALER
from spinney.api.compute_domains import COMPUTE_DOMAIN
from spinney.api.core import SECRET, SERVICE, SERVICE_ACCOUNT
from spinney.api.grove import (
    EXPLICIT,
    IN_ORDER,
    POD_CLIQUE,
    POD_CLIQUE_SCALING_GROUP,
    POD_CLIQUE_SET,
    AutoScalingConfig,
)
from spinney.api.meta import owner_reference
from spinney.api.rbac import ROLE, ROLE_BINDING
from spinney.api.resource import Resource
from spinney.api.struct import JSON, to_json
from spinney.operator.desired import hashes, labels, mnnvl, names
from spinney.operator.desired.layout import Layout

DIGEST: Final = "grove.io/applied-digest"
_IDENTITY: Final = frozenset({"apiVersion", "kind", "metadata"})


@dataclass(frozen=True)
class DesiredObject:
    """An object that is to exist as described."""

    resource: Resource
    manifest: JSON

    @property
    def name(self) -> str:
        """Return the object's name."""
        name: str = self.manifest["metadata"]["name"]
        return name

    @property
    def body(self) -> JSON:
        """Return what the object says beyond who it is, part by part; each part is ours alone."""
        return {part: value for part, value in self.manifest.items() if part not in _IDENTITY}

    @property
    def digest(self) -> str:
        """Return what is recorded on the object once it has been applied."""
        recorded: str = self.manifest["metadata"]["annotations"][DIGEST]
        return recorded


def wanted(layout: Layout, *, mnnvl_enabled: bool) -> list[DesiredObject]:
    """Return everything a set needs beside its pods, in the order in which it is to exist."""
    found = [*_rights(layout), *_services(layout), *_autoscalers(layout)]
    if mnnvl_enabled:
        found += _compute_domains(layout)
    return found


NO_STARTUP_ORDER: Final = (
    "start-up order is switched off in this installation (initContainer.enabled); use CliqueStartupTypeAnyOrder, or "
    "have it switched on"
)


def has_startup_order(layout: Layout) -> bool:
    """Tell whether any pod of a set waits for others, so that its init container must be able to watch them."""
    template = layout.pcs.spec.template
    if template.clique_startup_type == IN_ORDER:
        return len(template.cliques) > 1
    return template.clique_startup_type == EXPLICIT and any(clique.spec.starts_after for clique in template.cliques)


def _services(layout: Layout) -> Iterable[DesiredObject]:
    config = layout.pcs.spec.template.headless_service_config
    publish = config is None or config.publish_not_ready_addresses is not False
    for i in range(layout.replicas):
        name = names.headless_service(layout.name, i)
        selector = labels.replica_selector(layout.name, i)
        spec: JSON = {"clusterIP": "None", "selector": selector, "publishNotReadyAddresses": publish}
        extra = {marks.REPLICA_INDEX: str(i)}
        yield _wanted(layout, SERVICE, name, labels.HEADLESS_SERVICE, {"spec": spec}, extra=extra)


def _rights(layout: Layout) -> Iterable[DesiredObject]:
    account, role = names.service_account(layout.name), names.role(layout.name)
    namespace = layout.pcs.metadata.namespace
    rules = [{"apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": ["get", "list", "watch"]}]
    binding = {
        "roleRef": {"apiGroup": ROLE.group, "kind": ROLE.kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }
    yield _wanted(layout, SERVICE_ACCOUNT, account, labels.SERVICE_ACCOUNT, {"automountServiceAccountToken": True})
    yield _wanted(layout, ROLE, role, labels.ROLE, {"rules": rules})
    yield _wanted(layout, ROLE_BINDING, role, labels.ROLE_BINDING, binding)
    if not has_startup_order(layout):
        return
    yield _wanted(
        layout,
        SECRET,
        names.token_secret(layout.name),
        labels.TOKEN_SECRET,
        {"type": "kubernetes.io/service-account-token"},
        annotations={"kubernetes.io/service-account.name": account},
    )


def _autoscalers(layout: Layout) -> Iterable[DesiredObject]:
    for i in range(layout.replicas):
        for place in layout.standalone(i):
            config = place.template.spec.auto_scaling_config
            if config is not None:
                yield _autoscaler(layout, place.name, POD_CLIQUE, config, i)
        for group in layout.group_configs.values():
            if group.scale_config is not None:
                name = names.scaling_group(layout.name, i, group.name)
                yield _autoscaler(layout, name, POD_CLIQUE_SCALING_GROUP, group.scale_config, i)


def _autoscaler(layout: Layout, name: str, target: Resource, config: AutoScalingConfig, i: int) -> DesiredObject:
    spec: JSON = {
        "scaleTargetRef": {"apiVersion": target.api_version, "kind": target.kind, "name": name},
        "minReplicas": config.min_replicas,
        "maxReplicas": config.max_replicas,
        "metrics": list(config.metrics),
    }
    spec = {key: value for key, value in spec.items() if value not in (None, [])}
    return _wanted(
        layout, HORIZONTAL_POD_AUTOSCALER, name, labels.AUTOSCALER, {"spec": spec}, extra={marks.REPLICA_INDEX: str(i)}
    )


def _compute_domains(layout: Layout) -> Iterable[DesiredObject]:
    for i in range(layout.replicas):
        for group in mnnvl.groups_of(layout):
            name = names.compute_domain(layout.name, i, group)
            spec = {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": name}}}
            yield _wanted(
                layout,
                COMPUTE_DOMAIN,
                name,
                labels.COMPUTE_DOMAIN,
                {"spec": spec},
                extra={marks.REPLICA_INDEX: str(i), marks.MNNVL_GROUP: group},
            )


def _wanted(
    layout: Layout,
    resource: Resource,
    name: str,
    component: str,
    body: JSON,
    *,
    extra: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
) -> DesiredObject:
    metadata: JSON = {
        "name": name,
        "namespace": layout.pcs.metadata.namespace,
        "labels": labels.component(layout.name, component, name) | (extra or {}),
        "annotations": annotations or {},
        "ownerReferences": [to_json(owner_reference(POD_CLIQUE_SET, layout.pcs.metadata))],
    }
    manifest: JSON = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **body}
    metadata["annotations"] = metadata["annotations"] | {DIGEST: hashes.digest(manifest)}
    return DesiredObject(resource, manifest)
