"""The grouper's webhook: how an API server asks what a new pod is told, and how it learns to ask.

The answer is always that the pod may be created, with a patch or without one. An API server that gets none in time
creates the pod as well (``failurePolicy: Ignore``). It asks only about pods of schedulers that are served and that are
in no other group. It asks again when webhooks after this one have changed the pod.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from spinney.api import labels as marks
from spinney.api.admission import (
    MUTATING_WEBHOOK_CONFIGURATION,
    AdmissionRequest,
    AdmissionReview,
    allowed,
    reviewed,
)
from spinney.api.struct import JSON, encode
from spinney.grouping.configuration import GrouperConfiguration
from spinney.grouping.grouper import COMPONENT, Grouper
from spinney.kube.client import Client
from spinney.kube.webhooks.process import WebhookProcess
from spinney.kube.webhooks.registration import configuration, owned_by_role
from spinney.kube.webhooks.server import ServicePlace

PATH: Final = "/webhooks/pods"
SERVICE: Final = COMPONENT
WEBHOOK: Final = "spinney-grouper-pods"
"""The configuration; API servers ask in the order of names, and most of those that label pods come before it."""
TIMEOUT_SECONDS: Final = 2


class PodReviews:
    """Answers admission reviews of pods by what the grouper of this process knows."""

    paths: Final = (PATH,)

    def __init__(self, grouper: Grouper) -> None:
        self._grouper = grouper

    async def answer(self, path: str, body: bytes) -> bytes:
        """Return the review with its answer; a body that is no review raises :class:`msgspec.DecodeError`."""
        request = reviewed(body)
        return encode(AdmissionReview(response=allowed(request, await self._patch(request))))

    async def _patch(self, request: AdmissionRequest) -> list[JSON]:
        admission, pod = self._grouper.admission, request.object
        asked = (request.resource.group, request.resource.resource, request.sub_resource, request.operation)
        if admission is None or pod is None or asked != ("", "pods", "", "CREATE"):
            return []
        changes = await admission.changes(pod, request.namespace, dry_run=bool(request.dry_run))
        return [{"op": "add", "path": f"/metadata/{field}", "value": whole} for field, whole in changes.items()]


def asking(place: ServicePlace, authority: bytes, names: Iterable[str], written: GrouperConfiguration) -> JSON:
    """Return what tells the API server which pods to ask about, of these scheduler names, and whom to trust."""
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
    return configuration(
        MUTATING_WEBHOOK_CONFIGURATION,
        WEBHOOK,
        place,
        PATH,
        authority,
        name="pods.grouper.spinney.dev",
        rules=[{**pods, "scope": "Namespaced"}],
        matchConditions=_conditions(sorted(names)),
        namespaceSelector={"matchLabels": dict(written.namespace_labels)},
        objectSelector={"matchLabels": dict(written.pod_labels)},
        failurePolicy="Ignore",
        reinvocationPolicy="IfNeeded",
        matchPolicy="Equivalent",
        timeoutSeconds=TIMEOUT_SECONDS,
    )


def _conditions(names: Sequence[str]) -> list[JSON]:
    """Return, in CEL, for which pods the API server asks; names of schedulers are quoted as JSON, which CEL reads."""
    listed = encode(names).decode()
    labels = "object.metadata.labels"
    groves = f"has({labels}) && {_quoted(marks.POD_GANG)} in {labels} && !({_quoted(marks.GROUPED)} in {labels})"
    return [
        {"name": "served", "expression": f"has(object.spec.schedulerName) && object.spec.schedulerName in {listed}"},
        {"name": "not-groves", "expression": f"!({groves})"},
    ]


def _quoted(text: str) -> str:
    return encode(text).decode()


async def register(
    client: Client, grouper: Grouper, written: GrouperConfiguration, place: ServicePlace, authority: bytes
) -> None:
    """Apply the configuration; it belongs to the grouper's ClusterRole, so that it goes with it."""
    manifest = asking(place, authority, grouper.scheduler_names, written)
    manifest["metadata"]["ownerReferences"] = await owned_by_role(client, COMPONENT)
    await client.apply(MUTATING_WEBHOOK_CONFIGURATION, manifest, field_manager=COMPONENT)


def webhook_process(
    grouper: Grouper, client: Client, written: GrouperConfiguration, *, namespace: str
) -> WebhookProcess:
    """Return what answers the API server's reviews, as configured."""
    place = ServicePlace(SERVICE, namespace)
    return WebhookProcess(
        PodReviews(grouper),
        client,
        written.admission,
        place,
        setting="admission of the configuration",
        configurations={WEBHOOK: MUTATING_WEBHOOK_CONFIGURATION},
        register=partial(register, client, grouper, written, place),
        leaving=lambda: grouper.manager.stopping,
    )
