"""A deployment as it is installed: how its process is called, and running that process as its account."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from spinney.api.struct import JSON
from tests.conftest import Cluster

from .rendering import SYSTEM


def args_of(objects: list[JSON], name: str) -> list[str]:
    """Return how a deployment's only container is called."""
    (deployment,) = [each for each in objects if each["kind"] == "Deployment" and each["metadata"]["name"] == name]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return list(container["args"])


def configuration_of(objects: list[JSON], name: str) -> str:
    """Return the configuration that a deployment mounts."""
    (deployment,) = [each for each in objects if each["kind"] == "Deployment" and each["metadata"]["name"] == name]
    volume = deployment["spec"]["template"]["spec"]["volumes"][0]
    wanted = volume["configMap"]["name"]
    (found,) = [each for each in objects if each["kind"] == "ConfigMap" and each["metadata"]["name"] == wanted]
    return str(found["data"]["config.yaml"])


@asynccontextmanager
async def deployed(cluster: Cluster, objects: list[JSON], name: str, log: Path) -> AsyncIterator[None]:
    """Run the process of the deployment outside the cluster, as the account it has inside."""
    assert cluster.plane is not None
    kubeconfig = cluster.plane.kubeconfig_for(f"system:serviceaccount:{SYSTEM}:{name}")
    configuration = log.with_name("mounted.yaml")
    configuration.write_text(configuration_of(objects, name))
    mounted = {"/etc/spinney/config.yaml": str(configuration), "--metrics-port=8080": "--metrics-port=0"}
    args = [mounted.get(arg, arg) for arg in args_of(objects, name)]
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            "from spinney.cli import main; main()",
            *args,
            "--kubeconfig",
            str(kubeconfig),
            stdout=out,
            stderr=out,
        )
    try:
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
