"""An operator that is written with kopf (``pip install kopf``)."""

import pytest
from kopf.testing import KopfRunner

from spinney.testing.kube_api import KubeApi

OPERATOR = """
import kopf

@kopf.on.login()
def login(**arguments):
    return kopf.login_with_kubeconfig(**arguments)

@kopf.on.create("configmaps", labels={"greet": kopf.PRESENT})
def greet(labels, patch, **_):
    patch.setdefault("data", {})["text"] = "hello " + labels["greet"]
"""


def test_a_config_map_is_greeted(
    kube_api: KubeApi, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The runner of kopf has the operator in a thread; the operator finds the API by KUBECONFIG."""
    operator = tmp_path_factory.mktemp("operator") / "operator.py"
    operator.write_text(OPERATOR)
    monkeypatch.setenv("KUBECONFIG", str(kube_api.kubeconfig))
    with KopfRunner(["run", "--namespace=default", "--standalone", str(operator)], timeout=60) as runner:
        metadata = {"name": "a", "labels": {"greet": "world"}}
        kube_api.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        greeted = kube_api.client.wait_for("v1", "ConfigMap", "a", lambda seen: "data" in seen)
    assert greeted["data"] == {"text": "hello world"}
    assert runner.exception is None
