"""Objects for cert-manager and the Prometheus operator are such as these accept: their published CRDs say so."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from spinney.api.apiextensions import CUSTOM_RESOURCE_DEFINITION
from spinney.api.struct import JSON
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.kube.errors import ApiError
from tests.conftest import Cluster

from .rendering import SYSTEM, printed, resource_of, system_namespace

CERT_MANAGER = "github.com/cert-manager/cert-manager@v1.18.2"
PROMETHEUS_OPERATOR = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
CRDS = {
    CERT_MANAGER: ("deploy/crds/crd-certificates.yaml", "deploy/crds/crd-issuers.yaml"),
    PROMETHEUS_OPERATOR: (
        "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
        "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
    ),
}
VALUES: JSON = {
    "coscheduler": {"enabled": True},
    "grouper": {"enabled": True},
    "metrics": {"serviceMonitor": {"enabled": True}, "prometheusRule": {"enabled": True}},
    "webhooks": {"certificate": {"certManager": {"enabled": True}}},
}


def published() -> Iterator[JSON]:
    """Yield the CRDs as their projects publish them, from the Go modules that carry them."""
    if shutil.which("go") is None:
        pytest.skip("NO GO: the CRDs of others come with Go modules")
    for module, files in CRDS.items():
        done = subprocess.run(["go", "mod", "download", "-json", module], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        for file in files:
            crd: JSON = yaml.safe_load((Path(json.loads(done.stdout)["Dir"]) / file).read_text(encoding="utf-8"))
            crd["metadata"] = {"name": crd["metadata"]["name"], "annotations": crd["metadata"].get("annotations", {})}
            yield crd


@pytest.mark.parametrize("cluster_name", [pytest.param("real", marks=pytest.mark.real)])
async def test_what_is_rendered_for_others_is_what_they_accept(cluster: Cluster, tmp_path: Path) -> None:
    """A real API server with the published CRDs takes each object whole: no unknown field, every rule kept."""
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(VALUES))
    groups = ("cert-manager.io", "monitoring.coreos.com")
    objects = [each for each in printed("--values", str(file)) if each["apiVersion"].startswith(groups)]
    assert {each["kind"] for each in objects} == {"Certificate", "Issuer", "ServiceMonitor", "PrometheusRule"}
    strict = Client(cluster.client.transport, cluster.runtime, field_validation="Strict")
    crds = await install_crds(cluster.client, list(published()))
    await system_namespace(cluster.client)
    try:
        for each in objects:
            await strict.create(resource_of(each), each)
            await cluster.client.delete(resource_of(each), each["metadata"]["name"], SYSTEM)
        wrong = {**objects[0], "spec": {**objects[0]["spec"], "nonsense": 1}}
        with pytest.raises(ApiError, match="nonsense"):
            await strict.create(resource_of(wrong), wrong)
    finally:
        for crd in crds:
            await cluster.client.delete(CUSTOM_RESOURCE_DEFINITION, crd["metadata"]["name"])
