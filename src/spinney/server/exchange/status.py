"""Errors as Kubernetes says them: an exception that carries a ``Status`` object.

Every constructor makes one kind of answer (not found, conflict, invalid, ...), with the reason, code, details and
causes that clients act on.
"""

from collections.abc import Iterable

from spinney.api.field_error import FieldError
from spinney.api.resource import Resource
from spinney.api.struct import JSON


class StatusError(Exception):
    """A request that is answered with a ``Status`` object instead of what it asked for."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: JSON | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.headers = headers or {}

    def to_json(self) -> JSON:
        """Return the ``Status`` object."""
        status: JSON = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            **({"reason": self.reason} if self.reason else {}),
            "code": self.code,
        }
        if self.details is not None:
            status["details"] = self.details
        return status


def success(resource: Resource, name: str, uid: str) -> JSON:
    """Return the ``Status`` of something done, such as a deletion."""
    details = {**_details(resource, name), "uid": uid}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def created() -> JSON:
    """Return the ``Status`` that answers a binding or an eviction."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def _details(resource: Resource, name: str, *, causes: Iterable[FieldError] = ()) -> JSON:
    details: JSON = {"name": name, "kind": resource.plural}
    if resource.group:
        details["group"] = resource.group
    if listed := [cause.cause() for cause in causes]:
        details["causes"] = listed
    return details


def not_found(resource: Resource, name: str) -> StatusError:
    """404: there is no such object."""
    return StatusError(404, "NotFound", f'{resource} "{name}" not found', details=_details(resource, name))


def no_such_path() -> StatusError:
    """404: nothing is served at that path."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", details={})


def already_exists(resource: Resource, name: str) -> StatusError:
    """409: the name is taken."""
    return StatusError(409, "AlreadyExists", f'{resource} "{name}" already exists', details=_details(resource, name))


def conflict(resource: Resource, name: str, why: str) -> StatusError:
    """409: the object is not in the state the request assumed."""
    message = f'Operation cannot be fulfilled on {resource} "{name}": {why}'
    return StatusError(409, "Conflict", message, details=_details(resource, name))


def modified(resource: Resource, name: str) -> StatusError:
    """409: another client wrote first."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, name, why)


def another(resource: Resource, name: str, wanted: str, found: str) -> StatusError:
    """409: the object that has the name now is not the one that was meant."""
    return conflict(resource, name, f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}")


def invalid_object(resource: Resource, name: str, causes: Iterable[FieldError]) -> StatusError:
    """422: the object breaks the rules of its kind."""
    listed = list(causes)
    about = {"kind": resource.kind, "name": name, "group": resource.group}
    details: JSON = {"causes": [cause.cause() for cause in listed]}
    details |= {field: value for field, value in about.items() if value}
    texts = [str(cause) for cause in listed]
    text = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    return StatusError(422, "Invalid", f'{kind} "{name}" is invalid: {text}', details=details)


def invalid_options(kind: str, cause: FieldError) -> StatusError:
    """422: the parameters of a request (``ListOptions``, ``PatchOptions``, ...) break their rules."""
    return invalid_object(Resource("meta.k8s.io", "v1", kind, ""), "", [cause])


def forbidden(resource: Resource, name: str, why: str, *, causes: Iterable[FieldError] = ()) -> StatusError:
    """403: admission, or the state of the object, does not allow it."""
    return StatusError(
        403, "Forbidden", f'{resource} "{name}" is forbidden: {why}', details=_details(resource, name, causes=causes)
    )


def untyped_patch(resource: Resource, namespace: str, name: str, why: str) -> StatusError:
    """500, as Kubernetes has it: an applied configuration does not have the form of its kind."""
    about = f"({namespace}/{name}; {resource.group}/{resource.version}, Kind={resource.kind})"
    return StatusError(500, "", f"failed to create typed patch object {about}: {why}")


def undecodable_patch(message: str) -> StatusError:
    """422: a patch that leaves something which is no object of its kind."""
    cause = FieldError("FieldValueInvalid", "patch", f"Invalid value: {message}")
    return StatusError(422, "Invalid", message, details={"causes": [cause.cause()]})


def bad_request(message: str) -> StatusError:
    """400: the request itself makes no sense."""
    return StatusError(400, "BadRequest", message)


def expired(message: str) -> StatusError:
    """410: the revision asked for is compacted; list again."""
    return StatusError(410, "Expired", message)


def unauthorized() -> StatusError:
    """401: no valid credentials."""
    return StatusError(401, "Unauthorized", "Unauthorized")


def method_not_allowed() -> StatusError:
    """405: the resource exists, the verb does not."""
    return StatusError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


def not_acceptable(accepted: Iterable[str]) -> StatusError:
    """406: no representation that the client accepts."""
    message = "only the following media types are accepted: " + ", ".join(accepted)
    return StatusError(406, "NotAcceptable", message)


def unsupported_media_type(accepted: Iterable[str]) -> StatusError:
    """415: the body is in a form the server does not read."""
    message = "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted)
    return StatusError(415, "UnsupportedMediaType", message)


def too_many_requests(message: str, *, causes: Iterable[FieldError] = (), retry_after: int = 0) -> StatusError:
    """429: not now; a disruption budget says so."""
    details: JSON = {"causes": [cause.cause() for cause in causes]}
    headers = {}
    if retry_after:
        details["retryAfterSeconds"] = retry_after
        headers["retry-after"] = str(retry_after)
    return StatusError(429, "TooManyRequests", message, details=details, headers=headers)


def internal_error(message: str) -> StatusError:
    """500: the server, or something it had to call, failed."""
    return StatusError(500, "InternalError", f"Internal error occurred: {message}")
