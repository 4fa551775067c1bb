"""From a URL path to what it addresses."""

from spinney.server.exchange.status import method_not_allowed, no_such_path
from spinney.server.kinds import KindRegistry
from spinney.server.operations.context import Target


def resolve(registry: KindRegistry, path: str) -> Target:
    """Return what ``path`` (below ``/api`` or ``/apis``) addresses; raise a 404 if nothing is served there."""
    parts = path.split("/")[1:]
    if parts and not parts[-1]:
        parts.pop()
    if parts[0] == "api":
        group, rest = "", parts[1:]
    else:
        group, rest = parts[1] if len(parts) > 1 else "", parts[2:]
    if len(rest) < 2 or "" in rest:
        raise no_such_path()
    version, rest = rest[0], rest[1:]
    namespace = None
    if rest[0] == "namespaces" and len(rest) >= 3 and registry.find(group, version, rest[2]) is not None:
        namespace, rest = rest[1], rest[2:]
    kind = registry.find(group, version, rest[0])
    if kind is None or kind.resource.namespaced < (namespace is not None):
        raise no_such_path()
    if len(rest) > 3 and rest[2] != "proxy":  # what is behind a proxy has paths of its own
        raise no_such_path()
    name = rest[1] if len(rest) > 1 else None
    subresource = rest[2] if len(rest) > 2 else ""
    if name is not None and kind.resource.namespaced and namespace is None:
        raise no_such_path()
    if subresource and not _has_subresource(Target(kind, namespace, name, subresource)):
        raise no_such_path()
    return Target(kind, namespace, name, subresource)


def _has_subresource(target: Target) -> bool:
    kind = target.kind
    if target.subresource == "status":
        return kind.status
    if target.subresource == "scale":
        return kind.scale is not None
    return target.subresource in kind.subresources


def verb(method: str, target: Target, *, watch: bool) -> str:
    """Return the API verb of a request; raise a 405 if the resource does not offer it."""
    if target.name is None:
        found = {"GET": "watch" if watch else "list", "POST": "create", "DELETE": "deletecollection"}.get(method)
    else:
        found = {"GET": "watch" if watch else "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}.get(method)
        if method == "POST" and target.subresource:
            found = "create"
    if found is None or found not in offered(target):
        raise method_not_allowed()
    return found


def offered(target: Target) -> tuple[str, ...]:
    """Return the verbs that a resource or subresource offers."""
    if not target.subresource:
        return target.kind.verbs
    if target.subresource in {"status", "scale"}:
        return ("get", "patch", "update")
    return target.kind.subresources[target.subresource]
