"""Making tokens (``serviceaccounts/token``), and saying whose a token is (TokenReview, SelfSubjectReview)."""

from datetime import datetime, timedelta

from spinney.api.core import POD, SERVICE_ACCOUNT
from spinney.api.field_error import FieldError, invalid
from spinney.api.keys import Key
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.api.time import timestamp
from spinney.runtime import Runtime
from spinney.server.authentication.authenticator import Authenticator
from spinney.server.authentication.tokens import ISSUER, About, Bound, InvalidToken, TokenIssuer
from spinney.server.exchange.message import User
from spinney.server.exchange.status import bad_request, conflict, invalid_object, not_found
from spinney.server.store import Record, Store

_TOKEN_REQUEST = Resource("authentication.k8s.io", "v1", "TokenRequest", "tokenrequests")
_SECRET = Resource("", "v1", "Secret", "secrets")
_NODE = Resource("", "v1", "Node", "nodes", namespaced=False)
_BINDABLE = {("v1", "Pod"): POD, ("v1", "Secret"): _SECRET, ("v1", "Node"): _NODE}
_LIFETIME = 3600
_SHORTEST, _LONGEST = 10 * 60, 1 << 32


def request_token(runtime: Runtime, store: Store, issuer: TokenIssuer, account: Key, body: JSON) -> JSON:
    """Return a TokenRequest with the token it asks for."""
    found = _object(store, SERVICE_ACCOUNT, account)
    spec = body.get("spec") or {}
    seconds = spec.get("expirationSeconds", _LIFETIME)
    if causes := _causes(seconds):
        raise invalid_object(_TOKEN_REQUEST, "", causes)
    audiences = tuple(spec.get("audiences") or (ISSUER,))
    about = _about(store, account, Bound(found.key.name, found.uid), spec.get("boundObjectRef"))
    now = runtime.clock.now()
    lifetime = timedelta(seconds=seconds)
    token = issuer.issue(about, audiences=audiences, identity=runtime.uid(), now=now, lifetime=lifetime)
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {
            "name": account.name,
            "namespace": account.namespace,
            "uid": found.uid,
            "creationTimestamp": timestamp(now),
        },
        "spec": {
            "audiences": list(audiences),
            "expirationSeconds": seconds,
            "boundObjectRef": spec.get("boundObjectRef"),
        },
        "status": {"token": token, "expirationTimestamp": timestamp(now + lifetime)},
    }


def review_token(authenticator: Authenticator, body: JSON) -> JSON:
    """Return the status of a TokenReview."""
    spec = body.get("spec") or {}
    token = spec.get("token")
    if not token:
        raise bad_request("token is required for TokenReview in authentication")
    try:
        found = authenticator.authenticate(token, tuple(spec.get("audiences") or (ISSUER,)))
    except InvalidToken:
        return {"user": {}, "error": "invalid bearer token"}
    return {"authenticated": True, "user": found.user.to_json(), "audiences": list(found.audiences)}


def review_self(user: User, now: datetime) -> JSON:
    """Return the answer to a SelfSubjectReview."""
    return {
        "kind": "SelfSubjectReview",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"creationTimestamp": timestamp(now)},
        "status": {"userInfo": user.to_json()},
    }


def _causes(seconds: int) -> list[FieldError]:
    field = "spec.expirationSeconds"
    if seconds < _SHORTEST:
        return [invalid(field, seconds, "may not specify a duration less than 10 minutes")]
    if seconds > _LONGEST:
        return [invalid(field, seconds, "may not specify a duration larger than 2^32 seconds")]
    return []


def _about(store: Store, account: Key, serviceaccount: Bound, reference: JSON | None) -> About:
    if not reference:
        return About(account.namespace, serviceaccount)
    resource = _BINDABLE.get((reference.get("apiVersion", ""), reference.get("kind", "")))
    if resource is None:
        raise bad_request(f"cannot bind token for serviceaccount {account.name!r} to object {reference}")
    key = Key(account.namespace if resource.namespaced else "", reference.get("name", ""))
    found = _object(store, resource, key)
    if reference.get("uid") and reference["uid"] != found.uid:
        why = f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record."
        raise conflict(resource, key.name, f"{why} The object might have been deleted and then recreated")
    bound = Bound(key.name, found.uid)
    if resource is _SECRET:
        return About(account.namespace, serviceaccount, secret=bound)
    if resource is _NODE:
        return About(account.namespace, serviceaccount, node=bound)
    spec = found.decode().get("spec") or {}
    if (spec.get("serviceAccountName") or "default") != account.name:
        pod = f"pod {key.name!r} with service account {spec.get('serviceAccountName')!r}"
        raise bad_request(f"cannot bind token for serviceaccount {account.name!r} to {pod}")
    node = store.get("nodes", Key("", spec.get("nodeName", "")))
    return About(
        account.namespace, serviceaccount, pod=bound, node=Bound(node.key.name, node.uid) if node is not None else None
    )


def _object(store: Store, resource: Resource, key: Key) -> Record:
    found = store.get(str(resource), key)
    if found is None:
        raise not_found(resource, key.name)
    return found
