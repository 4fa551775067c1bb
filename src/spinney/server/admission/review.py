"""What is said to a webhook, and what its answer means (``admission.k8s.io/v1`` AdmissionReview)."""

import base64
import binascii
from dataclasses import dataclass
from typing import Any

import msgspec

from spinney.api.struct import JSON
from spinney.server.admission.attributes import Attributes
from spinney.server.exchange.status import StatusError
from spinney.server.kinds import Kind


class BadAnswer(ValueError):
    """A webhook's answer that cannot be used."""


@dataclass(frozen=True, slots=True)
class WebhookVerdict:
    """A webhook's answer."""

    denial: StatusError | None
    patch: list[JSON]
    warnings: list[str]


def review(attributes: Attributes, seen_as: Kind, uid: str) -> bytes:
    """Return the request for a webhook that sees the object as ``seen_as``, one of the versions of its kind."""
    request = {
        "uid": uid,
        **request_of(attributes, seen_as),
        "object": shown_as(seen_as, attributes.obj),
        "oldObject": shown_as(seen_as, attributes.old),
    }
    return msgspec.json.encode({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request})


def request_of(attributes: Attributes, seen_as: Kind) -> JSON:
    """Return what is said about a write besides the objects."""
    asked = attributes.kind.resource
    shown = seen_as.resource
    request: JSON = {
        "kind": {"group": shown.group, "version": shown.version, "kind": shown.kind},
        "resource": {"group": shown.group, "version": shown.version, "resource": shown.plural},
        "requestKind": {"group": asked.group, "version": asked.version, "kind": asked.kind},
        "requestResource": {"group": asked.group, "version": asked.version, "resource": asked.plural},
        "name": attributes.name,
        "operation": attributes.operation,
        "userInfo": attributes.user.to_json(),
        "dryRun": attributes.dry_run,
        "options": attributes.options,
    }
    if attributes.namespace:
        request["namespace"] = attributes.namespace
    if attributes.subresource:
        request["subResource"] = request["requestSubResource"] = attributes.subresource
    return request


def shown_as(kind: Kind, obj: JSON | None) -> JSON | None:
    """Return a stored object in a version of its kind; the object stays as it is."""
    return None if obj is None else kind.served({**obj})


def read_answer(name: str, body: bytes, uid: str) -> WebhookVerdict:
    """Return what a webhook answered; raise :class:`BadAnswer` if it makes no sense."""
    try:
        answer: Any = msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise BadAnswer(f"the answer is not JSON: {error}") from error
    response = answer.get("response") if isinstance(answer, dict) else None
    if not isinstance(response, dict):
        raise BadAnswer("the answer has no response")
    if response.get("uid") != uid:
        raise BadAnswer(f"the answer is to another request: uid {response.get('uid')!r} instead of {uid!r}")
    warnings = [str(each) for each in response.get("warnings") or ()]
    if not response.get("allowed"):
        return WebhookVerdict(_denial(name, response.get("status") or {}), [], warnings)
    return WebhookVerdict(None, _patch(response), warnings)


def _denial(name: str, status: JSON) -> StatusError:
    why = status.get("message") or status.get("reason")
    text = f'admission webhook "{name}" denied the request' + (f": {why}" if why else " without explanation")
    code = status.get("code") or 0
    return StatusError(max(int(code), 400), status.get("reason") or "", text, details=status.get("details"))


def _patch(response: JSON) -> list[JSON]:
    encoded = response.get("patch")
    if not encoded:
        return []
    if response.get("patchType") != "JSONPatch":
        raise BadAnswer(f"patchType is {response.get('patchType')!r}, expected JSONPatch")
    try:
        patch = msgspec.json.decode(base64.b64decode(encoded, validate=True))
    except (binascii.Error, msgspec.DecodeError, TypeError) as error:
        raise BadAnswer(f"the patch cannot be read: {error}") from error
    if not isinstance(patch, list):
        raise BadAnswer("the patch is not an array of operations")
    return patch
