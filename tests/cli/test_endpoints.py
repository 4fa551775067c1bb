"""Processes listen where their options and their configuration say."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from prometheus_client import CollectorRegistry

from spinney.cli import main
from spinney.kube.serving import HealthServer
from spinney.operator.operator import Operator
from spinney.runtime.serving import CannotListen

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: here, user: here}}]
clusters: [{name: here, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: here, user: {}}]
"""


class Listened(Exception):
    """A process would begin to serve."""


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    """A kubeconfig of a cluster that nobody is asked about."""
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    return str(tmp_path / "kubeconfig")


@pytest.fixture
def listening(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Where processes listen, or would."""
    found: list[tuple[str, int]] = []
    made = HealthServer.__init__

    def note(self: HealthServer, registry: Any, *, host: str = "", port: int = 8080, setting: str = "") -> None:
        found.append((host, port))
        made(self, registry, host=host, port=port, setting=setting)

    monkeypatch.setattr(HealthServer, "__init__", note)
    return found


@pytest.mark.parametrize("command", ["scheduler", "coscheduler", "grouper"])
def test_schedulers_listen_where_they_are_told(
    command: str, kubeconfig: str, listening: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``--metrics-address`` and ``--metrics-port`` are where health and metrics are served."""

    async def start(self: HealthServer) -> None:
        raise Listened

    monkeypatch.setattr(HealthServer, "start", start)
    options = ["--metrics-address", "127.0.0.3", "--metrics-port", "7007", "--kubeconfig", kubeconfig]
    CliRunner().invoke(main, [command, *options])
    assert listening == [("127.0.0.3", 7007)]


def test_the_operator_listens_where_its_configuration_says(
    tmp_path: Path, kubeconfig: str, listening: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``bindAddress`` holds for health and for metrics; keys without effect are told at start, on standard error."""

    async def run(self: Operator) -> None:
        return None

    monkeypatch.setattr(Operator, "run", run)
    config = tmp_path / "operator.yaml"
    config.write_text(
        "server:\n"
        "  healthProbes: {bindAddress: 127.0.0.4, port: 7001}\n"
        "  metrics: {bindAddress: 127.0.0.5, port: 7002}\n"
        "runtimeClientConnection: {qps: 5}\n"
    )
    answer = CliRunner().invoke(main, ["operator", "--config", str(config), "--kubeconfig", kubeconfig])
    assert answer.exit_code == 0, answer.output
    assert listening == [("127.0.0.4", 7001), ("127.0.0.5", 7002)]
    assert "has no effect" in answer.stderr
    assert "runtimeClientConnection.qps" in answer.stderr


@pytest.fixture
def taken() -> Iterator[str]:
    """A port on 127.0.0.1 that somebody else listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield str(listener.getsockname()[1])


@pytest.mark.parametrize(
    ("command", "chosen_with"),
    [
        (["up", "--port", "PORT"], "--port"),
        (["up", "--dashboard-port", "PORT"], "--dashboard-port"),
        (["dashboard", "--port", "PORT"], "--port or --address"),
        (
            ["dashboard", "--port", "0", "--metrics-address", "127.0.0.1", "--metrics-port", "PORT"],
            "--metrics-port or --metrics-address",
        ),
        (
            ["grouper", "--metrics-address", "127.0.0.1", "--metrics-port", "PORT"],
            "--metrics-port or --metrics-address",
        ),
    ],
)
def test_a_port_in_use_is_said_with_what_chooses_another(
    command: list[str], chosen_with: str, taken: str, kubeconfig: str, tmp_path: Path
) -> None:
    """Whoever listens says which address and port is taken, and by which option there is another."""
    written = str(tmp_path / "of-up") if command[0] == "up" else kubeconfig
    given = [taken if each == "PORT" else each for each in command]
    answer = CliRunner().invoke(main, [*given, "--kubeconfig", written])

    assert answer.exit_code == 1
    assert f"127.0.0.1:{taken} is in use by another process; choose another with {chosen_with}\n" in answer.output
    assert "Errno" not in answer.output


async def test_an_address_that_is_none_of_this_machine_is_said() -> None:
    """A configuration's field is named as an option is."""
    server = HealthServer(CollectorRegistry(), host="192.0.2.1", port=7007, setting="server.metrics")
    with pytest.raises(CannotListen, match=r"192\.0\.2\.1:7007 is no address .* with server\.metrics$"):
        await server.start()
    await server.stop()
