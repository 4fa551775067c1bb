"""What can go wrong between us and an API server, one class per thing a caller can act on.

Two families: :class:`ApiError` carries the ``Status`` an API server answered with; :class:`ConnectionFailed` means
that no answer came. Both are :class:`KubeError`. HTTP-library exceptions never leave :mod:`spinney.kube`.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec


class KubeError(Exception):
    """Base of every error of talking to an API server."""


class ConnectionFailed(KubeError):
    """No complete answer came; whether the server acted on the request is unknown."""


class ConnectionRefused(ConnectionFailed):
    """No connection could be made, so the request never left and may be repeated safely."""


class ConnectionTimedOut(ConnectionFailed):
    """The answer did not come in time; whether the server acted on the request is unknown."""


class UndecodableResponse(KubeError):
    """The server answered with something other than the object that was asked for."""


class ConfigurationError(KubeError):
    """The kubeconfig, the service-account files or a credential plugin cannot be used as they are."""


class StatusCause(msgspec.Struct, frozen=True, kw_only=True):
    """One of the reasons behind a refused request, usually one field."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a ``Status`` says about the object concerned."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] | None = None
    retry_after_seconds: float = 0


class Status(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The API server's account of a request that failed."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: StatusDetails | None = None


class ApiError(KubeError):
    """The API server answered, and refused."""

    def __init__(self, status: int, reason: str = "", message: str = "", details: StatusDetails | None = None) -> None:
        super().__init__(message or f"the API server answered {status} {reason}".rstrip())
        self.status = status
        self.reason = reason
        self.message = message
        self.details = details or StatusDetails()

    @property
    def causes(self) -> Sequence[StatusCause]:
        """Return the causes the server listed, often one per invalid field."""
        return self.details.causes or ()

    def has_cause(self, reason: str) -> bool:
        """Tell whether the server listed a cause with this reason."""
        return any(cause.reason == reason for cause in self.causes)

    @property
    def retry_after(self) -> float | None:
        """Return after how many seconds the server would like to be asked again, if it said so."""
        return self.details.retry_after_seconds or None


class BadRequest(ApiError):
    """400: the request cannot be understood."""


class Unauthorized(ApiError):
    """401: the server does not know who is asking."""


class Forbidden(ApiError):
    """403: the caller may not do this."""


class NotFound(ApiError):
    """404: the object, or its kind, does not exist."""


class MethodNotSupported(ApiError):
    """405: the resource does not offer this verb."""


class Conflict(ApiError):
    """409: the object is not in the state the request assumed."""


class Contended(ApiError):
    """409 again and again: others write the object all the time; to be tried again later."""


class AlreadyExists(Conflict):
    """409 with reason AlreadyExists: an object of this name is there."""


class Expired(ApiError):
    """410: the resource version or continue token is too old."""


class RequestEntityTooLarge(ApiError):
    """413: the object is larger than the server takes."""


class UnsupportedMediaType(ApiError):
    """415: the server does not take this kind of body or patch."""


class Invalid(ApiError):
    """422: the object breaks a rule of its kind; ``causes`` names the fields."""


class TooManyRequests(ApiError):
    """429: the server is busy, or a disruption budget forbids the eviction for now."""


class InternalError(ApiError):
    """500: the server failed."""


class ServiceUnavailable(ApiError):
    """503: the server is not ready to answer."""


class ServerTimeout(ApiError):
    """504: the server did not finish in time."""


_BY_CODE: Mapping[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotSupported,
    409: Conflict,
    410: Expired,
    413: RequestEntityTooLarge,
    415: UnsupportedMediaType,
    422: Invalid,
    429: TooManyRequests,
    500: InternalError,
    503: ServiceUnavailable,
    504: ServerTimeout,
}

_BY_REASON: Mapping[str, type[ApiError]] = {
    "AlreadyExists": AlreadyExists,
    "Conflict": Conflict,
    "Expired": Expired,
    "Gone": Expired,
    "NotFound": NotFound,
    "Invalid": Invalid,
    "ServerTimeout": ServerTimeout,
    "Timeout": ServerTimeout,
}

_NO_SUCH_PATH: Final = b"404 page not found"
_NO_SUCH_RESOURCE: Final = "the server could not find the requested resource"
"""What an API server answers to any request for a kind that it does not serve, in its version or at all."""


def error_from(status: Status) -> ApiError:
    """Return the error that a ``Status`` object describes."""
    kind = _BY_REASON.get(status.reason) or _BY_CODE.get(status.code) or ApiError
    return kind(status.code, status.reason, status.message, status.details)


def error_from_response(code: int, body: bytes, headers: Mapping[str, str], *, request: str) -> ApiError:
    """Return the error for a failed response, whether or not its body is a ``Status``.

    A proxy in between answers with HTML: then the message names the request, the code and the start of the body.
    """
    try:
        status = msgspec.json.decode(body, type=Status)
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = body[:200].decode("utf-8", "replace").strip()
        status = Status(message=f"{request} answered {code}" + (f": {text}" if text else ""))
    details = status.details or StatusDetails()
    after = headers.get("retry-after", "")
    if not details.retry_after_seconds and after.isdecimal():
        details = msgspec.structs.replace(details, retry_after_seconds=float(after))
    message = status.message or f"{request} answered {code}"
    if code == 404 and (body.strip() == _NO_SUCH_PATH or status.message == _NO_SUCH_RESOURCE):
        message = (
            f"{request}: the API server does not serve this kind, or this part of it, in this version; "
            "install a CustomResourceDefinition that has it, or switch on its API if it is Kubernetes' own"
        )
    return error_from(Status(code=code, reason=status.reason, message=message, details=details))
