"""The fixture alone: objects, custom kinds, and workloads that run on simulated nodes."""

import pytest

from spinney.kube.errors import Invalid
from spinney.testing.kube_api import KubeApi

WIDGETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer, minimum: 1}}}
"""
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "nginx:1.29"}]}
"""


def test_custom_kinds_are_validated(kube_api: KubeApi) -> None:
    """What the schema forbids is refused, with the field."""
    kube_api.client.apply(WIDGETS)
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 0}}
    with pytest.raises(Invalid, match=r"spec\.size"):
        kube_api.client.create(widget)


@pytest.mark.kube_api(nodes=3)
def test_a_deployment_runs(kube_api: KubeApi) -> None:
    """With nodes, pods are made, placed and run."""
    kube_api.client.apply(WEB)
    kube_api.client.wait_for("apps/v1", "Deployment", "web", lambda web: web["status"].get("readyReplicas") == 3)
    phases = [pod["status"]["phase"] for pod in kube_api.client.list("v1", "Pod", labels="app=web")]
    assert phases == ["Running"] * 3
