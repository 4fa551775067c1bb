"""The registration of the operator's webhooks with the API server.

The operator applies the configurations, so that they carry the authority that signed the present certificate.
"""

import base64
from typing import Final

import structlog

from spinney.api.admission import MUTATING_WEBHOOK_CONFIGURATION, VALIDATING_WEBHOOK_CONFIGURATION
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.kube.client import Client
from spinney.kube.errors import Forbidden, NotFound
from spinney.kube.webhooks.registration import owned_by_role
from spinney.kube.webhooks.server import ServicePlace
from spinney.operator.admission.rules import AUTHORIZE, DEFAULT_SET, VALIDATE_SET, VALIDATE_TOPOLOGY

log = structlog.get_logger()

FIELD_MANAGER: Final = "spinney-operator"
DEFAULTING: Final = "podcliqueset-defaulting-webhook"
VALIDATING: Final = "podcliqueset-validating-webhook"
TOPOLOGIES: Final = "clustertopology-validating-webhook"
AUTHORIZER: Final = "authorizer-webhook"
WEBHOOK_CONFIGURATIONS: Final = {
    DEFAULTING: MUTATING_WEBHOOK_CONFIGURATION,
    VALIDATING: VALIDATING_WEBHOOK_CONFIGURATION,
    TOPOLOGIES: VALIDATING_WEBHOOK_CONFIGURATION,
    AUTHORIZER: VALIDATING_WEBHOOK_CONFIGURATION,
}
"""What the operator registers, by name."""
OPERATOR_ROLE: Final = "grove-operator"
TIMEOUT_SECONDS: Final = 10


def configurations(place: ServicePlace, authority: bytes, *, authorizer: bool) -> list[tuple[Resource, JSON]]:
    """Return what tells the API server which requests to have reviewed where."""
    bundle = base64.b64encode(authority).decode()

    def webhook(name: str, path: str, rules: list[JSON], **more: object) -> JSON:
        service = {"name": place.name, "namespace": place.namespace, "path": path, "port": place.port}
        return {
            "name": name,
            "clientConfig": {"service": service, "caBundle": bundle},
            "rules": rules,
            "admissionReviewVersions": ["v1"],
            "failurePolicy": "Fail",
            "matchPolicy": "Exact",
            "sideEffects": "None",
            "timeoutSeconds": TIMEOUT_SECONDS,
            **more,
        }

    sets = [_rule("grove.io", "v1alpha1", ["podcliquesets"], ["CREATE", "UPDATE"])]
    scales = [_rule("grove.io", "v1alpha1", ["podcliquesets/scale"], ["UPDATE"])]
    bindings = [_rule("grove.io", "v1alpha1", ["clustertopologybindings"], ["CREATE", "UPDATE"])]
    mutating, validating = MUTATING_WEBHOOK_CONFIGURATION, VALIDATING_WEBHOOK_CONFIGURATION
    found = [
        (mutating, DEFAULTING, webhook("pcs.defaulting.webhooks.grove.io", DEFAULT_SET, sets)),
        (
            validating,
            VALIDATING,
            webhook("pcs.validating.webhooks.grove.io", VALIDATE_SET, sets + scales),
        ),
        (
            validating,
            TOPOLOGIES,
            webhook("clustertopology.validating.webhooks.grove.io", VALIDATE_TOPOLOGY, bindings),
        ),
    ]
    if authorizer:
        selector = {"matchLabels": {"app.kubernetes.io/managed-by": "grove-operator"}}
        hook = webhook("authorizer.webhooks.grove.io", AUTHORIZE, _protected(), objectSelector=selector)
        found.append((validating, AUTHORIZER, hook))
    return [
        (
            resource,
            {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "metadata": {"name": name},
                "webhooks": [hook],
            },
        )
        for resource, name, hook in found
    ]


async def register(client: Client, place: ServicePlace, authority: bytes, *, authorizer: bool) -> None:
    """Apply the configurations; an authorizer that is switched off is not left behind, refusing what nobody judges.

    They belong to the operator's ClusterRole, so that they are removed when the operator is uninstalled.
    """
    owners = await owned_by_role(client, OPERATOR_ROLE)
    for resource, manifest in configurations(place, authority, authorizer=authorizer):
        manifest["metadata"]["ownerReferences"] = owners
        await client.apply(resource, manifest, field_manager=FIELD_MANAGER)
    if not authorizer:
        await _unregister_authorizer(client)


async def _unregister_authorizer(client: Client) -> None:
    try:
        await client.delete(VALIDATING_WEBHOOK_CONFIGURATION, AUTHORIZER)
    except NotFound:
        return
    except Forbidden as error:  # rights of an older installation; where it was never on, nothing is left behind
        log.warning("whether an authorizer is still registered cannot be found out", error=str(error))


def _rule(group: str, version: str, resources: list[str], operations: list[str]) -> JSON:
    return {"apiGroups": [group], "apiVersions": [version], "resources": resources, "operations": operations}


def _protected() -> list[JSON]:
    return [
        _rule("", "v1", ["secrets", "serviceaccounts", "services"], ["UPDATE", "DELETE"]),
        _rule("", "v1", ["pods"], ["UPDATE"]),
        _rule("rbac.authorization.k8s.io", "v1", ["roles", "rolebindings"], ["UPDATE", "DELETE"]),
        _rule("autoscaling", "v1", ["horizontalpodautoscalers"], ["UPDATE", "DELETE"]),
        _rule("autoscaling", "v2", ["horizontalpodautoscalers"], ["UPDATE", "DELETE"]),
        _rule("grove.io", "v1alpha1", ["podcliques", "podcliquescalinggroups"], ["CREATE", "UPDATE", "DELETE"]),
        _rule("scheduler.grove.io", "v1alpha1", ["podgangs"], ["CREATE", "UPDATE", "DELETE"]),
    ]
