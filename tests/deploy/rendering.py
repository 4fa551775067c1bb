"""What the chart renders to, what ``spinney manifests`` prints, and how both are put into a cluster."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import yaml
from click.testing import CliRunner

from spinney.api.core import NAMESPACE
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.cli import main
from spinney.kube.client import Client
from tests.rights import until_bound

SYSTEM = "spinney-system"
ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "helm" / "spinney"


def rendered(helm: str, tmp_path: Path, values: JSON) -> list[JSON]:
    """Return the objects that the chart renders to with these values."""
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    command = [helm, "template", "spinney", str(CHART), "--namespace", SYSTEM, "--values", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def printed(*options: str) -> list[JSON]:
    """Return the objects that ``spinney manifests`` prints, without CRDs."""
    answer = CliRunner().invoke(main, ["manifests", "--no-crds", *options])
    assert answer.exit_code == 0, answer.output
    return [each for each in yaml.safe_load_all(answer.output) if each]


def names(objects: Sequence[JSON], kind: str) -> set[str]:
    return {each["metadata"]["name"] for each in objects if each["kind"] == kind}


async def system_namespace(client: Client) -> None:
    """Have the namespace that is installed into, once a former one of its name has ended."""
    while "deletionTimestamp" in (await client.apply(NAMESPACE, {"metadata": {"name": SYSTEM}}))["metadata"]:  # noqa: ASYNC110
        await asyncio.sleep(0.1)


@asynccontextmanager
async def installed(client: Client, objects: Sequence[JSON]) -> AsyncIterator[None]:
    """Have objects in a cluster, and the rights they give, for the time of the block.

    Their namespace stays, for it would take time to end.
    """
    await system_namespace(client)
    inside = [each for each in objects if each["kind"] != "Namespace"]
    for each in inside:
        await client.apply(resource_of(each), each)
    await until_bound(client, inside)
    yield
    for each in reversed(inside):
        await client.delete(resource_of(each), each["metadata"]["name"], each["metadata"].get("namespace"))


def resource_of(manifest: JSON) -> Resource:
    """Return the kind of an object, as this chart uses kinds."""
    group, _, version = manifest["apiVersion"].rpartition("/")
    kind = manifest["kind"]
    namespaced = kind not in {"Namespace", "ClusterRole", "ClusterRoleBinding"}
    plural = "networkpolicies" if kind == "NetworkPolicy" else f"{kind.lower()}s"
    return Resource(group, version, kind, plural, namespaced=namespaced)
