"""Role-based access control: who may do what, how that is refused, and that nobody grants what they do not have."""

from typing import Any

import pytest

from spinney.api.struct import JSON
from spinney.server import Request, ServerOptions
from spinney.server.exchange.message import User
from tests.server.api import CONFIG_MAPS, PODS, Answer, Api, a_config_map, an_api

RBAC = "/apis/rbac.authorization.k8s.io/v1"
CLUSTER_ROLES, CLUSTER_BINDINGS = f"{RBAC}/clusterroles", f"{RBAC}/clusterrolebindings"
ROLES, BINDINGS = f"{RBAC}/namespaces/default/roles", f"{RBAC}/namespaces/default/rolebindings"
_GROUP = "rbac.authorization.k8s.io"


@pytest.fixture
async def api() -> Api:
    """Return a server that asks roles."""
    return an_api(ServerOptions(authorization="RBAC"))


async def as_user(api: Api, user: str, method: str, path: str, body: Any = None, **query: str) -> Answer:
    """Send a request in somebody's name."""
    return await api.send(method, path, body, query=query, headers={"impersonate-user": user})


def a_role(name: str, *rules: JSON) -> JSON:
    return {"metadata": {"name": name}, "rules": list(rules)}


def a_rule(verbs: str, resources: str, group: str = "", names: str = "") -> JSON:
    rule: JSON = {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}
    return {**rule, "resourceNames": names.split()} if names else rule


def a_binding(role: str, user: str, kind: str = "ClusterRole") -> JSON:
    return {
        "metadata": {"name": f"{role.replace(':', '-')}-{user}"},
        "roleRef": {"apiGroup": _GROUP, "kind": kind, "name": role},
        "subjects": [{"kind": "User", "name": user}],
    }


async def test_nobody_may_do_anything_without_a_role(api: Api) -> None:
    """A refusal says who may not do what, where, in the words of Kubernetes."""
    refused = {
        ("GET", PODS): 'pods is forbidden: User "bob" cannot list resource "pods" in API group ""'
        ' in the namespace "default"',
        ("GET", f"{PODS}/x/log"): 'pods "x" is forbidden: User "bob" cannot get resource "pods/log" in API group ""'
        ' in the namespace "default"',
        ("DELETE", "/api/v1/nodes/x"): 'nodes "x" is forbidden: User "bob" cannot delete resource "nodes"'
        ' in API group "" at the cluster scope',
        ("POST", "/apis/foo.com/v1/bars"): 'bars.foo.com is forbidden: User "bob" cannot create resource "bars"'
        ' in API group "foo.com" at the cluster scope',
        ("GET", "/metrics"): 'forbidden: User "bob" cannot get path "/metrics"',
    }
    for (method, path), message in refused.items():
        answer = await as_user(api, "bob", method, path)
        assert (answer.status, answer.body["reason"], answer.body["message"]) == (403, "Forbidden", message)
    assert (await as_user(api, "bob", "GET", "/apis")).status == 200


async def test_a_binding_gives_its_role_where_it_stands(api: Api) -> None:
    """A binding in a namespace counts there; one of the cluster counts everywhere."""
    await api.create(BINDINGS, a_binding("view", "bob"))
    assert (await as_user(api, "bob", "GET", PODS)).status == 200
    assert (await as_user(api, "bob", "GET", "/api/v1/pods")).status == 403
    assert (await as_user(api, "bob", "POST", CONFIG_MAPS, a_config_map("a"))).status == 403
    await api.create(CLUSTER_BINDINGS, a_binding("edit", "bob"))
    assert (await as_user(api, "bob", "GET", "/api/v1/pods")).status == 200
    assert (await as_user(api, "bob", "POST", CONFIG_MAPS, a_config_map("a"))).status == 201
    await api.delete(f"{CLUSTER_BINDINGS}/edit-bob")
    assert (await as_user(api, "bob", "GET", "/api/v1/pods")).status == 403


async def test_a_rule_may_be_about_names_only(api: Api) -> None:
    """A rule with resource names allows those, and a list that can only find them."""
    await api.create(ROLES, a_role("one", a_rule("get list", "configmaps", names="a")))
    await api.create(BINDINGS, a_binding("one", "bob", "Role"))
    await api.create(CONFIG_MAPS, a_config_map("a"))
    assert (await as_user(api, "bob", "GET", f"{CONFIG_MAPS}/a")).status == 200
    assert (await as_user(api, "bob", "GET", f"{CONFIG_MAPS}/b")).status == 403
    assert (await as_user(api, "bob", "GET", CONFIG_MAPS)).status == 403
    assert (await as_user(api, "bob", "GET", CONFIG_MAPS, fieldSelector="metadata.name=a")).status == 200


async def test_a_missing_role_is_named(api: Api) -> None:
    """A binding to a role that does not exist gives nothing, and the refusal says why."""
    await api.create(BINDINGS, a_binding("gone", "bob", "Role"))
    answer = await as_user(api, "bob", "GET", PODS)
    assert answer.body["message"].endswith(': rbac: RBAC: role.rbac.authorization.k8s.io "gone" not found')


async def test_aggregated_roles_follow_their_parts(api: Api) -> None:
    """A cluster role with an aggregation rule has the rules of the roles that its selector finds."""
    async with api.server.running():
        part = a_role("part", a_rule("get", "widgets", "example.com"))
        part["metadata"]["labels"] = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
        await api.create(CLUSTER_ROLES, part)
        await api.create(BINDINGS, a_binding("admin", "bob"))
        async with api.watch(CLUSTER_ROLES, fieldSelector="metadata.name=admin") as watch:
            while part["rules"][0] not in (await watch.next())["object"]["rules"]:
                pass
        path = "/apis/example.com/v1/namespaces/default/widgets/w"
        assert (await as_user(api, "bob", "GET", path)).status == 404


async def test_nobody_grants_more_than_they_have(api: Api) -> None:
    """Writing or binding a role takes all of its rights, or the right to do so regardless."""
    await api.create(BINDINGS, a_binding("admin", "bob"))
    wide = a_role("wide", a_rule("get create", "nodes"))
    answer = await as_user(api, "bob", "POST", ROLES, wide)
    assert answer.status == 403
    assert answer.body["message"] == (
        'roles.rbac.authorization.k8s.io "wide" is forbidden: user "bob" (groups=["system:authenticated"]) is'
        " attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["nodes"], Verbs:["get" "create"]}'
    )
    assert (await as_user(api, "bob", "POST", BINDINGS, a_binding("cluster-admin", "eve"))).status == 403
    assert (await as_user(api, "bob", "POST", ROLES, a_role("same", a_rule("get", "pods")))).status == 201
    assert (await as_user(api, "bob", "POST", BINDINGS, a_binding("view", "eve"))).status == 201
    await api.create(ROLES, a_role("free", a_rule("escalate bind", "roles clusterroles", _GROUP)))
    await api.create(BINDINGS, a_binding("free", "bob", "Role"))
    assert (await as_user(api, "bob", "POST", ROLES, wide)).status == 201
    assert (await as_user(api, "bob", "POST", BINDINGS, a_binding("cluster-admin", "eve"))).status == 201


async def test_a_binding_keeps_its_role(api: Api) -> None:
    """The role of a binding cannot be changed."""
    await api.create(BINDINGS, a_binding("view", "bob"))
    changed = {**a_binding("edit", "bob"), "metadata": {"name": "view-bob"}}
    answer = await api.send("PUT", f"{BINDINGS}/view-bob", changed)
    assert (answer.status, [cause["field"] for cause in answer.body["details"]["causes"]]) == (422, ["roleRef"])


async def test_impersonation_takes_a_right(api: Api) -> None:
    """Only those who may impersonate a user, group or account speak for it."""
    eve = {"impersonate-user": "eve"}
    await api.create(CLUSTER_ROLES, a_role("speak", a_rule("impersonate", "users", names="eve")))
    await api.create(CLUSTER_BINDINGS, a_binding("speak", "bob"))
    review = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    grouped = {**eve, "impersonate-group": "dev\nops"}
    asked = await api.send("POST", review, {}, headers=grouped)
    assert asked.body["status"]["userInfo"] == {"username": "eve", "groups": ["dev", "ops", "system:authenticated"]}
    bob = User("bob", groups=("system:authenticated",))
    assert (await api.server.handle(Request("GET", "/api", headers=eve, user=bob))).status == 200
    refused = await api.server.handle(Request("GET", "/api", headers={"impersonate-user": "root"}, user=bob))
    assert refused.status == 403
    assert b'User \\"bob\\" cannot impersonate-on:user-info:get path' in bytes(refused.body)  # type: ignore[arg-type]
    missing = await api.send("GET", "/api", headers={"impersonate-group": "dev"})
    assert missing.status == 400


REVIEWS = "/apis/authorization.k8s.io/v1"


@pytest.mark.parametrize(
    ("attributes", "allowed"),
    [
        ({"verb": "list", "resource": "pods", "namespace": "default"}, True),
        ({"verb": "list", "resource": "pods"}, False),
        ({"verb": "get", "resource": "pods", "subresource": "log", "namespace": "default"}, True),
        ({"verb": "create", "resource": "pods", "namespace": "default"}, False),
    ],
)
async def test_access_reviews_tell(api: Api, attributes: JSON, allowed: bool) -> None:
    """A review says whether somebody may do something, and through which binding."""
    await api.create(BINDINGS, a_binding("view", "bob"))
    about = {"spec": {"user": "bob", "extra": {"scopes": None}, "resourceAttributes": attributes}}
    status = (await api.create(f"{REVIEWS}/subjectaccessreviews", about))["status"]
    assert status["allowed"] is allowed
    if allowed:
        through = 'RBAC: allowed by RoleBinding "view-bob/default" of ClusterRole "view" to User "bob"'
        assert status["reason"] == through
    own = await as_user(
        api, "bob", "POST", f"{REVIEWS}/selfsubjectaccessreviews", {"spec": {"resourceAttributes": attributes}}
    )
    assert own.body["status"]["allowed"] is allowed


async def test_rights_are_listed(api: Api) -> None:
    """A rules review lists what one may do in a namespace."""
    await api.create(ROLES, a_role("one", a_rule("get", "configmaps", names="a")))
    await api.create(BINDINGS, a_binding("one", "bob", "Role"))
    answer = await as_user(api, "bob", "POST", f"{REVIEWS}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}})
    status = answer.body["status"]
    assert status["resourceRules"][-1] == a_rule("get", "configmaps", names="a")
    assert "/api/*" in status["nonResourceRules"][0]["nonResourceURLs"]
    assert status["incomplete"] is False
