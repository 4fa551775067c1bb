"""A controller in Go (``controller/main.go``), built and started as a process."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from spinney.testing.kube_api import KubeApi

CONTROLLER = Path(__file__).parent / "controller"


@pytest.fixture(scope="session")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program."""
    built = tmp_path_factory.mktemp("built") / "controller"
    subprocess.run(["go", "build", "-trimpath", "-o", built, "."], cwd=CONTROLLER, check=True)
    return built


@pytest.fixture
def running(controller: Path, kube_api: KubeApi) -> Iterator[None]:
    """The controller, from the beginning of a test to its end."""
    process = subprocess.Popen([controller], env=kube_api.environment)
    yield
    process.terminate()
    process.wait()


@pytest.mark.usefixtures("running")
def test_a_greeting_lives_as_long_as_its_owner(kube_api: KubeApi) -> None:
    """The controller makes what it should; what it owns is collected with the owner."""
    metadata = {"name": "a", "labels": {"greet": "world"}}
    kube_api.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    greeting = kube_api.client.wait_for("v1", "ConfigMap", "a-greeting", lambda seen: "data" in seen)
    assert greeting["data"] == {"text": "hello world"}
    kube_api.client.delete("v1", "ConfigMap", "a")
    kube_api.client.wait_until_gone("v1", "ConfigMap", "a-greeting")
