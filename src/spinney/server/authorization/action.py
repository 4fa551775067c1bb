"""What a request asks for, as authorization sees it: read from the request alone, before anything is looked up."""

from dataclasses import dataclass

from spinney.api.resource import Resource
from spinney.api.selectors import FieldSelector, InvalidSelector
from spinney.server.exchange.message import Request, User
from spinney.server.exchange.status import StatusError

_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_OF_NAMESPACES = ("status", "finalize")


@dataclass(frozen=True, slots=True)
class AccessRequest:
    """A verb on a resource, or on a path that is none."""

    user: User
    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""  # of what is no resource

    @property
    def full_resource(self) -> str:
        """The resource with its subresource, as rules name it."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource

    @classmethod
    def on(cls, user: User, verb: str, resource: Resource, namespace: str, name: str) -> "AccessRequest":
        """Return the request for a verb on an object."""
        return cls(user, verb, resource.group, resource.version, resource.plural, namespace=namespace, name=name)

    def refusal(self, reason: str = "") -> StatusError:
        """Return the 403 that says what may not be done."""
        who = f'User "{self.user.name}" cannot {self.verb}'
        why = f": {reason}" if reason else ""
        if self.path:
            return StatusError(403, "Forbidden", f'forbidden: {who} path "{self.path}"{why}', details={})
        what = str(Resource(self.group, self.version, "", self.resource))
        named = f'{what} "{self.name}"' if self.name else what
        where = f'in the namespace "{self.namespace}"' if self.namespace else "at the cluster scope"
        details = {"name": self.name, "group": self.group, "kind": self.resource}
        return StatusError(
            403,
            "Forbidden",
            f'{named} is forbidden: {who} resource "{self.full_resource}" in API group "{self.group}" {where}{why}',
            details={name: value for name, value in details.items() if value},
        )


def action(request: Request, user: User) -> AccessRequest:
    """Return what a request wants to do."""
    parts = request.path.strip("/").split("/")
    verb = _VERBS.get(request.method, request.method.lower())
    grouped = parts[0] == "apis"
    start = 3 if grouped else 2
    if parts[0] not in {"api", "apis"} or len(parts) <= start:
        return AccessRequest(user, "get" if verb == "get" else verb, path=request.path)
    group, version = (parts[1], parts[2]) if grouped else ("", parts[1])
    rest = parts[start:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _OF_NAMESPACES:
            rest = rest[2:]
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if not name and verb in {"get", "delete"}:
        name = _only_name(request)
        verb = "deletecollection" if verb == "delete" else "list"
    if verb in {"get", "list"} and request.query.get("watch") in {"true", "1"}:
        verb = "watch"
    return AccessRequest(user, verb, group, version, rest[0], subresource, namespace, name)


def _only_name(request: Request) -> str:
    """Return the one name that a list can be about."""
    try:
        selector = FieldSelector.parse(request.query.get("fieldSelector", ""))
    except InvalidSelector:
        return ""
    equal = [each.value for each in selector.requirements if each.path == "metadata.name" and each.equal]
    return equal[0] if len(equal) == 1 else ""
