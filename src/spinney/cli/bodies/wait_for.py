"""``spinney wait-for``: the start-up init container of a pod whose clique starts after others.

It reads its namespace and gang from the files the operator mounts, watches the gang's pods, and ends when every parent
clique has its minimum of ready pods. It has no time-out: the gang's own termination delay bounds a start that never
comes.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import click

from spinney.api.core import POD, Pod
from spinney.api.labels import POD_CLIQUE, POD_GANG
from spinney.cli.clusters.choosing import ClusterChoice
from spinney.cli.clusters.connecting import Connection, with_cluster
from spinney.kube.cache import WatchCache, kept_up
from spinney.kube.client import Client
from spinney.runtime import Runtime


def wait_for(podcliques: tuple[Mapping[str, int], ...], pod_info: Path, kubeconfig: Path | None) -> None:
    minimums = {clique: minimum for parents in podcliques for clique, minimum in parents.items()}
    namespace, gang = _read(pod_info / "namespace"), _read(pod_info / "podgangname")

    async def wait(connection: Connection) -> None:
        client = connection.client
        await wait_for_ready_pods(client, client.runtime, namespace=namespace, gang=gang, minimums=minimums)

    with_cluster(ClusterChoice(kubeconfig), wait)


async def wait_for_ready_pods(
    client: Client, runtime: Runtime, *, namespace: str, gang: str, minimums: Mapping[str, int]
) -> None:
    """Return when each clique has that many ready pods in the gang."""
    pods = WatchCache(client, POD, Pod, runtime=runtime, namespace=namespace, label_selector=f"{POD_GANG}={gang}")
    changed = asyncio.Event()
    pods.subscribe(lambda _: changed.set())
    async with kept_up(pods):
        while _lacks_pods(pods, minimums):
            changed.clear()
            await changed.wait()


def _lacks_pods(pods: WatchCache[Pod], minimums: Mapping[str, int]) -> bool:
    ready = [pod.metadata.labels.get(POD_CLIQUE) for pod in pods.values() if pod.is_true("Ready")]
    return any(ready.count(clique) < minimum for clique, minimum in minimums.items())


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError as error:
        raise click.ClickException(
            f"{path} cannot be read ({error.strerror}): this command runs in a pod the operator made, "
            "or with --pod-info naming a directory that has the file"
        ) from error
