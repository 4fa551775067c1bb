"""Code that uses the official Python client (``pip install kubernetes``)."""

from kubernetes import client, config

from spinney.testing.kube_api import KubeApi


def label_of(core: client.CoreV1Api, namespace: str) -> str:
    """Return the team that a namespace belongs to: the code under test."""
    return str(core.read_namespace(namespace).metadata.labels["team"])


def test_the_team_of_a_namespace(kube_api: KubeApi) -> None:
    """The kubeconfig is all that the client needs."""
    with config.new_client_from_config(str(kube_api.kubeconfig)) as connection:
        core = client.CoreV1Api(connection)
        core.create_namespace({"metadata": {"name": "vision", "labels": {"team": "red"}}})
        assert label_of(core, "vision") == "red"
