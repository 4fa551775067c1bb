"""What we ship is accepted by a real API server: the generated CRDs, and the workloads written for them."""

from pathlib import Path

import pytest
import yaml

from spinney.api.resource import Resource
from spinney.api.schema.crd import manifests
from spinney.api.struct import JSON, encode
from spinney.kube.crds import CRD, CrdRefused, condition_of, install_crds
from spinney.kube.errors import ApiError
from tests.conftest import Cluster

REPOSITORY = Path(__file__).resolve().parents[2]
CRDS = manifests()
WORKLOADS = [
    (path.name, document)
    for directory in (REPOSITORY / "examples", REPOSITORY / "tests" / "data" / "workloads")
    for path in sorted(directory.glob("**/*.yaml"))
    for document in yaml.safe_load_all(path.read_text())
    if document
]

CLAIM_TEMPLATE = Resource("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates")


def test_there_are_manifests() -> None:
    """The directory of CRDs is found and not empty, so that the tests below test something."""
    assert len(CRDS) >= 5


async def test_every_crd_is_established_and_structural(cluster: Cluster) -> None:
    """Each generated CRD is served, and the API server finds nothing wrong with its schema."""
    for crd in await install_crds(cluster.client):
        name = crd["metadata"]["name"]
        established = condition_of(crd, "Established")
        assert established is not None, name
        assert established["status"] == "True", name
        faults = condition_of(crd, "NonStructuralSchema")
        assert faults is None or faults["status"] == "False", f"{name}: {faults}"


async def test_installing_twice_changes_nothing(cluster: Cluster) -> None:
    """A second installation of the same CRDs leaves them as they are."""
    first = await install_crds(cluster.client)
    second = await install_crds(cluster.client)
    assert [crd["metadata"]["generation"] for crd in second] == [crd["metadata"]["generation"] for crd in first]


async def test_every_workload_is_accepted(cluster: Cluster) -> None:
    """Each object of each workload passes the API server's strict validation."""
    crds = await install_crds(cluster.client)
    served = [CLAIM_TEMPLATE, *(_resource(crd, version) for crd in crds for version in _versions(crd))]
    resources = {(resource.api_version, resource.kind): resource for resource in served}
    faults = []
    for source, document in WORKLOADS:
        resource = resources.get((document.get("apiVersion"), document.get("kind")))
        if resource is None:
            continue
        try:
            await _create_strictly(cluster, resource, document)
        except ApiError as fault:
            faults.append(f"{source}: {fault}")
    assert faults == []


async def _create_strictly(cluster: Cluster, resource: Resource, document: JSON) -> None:
    """Create without storing; a field the API server does not know is an error."""
    metadata = {key: value for key, value in document["metadata"].items() if key != "namespace"}
    namespace = cluster.namespace if resource.namespaced else None
    query = {"dryRun": "All", "fieldValidation": "Strict"}
    await cluster.client.raw(
        "POST", resource.path(namespace), query=query, body=encode({**document, "metadata": metadata})
    )


def _versions(crd: JSON) -> list[str]:
    return [version["name"] for version in crd["spec"]["versions"] if version["served"]]


def _resource(crd: JSON, version: str) -> Resource:
    spec = crd["spec"]
    names = spec["names"]
    return Resource(spec["group"], version, names["kind"], names["plural"], namespaced=spec["scope"] == "Namespaced")


@pytest.mark.parametrize("cluster_name", [pytest.param("real", marks=pytest.mark.real)], indirect=True)
async def test_a_crd_whose_names_are_taken_is_told(cluster: Cluster) -> None:
    """A CRD that claims another one's kind is never served, and the installation says why instead of waiting."""
    first, second = (_small_crd(plural, kind="Oak") for plural in ("oaks", "otheroaks"))
    await install_crds(cluster.client, [first])
    try:
        with pytest.raises(CrdRefused, match=r"otheroaks\.spinney\.example: .*Conflict"):
            await install_crds(cluster.client, [second])
    finally:
        for plural in ("oaks", "otheroaks"):
            await cluster.client.delete(CRD, f"{plural}.spinney.example")


def _small_crd(plural: str, *, kind: str) -> JSON:
    schema = {"openAPIV3Schema": {"type": "object"}}
    return {
        "metadata": {"name": f"{plural}.spinney.example"},
        "spec": {
            "group": "spinney.example",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
