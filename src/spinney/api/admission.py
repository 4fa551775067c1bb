"""Admission webhooks: what the API server asks and expects back (``admission.k8s.io/v1``), and their registration."""

import base64
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from spinney.api.resource import Resource
from spinney.api.struct import JSON, Struct, constant, decode, encode

MUTATING_WEBHOOK_CONFIGURATION: Final = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations",
    namespaced=False,
)
VALIDATING_WEBHOOK_CONFIGURATION: Final = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    namespaced=False,
)


class GroupVersionKind(Struct, frozen=True, kw_only=True):
    """The type of an object."""

    group: str = ""
    version: str
    kind: str


class GroupVersionResource(Struct, frozen=True, kw_only=True):
    """The resource a request addresses."""

    group: str = ""
    version: str
    resource: str


class UserInfo(Struct, frozen=True, kw_only=True):
    """Who made a request."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}


class AdmissionRequest(Struct, frozen=True, kw_only=True):
    """A write that is about to happen; objects are as they came."""

    uid: str
    kind: GroupVersionKind
    resource: GroupVersionResource
    sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    operation: str
    user_info: UserInfo = UserInfo()
    object: JSON | None = None
    old_object: JSON | None = None
    dry_run: bool | None = None
    options: JSON | None = None


class AdmissionStatus(Struct, frozen=True, kw_only=True):
    """Why a write was refused."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: JSON | None = None


class AdmissionResponse(Struct, frozen=True, kw_only=True):
    """The answer; ``patch`` is a base64 JSON patch when ``patch_type`` is JSONPatch."""

    uid: str
    allowed: bool
    status: AdmissionStatus | None = None
    patch_type: str | None = None
    patch: str | None = None
    warnings: tuple[str, ...] = ()
    audit_annotations: Mapping[str, str] = {}


class AdmissionReview(Struct, frozen=True, kw_only=True):
    """The envelope of request and response."""

    api_version: str = constant("admission.k8s.io/v1")
    kind: str = constant("AdmissionReview")
    request: AdmissionRequest | None = None
    response: AdmissionResponse | None = None


def reviewed(body: bytes) -> AdmissionRequest:
    """Return the request that a review is about; a body that is no review raises :class:`msgspec.DecodeError`."""
    request = decode(AdmissionReview, body).request
    if request is None:
        raise msgspec.ValidationError("an AdmissionReview needs a request")
    return request


def allowed(request: AdmissionRequest, patch: Sequence[JSON] = (), warnings: tuple[str, ...] = ()) -> AdmissionResponse:
    """Return the answer that lets a request pass, changed by a JSON patch."""
    written = base64.b64encode(encode(list(patch))).decode() if patch else None
    kind = "JSONPatch" if patch else None
    return AdmissionResponse(uid=request.uid, allowed=True, warnings=warnings, patch_type=kind, patch=written)
