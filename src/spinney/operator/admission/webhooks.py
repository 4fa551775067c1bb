"""The operator's webhooks: registered with the API server, and served for as long as the operator runs.

The operator applies the configurations, so that they carry the authority that signed the present certificate.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from spinney.api.admission import MUTATING_WEBHOOK_CONFIGURATION, VALIDATING_WEBHOOK_CONFIGURATION
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.kube.client import Client
from spinney.kube.webhooks.process import WebhookProcess
from spinney.kube.webhooks.registration import configuration, owned_by_role, unregister
from spinney.kube.webhooks.server import ServicePlace
from spinney.operator.admission.rules import AUTHORIZE, DEFAULT_SET, VALIDATE_SET, VALIDATE_TOPOLOGY, Admission
from spinney.operator.configuration import OperatorConfiguration

FIELD_MANAGER: Final = "spinney-operator"
SERVICE: Final = "grove-operator"
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


def webhook_process(
    admission: Admission,
    client: Client,
    written: OperatorConfiguration,
    *,
    namespace: str,
    leaving: Callable[[], bool] = lambda: False,
) -> WebhookProcess:
    """Return what serves the operator's webhooks, as configured."""
    place = ServicePlace(SERVICE, namespace)
    return WebhookProcess(
        admission,
        client,
        written.server.webhooks,
        place,
        setting="server.webhooks of the configuration",
        configurations=WEBHOOK_CONFIGURATIONS,
        register=partial(register, client, place, authorizer=written.authorizer.enabled),
        leaving=leaving,
    )


def configurations(place: ServicePlace, authority: bytes, *, authorizer: bool) -> list[tuple[Resource, JSON]]:
    """Return what tells the API server which requests to have reviewed where."""

    def asking(name: str, webhook: str, path: str, rules: list[JSON], **more: object) -> tuple[Resource, JSON]:
        resource = WEBHOOK_CONFIGURATIONS[name]
        return resource, configuration(
            resource,
            name,
            place,
            path,
            authority,
            name=webhook,
            rules=rules,
            failurePolicy="Fail",
            matchPolicy="Exact",
            timeoutSeconds=TIMEOUT_SECONDS,
            **more,
        )

    sets = [_rule("grove.io", "v1alpha1", ["podcliquesets"], ["CREATE", "UPDATE"])]
    scales = [_rule("grove.io", "v1alpha1", ["podcliquesets/scale"], ["UPDATE"])]
    bindings = [_rule("grove.io", "v1alpha1", ["clustertopologybindings"], ["CREATE", "UPDATE"])]
    found = [
        asking(DEFAULTING, "pcs.defaulting.webhooks.grove.io", DEFAULT_SET, sets),
        asking(VALIDATING, "pcs.validating.webhooks.grove.io", VALIDATE_SET, sets + scales),
        asking(TOPOLOGIES, "clustertopology.validating.webhooks.grove.io", VALIDATE_TOPOLOGY, bindings),
    ]
    if authorizer:
        selector = {"matchLabels": {"app.kubernetes.io/managed-by": "grove-operator"}}
        hook = "authorizer.webhooks.grove.io"
        found.append(asking(AUTHORIZER, hook, AUTHORIZE, _protected(), objectSelector=selector))
    return found


async def register(client: Client, place: ServicePlace, authority: bytes, *, authorizer: bool) -> None:
    """Apply the configurations; an authorizer that is switched off is not left behind, refusing what nobody judges.

    They belong to the operator's ClusterRole, so that they are removed when the operator is uninstalled.
    """
    owners = await owned_by_role(client, OPERATOR_ROLE)
    for resource, manifest in configurations(place, authority, authorizer=authorizer):
        manifest["metadata"]["ownerReferences"] = owners
        await client.apply(resource, manifest, field_manager=FIELD_MANAGER)
    if not authorizer:
        await unregister(client, VALIDATING_WEBHOOK_CONFIGURATION, AUTHORIZER)


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
