"""Service accounts: every namespace and pod has one, and its tokens say who somebody is for as long as it lives."""

from datetime import timedelta
from pathlib import Path

import pytest

from spinney.runtime import Runtime
from spinney.server import ApiServer, ServerOptions
from spinney.server.authentication.tokens import ISSUER, InvalidToken
from tests.server.api import PODS, Api, a_pod, an_api
from tests.virtual_time import on_virtual_time

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
_NAME = "system:serviceaccount:default:default"


async def test_a_namespace_has_its_defaults(api: Api) -> None:
    """A namespace has its default account and the root certificate as soon as it is there, and gets them back."""
    await api.create("/api/v1/namespaces", {"metadata": {"name": "team"}})
    accounts, maps = (f"/api/v1/namespaces/team/{kind}" for kind in ("serviceaccounts", "configmaps"))
    assert await api.names(accounts) == ["default"]
    await api.get(f"{maps}/kube-root-ca.crt")
    async with api.server.running(), api.watch(accounts, None, resourceVersion="0") as watch:
        assert await watch.take(1) == [("ADDED", "default")]
        await api.delete(f"{accounts}/default")
        assert await watch.take(2) == [("DELETED", "default"), ("ADDED", "default")]


async def test_pods_get_a_token(api: Api) -> None:
    """A pod without an account runs as the default one; its containers find a token where clients look for it."""
    pod = await api.create(PODS, a_pod("p"))
    spec = pod["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")
    (volume,) = spec["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    assert [next(iter(source)) for source in volume["projected"]["sources"]] == [
        "serviceAccountToken",
        "configMap",
        "downwardAPI",
    ]
    mount = {
        "name": volume["name"],
        "readOnly": True,
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
    }
    assert [container["volumeMounts"] for container in spec["containers"]] == [[mount]]


async def test_automounting_can_be_declined(api: Api) -> None:
    """The pod's word on mounting counts before its account's."""
    await api.create(
        ACCOUNTS,
        {"metadata": {"name": "quiet"}, "automountServiceAccountToken": False, "imagePullSecrets": [{"name": "s"}]},
    )
    quiet = await api.create(PODS, a_pod("a", serviceAccountName="quiet"))
    assert "volumes" not in quiet["spec"]
    assert quiet["spec"]["imagePullSecrets"] == [{"name": "s"}]
    loud = await api.create(PODS, a_pod("b", serviceAccountName="quiet", automountServiceAccountToken=True))
    assert len(loud["spec"]["volumes"]) == 1


async def test_a_pod_needs_its_account() -> None:
    """A pod whose account does not exist is refused."""
    answer = await an_api().send("POST", PODS, a_pod("p", serviceAccountName="nobody"))
    assert answer.status == 403
    assert answer.body["message"] == (
        'pods "p" is forbidden: error looking up service account default/nobody: serviceaccount "nobody" not found'
    )


async def test_a_token_says_who_it_is(api: Api) -> None:
    """A requested token authenticates its account until account or bound pod are gone."""
    pod = await api.create(PODS, a_pod("p"))
    bound = {"kind": "Pod", "apiVersion": "v1", "name": "p"}
    token = await _token(api, boundObjectRef=bound)
    status = (await api.create(TOKEN_REVIEWS, {"spec": {"token": token}}))["status"]
    assert (status["authenticated"], status["audiences"], status["user"]["username"]) == (True, [ISSUER], _NAME)
    assert status["user"]["groups"] == [
        "system:serviceaccounts",
        "system:serviceaccounts:default",
        "system:authenticated",
    ]
    assert status["user"]["extra"]["authentication.kubernetes.io/pod-uid"] == [pod["metadata"]["uid"]]
    await api.delete(f"{PODS}/p")
    assert "authenticated" not in (await api.create(TOKEN_REVIEWS, {"spec": {"token": token}}))["status"]


async def test_a_token_is_for_its_audience(api: Api) -> None:
    """A token for another audience does not let in here, and is good where it is for."""
    token = await _token(api, audiences=["vault"])
    assert "authenticated" not in (await api.create(TOKEN_REVIEWS, {"spec": {"token": token}}))["status"]
    told = await api.create(TOKEN_REVIEWS, {"spec": {"token": token, "audiences": ["vault", "x"]}})
    assert told["status"]["audiences"] == ["vault"]


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        ({"expirationSeconds": 5}, 422),
        ({"expirationSeconds": 1 << 33}, 422),
        ({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "gone"}}, 404),
        ({"boundObjectRef": {"kind": "Service", "apiVersion": "v1", "name": "s"}}, 400),
    ],
)
async def test_bad_token_requests(spec: dict[str, object], status: int) -> None:
    """A request for a token that cannot be made says why."""
    answer = await an_api().send("POST", f"{ACCOUNTS}/default/token", {"spec": spec})
    assert answer.status == status


@on_virtual_time
async def test_a_token_expires() -> None:
    """A token is good for the time it was asked for."""
    runtime = Runtime.virtual(seed=1)
    api = Api(ApiServer(runtime))
    token = await _token(api)
    authenticator = api.server.authenticator
    assert authenticator.authenticate(token).user.name == _NAME
    await runtime.clock.sleep(timedelta(hours=1).total_seconds())
    with pytest.raises(InvalidToken, match="expired"):
        authenticator.authenticate(token)


async def test_tokens_outlive_a_restart(tmp_path: Path) -> None:
    """With a data directory, a token is good for the next server there, and a damaged or foreign one for none."""
    options = ServerOptions(data_directory=tmp_path)
    api = an_api(options)
    token = await _token(api)
    api.server.close()
    api = an_api(options)
    assert api.server.authenticator.authenticate(token).user.name == _NAME
    header, body, signature = token.split(".")
    for damaged in ("", "x", f"{header}.{body}.{signature[:-8]}AAAAAAAA", f"{header}.{body[:-4]}AAAA.{signature}"):
        with pytest.raises(InvalidToken):
            api.server.authenticator.authenticate(damaged)
    with pytest.raises(InvalidToken):
        an_api().server.authenticator.authenticate(token)
    api.server.close()


async def _token(api: Api, **spec: object) -> str:
    made = await api.create(f"{ACCOUNTS}/default/token", {"spec": spec})
    token: str = made["status"]["token"]
    return token
