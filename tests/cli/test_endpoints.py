"""Processes listen where their options and their configuration say."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from spinney.cli import main
from spinney.kube.serving import HealthServer
from spinney.operator.operator import Operator

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

    def note(self: HealthServer, registry: Any, *, host: str = "", port: int = 8080) -> None:
        found.append((host, port))
        made(self, registry, host=host, port=port)

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
