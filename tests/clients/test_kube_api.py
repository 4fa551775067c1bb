"""A Kubernetes API of its own for a test: what is left when it ends, and what is said when it cannot begin."""

from pathlib import Path

import pytest

from spinney.server import ServerOptions
from spinney.testing.blocking_client import UnknownKind
from spinney.testing.kube_api import KubeApi


def _config(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def test_one_sees_nothing_of_another() -> None:
    """Two at the same time share nothing, and of one that ended nothing is left."""
    with KubeApi() as one, KubeApi() as other:
        one.client.create(_config("mine"))
        assert "mine" not in {each["metadata"]["name"] for each in other.client.list("v1", "ConfigMap")}
        assert one.url != other.url
    assert not one.kubeconfig.exists()
    assert not other.kubeconfig.exists()


def test_what_keeps_it_from_starting_is_raised(tmp_path: Path) -> None:
    """A data directory that is a file is the error of the test, not of a thread."""
    (tmp_path / "data").write_text("")
    with pytest.raises(OSError, match="data"):
        KubeApi(options=ServerOptions(data_directory=tmp_path / "data")).start()


def test_waiting_ends_with_what_is_there() -> None:
    """A wait that is over says what it waited for and what there is instead; an unknown kind says what to do."""
    with KubeApi() as api:
        api.client.create(_config("a"))
        with pytest.raises(TimeoutError, match=r"(?s)ConfigMap a, which is:.*name: a"):
            api.client.wait_for("v1", "ConfigMap", "a", lambda seen: "data" in seen, timeout=0.5)
        with pytest.raises(TimeoutError, match="ConfigMap b, which is not there"):
            api.client.wait_for("v1", "ConfigMap", "b", bool, timeout=0.01)
        with pytest.raises(UnknownKind, match="CustomResourceDefinition"):
            api.client.list("example.com/v1", "Widget")


def test_roles_decide_where_they_are_asked_for() -> None:
    """With RBAC the administrator of the kubeconfig goes on doing everything, in a cluster that has its roles."""
    with KubeApi(options=ServerOptions(authorization="RBAC")) as api:
        assert api.client.get("rbac.authorization.k8s.io/v1", "ClusterRole", "cluster-admin")
        api.client.apply("{apiVersion: v1, kind: Namespace, metadata: {name: team}}")
        api.client.delete("v1", "Namespace", "team")
        api.client.wait_until_gone("v1", "Namespace", "team")
