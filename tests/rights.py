"""Waiting until rights that were granted count: an API server learns of roles and bindings from watches of its own."""

import asyncio
from collections.abc import Iterable, Sequence

from spinney.api.struct import JSON, decode, encode
from spinney.kube.client import Client

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
_FIELDS = ("apiGroups", "resources", "resourceNames", "nonResourceURLs", "verbs")


async def until_granted(client: Client, user: str, rules: Iterable[JSON], namespace: str = "default") -> None:
    """Wait until the API server lets a user do in a namespace what the rules say."""
    wanted = {_comparable(rule) for rule in rules}
    body = encode({"spec": {"namespace": namespace}})
    async with asyncio.timeout(60):
        while True:
            answer = await client.raw("POST", _REVIEWS, body=body, headers={"impersonate-user": user})
            status = decode(dict, answer.body)["status"]
            if wanted <= {_comparable(rule) for rule in (*status["resourceRules"], *status["nonResourceRules"])}:
                return
            await asyncio.sleep(0.05)


async def until_bound(client: Client, objects: Sequence[JSON]) -> None:
    """Wait until every binding among the objects gives its subjects the rules of its role, which is among them too."""
    roles = {_place(each): each["rules"] for each in objects if each["kind"] in ("Role", "ClusterRole")}
    for binding in (each for each in objects if each["kind"].endswith("RoleBinding")):
        namespace = binding["metadata"].get("namespace")
        reference = binding["roleRef"]
        rules = roles[reference["kind"], namespace if reference["kind"] == "Role" else None, reference["name"]]
        for subject in binding["subjects"]:
            await until_granted(client, _user(subject), rules, namespace or "default")


def _place(manifest: JSON) -> tuple[str, str | None, str]:
    metadata = manifest["metadata"]
    return manifest["kind"], metadata.get("namespace"), metadata["name"]


def _user(subject: JSON) -> str:
    if subject["kind"] == "ServiceAccount":
        return f"system:serviceaccount:{subject['namespace']}:{subject['name']}"
    return str(subject["name"])


def _comparable(rule: JSON) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(rule.get(field) or ()) for field in _FIELDS)
