"""Credential plugins, which are real scripts here."""

import asyncio
import json
import stat
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from spinney.kube import exec_plugin
from spinney.kube.config import load_kubeconfig
from spinney.kube.errors import ConfigurationError
from spinney.kube.http import HttpTransport
from spinney.kube.transport import Request
from spinney.runtime import Runtime, SystemClock
from tests.kube.certificates import Authority
from tests.kube.tinyserver import serving

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"

SCRIPT = """#!{python}
import json, os, pathlib, sys
here = pathlib.Path(__file__).parent
runs = here / "runs"
runs.write_text(runs.read_text() + "x" if runs.exists() else "x")
(here / "info").write_text(os.environ["KUBERNETES_EXEC_INFO"])
(here / "seen").write_text(json.dumps([sys.argv[1:], os.environ.get("REGION"), sys.stdin.isatty()]))
answer = json.loads((here / "answer").read_text())
answer["status"]["token"] = answer["status"].get("token", "") and answer["status"]["token"] + str(len(runs.read_text()))
print(json.dumps(answer))
"""


class Adjustable(SystemClock):
    """A clock that a test can put forward."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead


class Plugin:
    """A script that prints what it is told to, and remembers how it was called."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.clock = Adjustable()
        self.path = directory / "login"
        self.path.write_text(SCRIPT.format(python=sys.executable))
        self.path.chmod(self.path.stat().st_mode | stat.S_IXUSR)
        self.prints({"token": "t"})

    def prints(self, status: dict[str, Any], version: str = V1) -> None:
        """Set what the script prints; the number of the run is appended to a token."""
        answer = {"apiVersion": version, "kind": "ExecCredential", "status": status}
        (self.directory / "answer").write_text(json.dumps(answer))

    @property
    def runs(self) -> int:
        """Return how often it was run."""
        return len((self.directory / "runs").read_text())

    def connect(
        self,
        url: str,
        version: str = V1,
        cluster: dict[str, Any] | None = None,
        user: dict[str, Any] | None = None,
        **exec_: Any,
    ) -> HttpTransport:
        """Return a transport for a user of this plugin."""
        plugin = {"command": "./login", "apiVersion": version, **exec_}
        config = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": url, **(cluster or {})}}],
            "users": [{"name": "u", "user": {"exec": plugin, **(user or {})}}],
        }
        path = self.directory / "config"
        path.write_text(yaml.safe_dump(config))
        base = Runtime.virtual()
        return load_kubeconfig(path, runtime=Runtime(self.clock, base.random, base.executor))


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    """Return a plugin that prints a token."""
    return Plugin(tmp_path)


async def token_of(transport: HttpTransport) -> str:
    """Return the authorization the server sees."""
    return str(json.loads((await transport.request(Request("GET", "/"))).body)["authorization"])


@pytest.mark.parametrize("version", [V1, V1BETA1])
async def test_the_token_is_used_and_kept(plugin: Plugin, version: str) -> None:
    """The plugin runs once and its token serves every request, also those that wait for it together."""
    plugin.prints({"token": "t"}, version)
    async with serving() as server:
        transport = plugin.connect(server.url, version)
        tokens = await asyncio.gather(*(token_of(transport) for _ in range(5)))
        assert tokens == ["Bearer t1"] * 5
        assert plugin.runs == 1
        await transport.close()


async def test_an_expired_token_is_replaced(plugin: Plugin) -> None:
    """After the time the plugin named, it is run again; before, it is not."""
    expiry = datetime.now(UTC) + timedelta(hours=1)
    plugin.prints({"token": "t", "expirationTimestamp": expiry.strftime("%Y-%m-%dT%H:%M:%SZ")})
    async with serving() as server:
        transport = plugin.connect(server.url)
        assert await token_of(transport) == "Bearer t1"
        plugin.clock.ahead = timedelta(minutes=50)
        assert await token_of(transport) == "Bearer t1"
        plugin.clock.ahead = timedelta(minutes=70)
        assert await token_of(transport) == "Bearer t2"
        await transport.close()


@pytest.mark.parametrize("with_certificate", [False, True])
async def test_a_refused_token_is_replaced(plugin: Plugin, tmp_path: Path, with_certificate: bool) -> None:
    """A 401 runs the plugin again, once, and repeats the request; also beside a certificate in files."""
    pair = Authority().client("jane")
    (tmp_path / "crt").write_bytes(pair.certificate)
    (tmp_path / "key").write_bytes(pair.key)
    user = {"client-certificate": "crt", "client-key": "key"} if with_certificate else None
    async with serving() as server:
        echo = server.answer

        async def refuse_first(request: web.BaseRequest) -> web.StreamResponse:
            if request.headers["authorization"] == "Bearer t1":
                return web.Response(status=401)
            return await echo(request)

        server.answer = refuse_first
        transport = plugin.connect(server.url, user=user)
        assert await token_of(transport) == "Bearer t2"
        await transport.close()


async def test_a_client_certificate_from_a_plugin(plugin: Plugin, tmp_path: Path) -> None:
    """A plugin may give a client certificate, and a renewed one is used for new connections."""
    authority = Authority()
    async with serving(pair=authority.server("127.0.0.1"), clients=authority, directory=tmp_path) as server:
        transport = plugin.connect(server.url, cluster={"insecure-skip-tls-verify": True})
        past = datetime.now(UTC) - timedelta(hours=1)
        for name in ("jane", "joan"):
            pair = authority.client(name)
            plugin.prints(
                {
                    "clientCertificateData": pair.certificate.decode(),
                    "clientKeyData": pair.key.decode(),
                    "expirationTimestamp": past.strftime("%Y-%m-%dT%H:%M:%SZ"),
                }
            )
            assert json.loads((await transport.request(Request("GET", "/"))).body)["certificate"] == name
        await transport.close()


async def test_arguments_environment_and_cluster_information(plugin: Plugin) -> None:
    """The plugin gets its arguments, its variables and, if it asks, the cluster with its extension."""
    async with serving() as server:
        extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "prod"}}
        transport = plugin.connect(
            server.url,
            cluster={"extensions": [extension], "tls-server-name": "api"},
            args=["get-token", "--quiet"],
            env=[{"name": "REGION", "value": "north"}],
            provideClusterInfo=True,
            interactiveMode="Never",
        )
        await token_of(transport)
        await transport.close()
    args, region, terminal = json.loads((plugin.directory / "seen").read_text())
    assert (args, region, terminal) == (["get-token", "--quiet"], "north", False)
    info = json.loads((plugin.directory / "info").read_text())
    assert (info["apiVersion"], info["kind"]) == (V1, "ExecCredential")
    assert info["spec"] == {
        "interactive": False,
        "cluster": {"server": server.url, "tls-server-name": "api", "config": {"audience": "prod"}},
    }


@pytest.mark.parametrize(
    ("status", "version", "message"),
    [
        ({}, V1, "neither a token nor a client certificate"),
        ({"token": "t"}, V1BETA1, "expected client.authentication.k8s.io/v1 ExecCredential"),
        ({"clientCertificateData": "x"}, V1, "expected both or neither"),
    ],
)
async def test_an_answer_that_cannot_be_used(
    plugin: Plugin, status: dict[str, Any], version: str, message: str
) -> None:
    """What is wrong with the plugin's answer is said."""
    plugin.prints(status, version)
    transport = plugin.connect("http://127.0.0.1:1")
    with pytest.raises(ConfigurationError, match=message):
        await transport.request(Request("GET", "/"))


@pytest.mark.parametrize(
    ("printed", "message"),
    [
        ("Logged in!", "did not print an ExecCredential"),
        ('{"status": {"token": "\\377"}}', "did not print an ExecCredential: .*utf-8"),
        (f'{{"apiVersion": "{V1}", "kind": "ExecCredential"}}', "printed an ExecCredential without status"),
    ],
)
async def test_what_is_no_answer(plugin: Plugin, printed: str, message: str) -> None:
    """Text for people, bytes that are no text and a question instead of its answer are told apart."""
    plugin.path.write_text(f"#!/bin/sh\nprintf '{printed}'\n")
    transport = plugin.connect("http://127.0.0.1:1")
    with pytest.raises(ConfigurationError, match=message):
        await transport.request(Request("GET", "/"))


async def test_a_plugin_that_hangs_is_ended(plugin: Plugin, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that waits for somebody to log in in a browser, where nobody is."""
    monkeypatch.setattr(exec_plugin, "PLUGIN_SECONDS", 0.1)
    plugin.path.write_text("#!/bin/sh\nexec sleep 600\n")
    transport = plugin.connect("http://127.0.0.1:1")
    with pytest.raises(ConfigurationError, match="did not answer within"):
        await transport.request(Request("GET", "/"))


async def test_a_plugin_that_fails(plugin: Plugin) -> None:
    """A failing plugin is named, with its exit code and what it said."""
    plugin.path.write_text("#!/bin/sh\necho 'please log in' >&2\nexit 3\n")
    transport = plugin.connect("http://127.0.0.1:1")
    with pytest.raises(ConfigurationError, match="exit code 3: please log in"):
        await transport.request(Request("GET", "/"))


async def test_a_plugin_that_is_missing(plugin: Plugin) -> None:
    """A plugin that is not installed is named, with the hint how to install it."""
    plugin.path.unlink()
    transport = plugin.connect("http://127.0.0.1:1", installHint="get it at example.com")
    with pytest.raises(ConfigurationError, match=r"cannot be run(.|\n)*get it at example.com"):
        await transport.request(Request("GET", "/"))


async def test_a_plugin_that_must_ask_needs_a_terminal(plugin: Plugin) -> None:
    """InteractiveMode Always without a terminal is refused instead of hanging."""
    transport = plugin.connect("http://127.0.0.1:1", interactiveMode="Always")
    with pytest.raises(ConfigurationError, match="not a terminal"):
        await transport.request(Request("GET", "/"))
