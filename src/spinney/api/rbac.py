"""Roles and their bindings (``rbac.authorization.k8s.io/v1``)."""

from typing import Final

import msgspec

from spinney.api.meta import Object
from spinney.api.resource import Resource
from spinney.api.struct import Struct

GROUP: Final = "rbac.authorization.k8s.io"
ROLE: Final = Resource(GROUP, "v1", "Role", "roles")
ROLE_BINDING: Final = Resource(GROUP, "v1", "RoleBinding", "rolebindings")
CLUSTER_ROLE: Final = Resource(GROUP, "v1", "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDING: Final = Resource(GROUP, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)


class PolicyRule(Struct, frozen=True, kw_only=True):
    """Verbs allowed on resources."""

    verbs: tuple[str, ...]
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = msgspec.field(default=(), name="nonResourceURLs")


class RoleRef(Struct, frozen=True, kw_only=True):
    """The role a binding grants."""

    api_group: str
    kind: str
    name: str


class Subject(Struct, frozen=True, kw_only=True):
    """To whom a binding grants it."""

    kind: str
    name: str
    namespace: str = ""
    api_group: str = ""


class Role(Object, of=ROLE, frozen=True, kw_only=True):
    """What may be done in a namespace."""

    rules: tuple[PolicyRule, ...] = ()
