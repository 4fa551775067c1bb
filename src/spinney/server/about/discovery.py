"""Discovery: which groups, versions and resources there are, in the aggregated and in the older form."""

import hashlib
import re

import msgspec

from spinney.api.struct import JSON
from spinney.server.exchange.message import Request, Response
from spinney.server.exchange.responding import accepted, reply, reply_json
from spinney.server.exchange.status import no_such_path
from spinney.server.kinds import Kind, KindRegistry
from spinney.server.operations.context import Target
from spinney.server.rest.routing import offered

_AGGREGATED = "apidiscovery.k8s.io"
_STABILITY = {"": 2, "beta": 1, "alpha": 0}
_PREFERRED = [
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
]


def serve_discovery(registry: KindRegistry, request: Request) -> Response:
    """Answer ``/api``, ``/apis`` and what is below them down to a version."""
    parts = [part for part in request.path.split("/") if part]
    if parts in (["api"], ["apis"]):
        for media in accepted(request.headers.get("accept", "")):
            wanted = (media.as_kind, media.group)
            if wanted == ("APIGroupDiscoveryList", _AGGREGATED) and media.version in {"v2", "v2beta1"}:
                return _aggregated(registry, request, legacy=parts == ["api"], version=media.version)
            if not media.as_kind:
                break
    match parts:
        case ["api"]:
            address = {"clientCIDR": "0.0.0.0/0", "serverAddress": request.headers.get("host", "")}
            return reply_json({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [address]})
        case ["apis"]:
            groups = [_group(registry, group) for group in _groups(registry)]
            return reply_json({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        case ["apis", group] if group in _groups(registry):
            return reply_json({"kind": "APIGroup", "apiVersion": "v1", **_group(registry, group)})
        case ["api", version] if registry.serves_version("", version):
            return _resource_list(registry, "", version)
        case ["apis", group, version] if registry.serves_version(group, version):
            return _resource_list(registry, group, version)
    raise no_such_path()


def discovery_paths(registry: KindRegistry) -> list[str]:
    """Return every path at which something is discovered."""
    versions = [f"/apis/{group}/{version}" for group in _groups(registry) for version in versions_of(registry, group)]
    return ["/api", "/api/v1", "/apis", "/apis/", *(f"/apis/{group}" for group in _groups(registry)), *versions]


def version_rank(version: str) -> tuple[int, int, int]:
    """Return what versions are compared by: stable before beta before alpha, then the higher number first."""
    match = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version)
    if match is None:
        return (3, 0, 0)
    return (2 - _STABILITY[match[2] or ""], -int(match[1]), -int(match[3] or 0))


def versions_of(registry: KindRegistry, group: str) -> list[str]:
    """Return the versions of a group, the preferred one first."""
    return sorted({kind.resource.version for kind in registry if kind.resource.group == group}, key=version_rank)


def _groups(registry: KindRegistry) -> list[str]:
    """Return the groups in Kubernetes' order of preference, which decides what a name means that several have."""
    groups = dict.fromkeys(kind.resource.group for kind in registry if kind.resource.group)
    return sorted(
        groups, key=lambda group: (_PREFERRED.index(group) if group in _PREFERRED else len(_PREFERRED), group)
    )


def _group(registry: KindRegistry, group: str) -> JSON:
    versions = [{"groupVersion": f"{group}/{each}", "version": each} for each in versions_of(registry, group)]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


_SHOWN = {  # what subresources answer with, where that is not the object: group, version and kind
    "attach": ("", "v1", "PodAttachOptions"),
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
    "exec": ("", "v1", "PodExecOptions"),
    "portforward": ("", "v1", "PodPortForwardOptions"),
    "scale": ("autoscaling", "v1", "Scale"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
}


def _subresources(kind: Kind) -> list[tuple[str, tuple[str, ...], JSON]]:
    """Return name, verbs and response kind of every subresource."""
    resource = kind.resource
    shown = {**_SHOWN, "proxy": ("", "v1", f"{resource.kind}ProxyOptions")}
    found = []
    for name in [*(["status"] if kind.status else []), *(["scale"] if kind.scale else []), *kind.subresources]:
        answer = shown.get(name, (resource.group, resource.version, resource.kind))
        response_kind: JSON = dict(zip(("group", "version", "kind"), answer, strict=True))
        found.append((name, offered(Target(kind, subresource=name)), response_kind))
    return found


def _kinds(registry: KindRegistry, group: str, version: str) -> list[Kind]:
    return [kind for kind in registry if (kind.resource.group, kind.resource.version) == (group, version)]


def _called(kind: Kind) -> JSON:
    """Return what a kind also goes by, as far as there is something."""
    names = {"shortNames": list(kind.resource.short_names), "categories": list(kind.categories)}
    return {name: listed for name, listed in names.items() if listed}


def _resource_list(registry: KindRegistry, group: str, version: str) -> Response:
    resources: list[JSON] = []
    for kind in _kinds(registry, group, version):
        resource = kind.resource
        resources.append(
            {
                "name": resource.plural,
                "singularName": kind.singular,
                "namespaced": resource.namespaced,
                "kind": resource.kind,
                "verbs": list(kind.verbs),
                **_called(kind),
            }
        )
        for name, verbs, shown in _subresources(kind):
            below: JSON = {
                "name": f"{resource.plural}/{name}",
                "singularName": "",
                "namespaced": resource.namespaced,
                "kind": shown["kind"],
                "verbs": list(verbs),
            }
            if (shown["group"], shown["version"]) != (group, version):
                below |= {"group": shown["group"], "version": shown["version"]}
            resources.append(below)
    group_version = f"{group}/{version}" if group else version
    return reply_json(
        {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}
    )


def _aggregated(registry: KindRegistry, request: Request, *, legacy: bool, version: str) -> Response:
    items = [
        {
            "metadata": {"name": group} if group else {},
            "versions": [_version(registry, group, each) for each in versions_of(registry, group)],
        }
        for group in ([""] if legacy else _groups(registry))
    ]
    api_version = f"{_AGGREGATED}/{version}"
    body = msgspec.json.encode(
        {"kind": "APIGroupDiscoveryList", "apiVersion": api_version, "metadata": {}, "items": items}
    )
    etag = '"' + hashlib.sha256(body).hexdigest()[:32].upper() + '"'
    content_type = f"application/json;g={_AGGREGATED};v={version};as=APIGroupDiscoveryList"
    headers = {"etag": etag, "vary": "Accept", "cache-control": "public"}
    if request.headers.get("if-none-match") == etag:
        return Response(304, headers, b"")
    answer = reply(body, content_type=content_type)
    return Response(answer.status, {**answer.headers, **headers}, body)


def _version(registry: KindRegistry, group: str, version: str) -> JSON:
    resources = []
    for kind in _kinds(registry, group, version):
        resource = kind.resource
        entry: JSON = {
            "resource": resource.plural,
            "responseKind": _response_kind(kind, {"group": group, "version": version, "kind": resource.kind}),
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "singularResource": kind.singular,
            "verbs": list(kind.verbs),
            **_called(kind),
        }
        if below := _subresources(kind):
            entry["subresources"] = [
                {"subresource": name, "responseKind": _response_kind(kind, shown), "verbs": list(verbs)}
                for name, verbs, shown in below
            ]
        resources.append(entry)
    return {"version": version, "resources": resources, "freshness": "Current"}


def _response_kind(kind: Kind, shown: JSON) -> JSON:
    """Return a response kind as Kubernetes tells it: for built-in kinds the group they are in goes without saying."""
    own = (shown["group"], shown["version"]) == (kind.resource.group, kind.resource.version)
    return {"group": "", "version": "", "kind": shown["kind"]} if own and not kind.custom else shown
