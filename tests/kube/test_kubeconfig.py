"""Kubeconfig files: merged, resolved and refused as kubectl users expect."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from spinney.kube.config import in_cluster, load_kubeconfig, select_context
from spinney.kube.credentials import TokenFile
from spinney.kube.errors import ConfigurationError
from spinney.kube.http import HttpTransport
from spinney.kube.transport import Request
from spinney.kube.wire.proxies import proxy_for
from spinney.runtime import Runtime
from tests.kube.certificates import Authority
from tests.kube.tinyserver import proxying, serving


def a_kubeconfig(
    path: Path,
    *,
    cluster: Mapping[str, Any],
    user: Mapping[str, Any] | None = None,
    context: str = "main",
    namespace: str | None = None,
    current: bool = True,
) -> Path:
    """Write a kubeconfig with one context, whose cluster and user have its name."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {},
        "current-context": context if current else "",
        "clusters": [{"name": context, "cluster": dict(cluster)}],
        "users": [{"name": context, "user": dict(user or {})}],
        "contexts": [{"name": context, "context": {"cluster": context, "user": context, "namespace": namespace or ""}}],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(config))
    return path


async def who(transport: HttpTransport) -> Mapping[str, Any]:
    """Ask the server who we are to it."""
    try:
        seen: Mapping[str, Any] = json.loads((await transport.request(Request("GET", "/whoami"))).body)
        return seen
    finally:
        await transport.close()


def b64(raw: bytes) -> str:
    """Return base64 text."""
    return base64.b64encode(raw).decode()


@pytest.fixture
def runtime() -> Runtime:
    """Real time without threads."""
    return Runtime.virtual()


def test_the_first_file_to_name_something_wins(tmp_path: Path) -> None:
    """Of several files, current context and each named thing come from the first that has it."""
    first = a_kubeconfig(tmp_path / "1", cluster={"server": "https://first"}, current=False)
    second = a_kubeconfig(tmp_path / "2", cluster={"server": "https://second"})
    third = a_kubeconfig(tmp_path / "3", cluster={"server": "https://third"}, context="other", namespace="ns3")
    environ = {"KUBECONFIG": f"{first}:{tmp_path / 'missing'}:{second}:{third}"}
    assert select_context(environ=environ).cluster.server == "https://first"
    other = select_context(context="other", environ=environ)
    assert (other.cluster.server, other.namespace) == ("https://third", "ns3")


def test_relative_paths_are_relative_to_their_file(tmp_path: Path) -> None:
    """Certificates, keys, token files and plugins are found beside the file that names them."""
    user = {
        "client-certificate": "pki/jane.crt",
        "client-key": "/abs/jane.key",
        "tokenFile": "token",
        "exec": {"command": "./bin/login", "apiVersion": "client.authentication.k8s.io/v1"},
    }
    path = a_kubeconfig(tmp_path / "conf" / "config", cluster={"server": "s", "certificate-authority": "ca"}, user=user)
    selection = select_context(path)
    assert selection.cluster.certificate_authority == str(tmp_path / "conf" / "ca")
    assert selection.user.client_certificate == str(tmp_path / "conf" / "pki" / "jane.crt")
    assert selection.user.client_key == "/abs/jane.key"
    assert selection.user.token_file == str(tmp_path / "conf" / "token")
    assert selection.user.exec is not None
    assert selection.user.exec.command == str(tmp_path / "conf" / "bin" / "login")


@pytest.mark.parametrize("inline", [True, False], ids=["data", "files"])
async def test_authority_and_client_certificate(tmp_path: Path, runtime: Runtime, inline: bool) -> None:
    """Certificates work in line as base64 and as files."""
    authority = Authority()
    pair = authority.client("jane")
    async with serving(pair=authority.server("127.0.0.1"), clients=authority, directory=tmp_path) as server:
        cluster: dict[str, Any] = {"server": server.url}
        user: dict[str, Any] = {}
        for part, name, raw in [
            (cluster, "certificate-authority", authority.pem),
            (user, "client-certificate", pair.certificate),
            (user, "client-key", pair.key),
        ]:
            if inline:
                part[f"{name}-data"] = b64(raw)
            else:
                (tmp_path / name).write_bytes(raw)
                part[name] = name
        path = a_kubeconfig(tmp_path / "config", cluster=cluster, user=user)
        assert (await who(load_kubeconfig(path, runtime=runtime)))["certificate"] == "jane"


@pytest.mark.parametrize(
    ("user", "authorization"),
    [
        ({"token": "abc"}, "Bearer abc"),
        ({"tokenFile": "token"}, "Bearer from-file"),
        ({"token": "abc", "tokenFile": "token"}, "Bearer from-file"),
        ({"username": "jane", "password": "pw"}, f"Basic {b64(b'jane:pw')}"),
        ({}, None),
    ],
    ids=["token", "token file", "file before token", "basic", "nobody"],
)
async def test_tokens_and_passwords(
    tmp_path: Path, runtime: Runtime, user: dict[str, Any], authorization: str | None
) -> None:
    """Each way to say who we are reaches the server as its header."""
    (tmp_path / "token").write_text("from-file\n")
    async with serving() as server:
        path = a_kubeconfig(tmp_path / "config", cluster={"server": server.url}, user=user)
        assert (await who(load_kubeconfig(path, runtime=runtime)))["authorization"] == authorization


async def test_impersonation(tmp_path: Path, runtime: Runtime) -> None:
    """The user and the groups to act as are sent along."""
    async with serving() as server:
        user = {"token": "t", "as": "jane", "as-groups": ["dev", "ops"]}
        path = a_kubeconfig(tmp_path / "config", cluster={"server": server.url}, user=user)
        assert (await who(load_kubeconfig(path, runtime=runtime)))["impersonate"] == ["jane", ["dev", "ops"]]


@pytest.mark.parametrize("user", ["jane@bücher.example", "жанна", "ジェーン"])
async def test_a_name_of_any_language_is_impersonated(tmp_path: Path, runtime: Runtime, user: str) -> None:
    """It is sent as UTF-8, as kubectl sends it."""
    async with serving() as server:
        path = a_kubeconfig(tmp_path / "config", cluster={"server": server.url}, user={"token": "t", "as": user})
        assert (await who(load_kubeconfig(path, runtime=runtime)))["impersonate"] == [user, []]


async def test_a_token_file_that_is_being_replaced_is_read_later(tmp_path: Path, runtime: Runtime) -> None:
    """The token before it is good for a while: what is missing, empty or no text for a moment stops nothing."""
    path = tmp_path / "token"
    tokens = TokenFile(path, runtime)
    for broken, message in ((None, "token file .* cannot be read: No such file"), (b"", "is empty"), (b"\xff", "no")):
        if broken is not None:
            path.write_bytes(broken)
        with pytest.raises(ConfigurationError, match=message):
            await tokens.credential()
    path.write_text("one\n")
    first = await tokens.credential()
    for broken in (b"\xff", b"", None):
        path.unlink() if broken is None else path.write_bytes(broken)
        assert not tokens.reject(first)
        assert await tokens.credential() == first
    path.write_text("two\n")
    assert tokens.reject(first)
    assert dict((await tokens.credential()).headers) == {"authorization": "Bearer two"}


async def test_a_token_of_two_lines_is_refused(tmp_path: Path, runtime: Runtime) -> None:
    """No header can carry it; the error says where to look."""
    (tmp_path / "token").write_text("one\ntwo\n")
    path = a_kubeconfig(tmp_path / "config", cluster={"server": "https://x"}, user={"tokenFile": "token"})
    with pytest.raises(ConfigurationError, match="line break in what is sent as authorization; write its token"):
        await who(load_kubeconfig(path, runtime=runtime))


async def test_proxies(tmp_path: Path, runtime: Runtime) -> None:
    """proxy-url is used; without it the environment's proxy is, but not for this machine itself."""
    authority = Authority()
    async with serving(pair=authority.server("127.0.0.1"), directory=tmp_path) as server, proxying() as (url, targets):
        cluster = {"server": server.url, "certificate-authority-data": b64(authority.pem)}
        path = a_kubeconfig(tmp_path / "config", cluster={**cluster, "proxy-url": url})
        await who(load_kubeconfig(path, runtime=runtime, environ={}))
        assert len(targets) == 1
        path = a_kubeconfig(tmp_path / "config", cluster=cluster)
        await who(load_kubeconfig(path, runtime=runtime, environ={"HTTPS_PROXY": url}))
        assert len(targets) == 1, "this machine itself is reached directly, as kubectl does it"
        elsewhere = server.url.replace("127.0.0.1", "api.example.com")
        path = a_kubeconfig(
            tmp_path / "config", cluster={**cluster, "server": elsewhere, "tls-server-name": "127.0.0.1"}
        )
        await who(load_kubeconfig(path, runtime=runtime, environ={"HTTPS_PROXY": url}))
        assert len(targets) == 2


@pytest.mark.parametrize(
    ("no_proxy", "url", "direct"),
    [
        ("", "https://api.example.com", False),
        ("example.com", "https://api.example.com", True),
        ("example.com", "https://example.com", True),
        (".example.com", "https://example.com", False),
        (".example.com", "https://api.example.com", True),
        ("ample.com", "https://example.com", False),
        ("10.0.0.0/8,foo", "https://10.96.0.1", True),
        ("10.0.0.0/8", "https://11.0.0.1", False),
        ("10.0.0.0/8", "https://api.example.com", False),
        ("api.example.com:443", "https://api.example.com", True),
        ("api.example.com:6443", "https://api.example.com", False),
        ("fd00::/8", "https://[fd00::1]:6443", True),
        ("*", "https://anything", True),
        ("", "https://localhost:6443", True),
        ("", "https://127.0.0.2:6443", True),
        ("", "https://[::1]:6443", True),
    ],
)
def test_exceptions_from_the_proxy(no_proxy: str, url: str, direct: bool) -> None:
    """NO_PROXY knows hosts, domains, ports, addresses and networks."""
    proxy = proxy_for(url, {"https_proxy": "http://proxy:3128", "NO_PROXY": no_proxy})
    assert (proxy is None) is direct


async def test_in_cluster(tmp_path: Path, runtime: Runtime) -> None:
    """The service account's authority and token are used, and the token is read again."""
    authority = Authority()
    async with serving(pair=authority.server("127.0.0.1"), directory=tmp_path) as server:
        (tmp_path / "ca.crt").write_bytes(authority.pem)
        (tmp_path / "token").write_text("one")
        host, port = server.url.removeprefix("https://").split(":")
        environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        seen = await who(in_cluster(runtime=runtime, environ=environ, directory=tmp_path))
        assert seen["authorization"] == "Bearer one"
    with pytest.raises(ConfigurationError, match="not in a cluster"):
        in_cluster(runtime=runtime, environ={})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("clusters: [", "cannot be understood"),
        ("clusters: 5", "cannot be understood"),
        ("", "FILE names no cluster, for it has no contexts; .* or choose another kubeconfig"),
        ("{}", "FILE names no cluster"),
        ("contexts: [{name: a}, {name: b}]", "FILE has no current-context; name one of its contexts: a, b"),
        ("{current-context: a, contexts: [{name: b}]}", "the context is 'a', which kubeconfig FILE does not define"),
        ("{current-context: a, contexts: [{name: a, context: {cluster: c}}]}", "cluster of context 'a' is 'c'"),
        (
            "{current-context: a, contexts: [{name: a, context: {cluster: c}}], clusters: [{name: c}]}",
            "cluster 'c' of kubeconfig FILE has no server",
        ),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, runtime: Runtime, text: str, message: str) -> None:
    """A kubeconfig that cannot be used is refused with its name and what is wrong in it."""
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=message.replace("FILE", str(path))):
        load_kubeconfig(path, runtime=runtime)


@pytest.mark.parametrize(
    ("cluster", "user", "message"),
    [
        ({"certificate-authority-data": "%%"}, {}, "not base64"),
        ({"certificate-authority": "nowhere.pem"}, {}, "cannot be read"),
        ({"certificate-authority-data": b64(b"x"), "insecure-skip-tls-verify": True}, {}, "remove one of them"),
        ({"proxy-url": "socks5://localhost:1080"}, {}, "only http and https proxies"),
        ({}, {"client-certificate-data": b64(b"x")}, "no client-key"),
        ({}, {"auth-provider": {"name": "gcp"}}, "use an exec plugin"),
        ({}, {"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1alpha1"}}, "v1alpha1"),
    ],
)
def test_what_cannot_work_is_refused(
    tmp_path: Path, runtime: Runtime, cluster: dict[str, Any], user: dict[str, Any], message: str
) -> None:
    """Settings that cannot work are refused when the configuration is loaded, not at the first request."""
    path = a_kubeconfig(tmp_path / "config", cluster={"server": "https://x", **cluster}, user=user)
    with pytest.raises(ConfigurationError, match=message):
        load_kubeconfig(path, runtime=runtime)


def test_no_file_at_all(tmp_path: Path, runtime: Runtime) -> None:
    """Without any file the error says where was looked."""
    with pytest.raises(ConfigurationError, match=str(tmp_path / "none")):
        load_kubeconfig(tmp_path / "none", runtime=runtime)
