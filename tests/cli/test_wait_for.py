"""The start-up init container ends when the cliques it waits for are ready, and not before."""

import asyncio
from pathlib import Path

import pytest
from click.testing import CliRunner

from spinney.api.core import POD
from spinney.cli import main
from spinney.cli.bodies.wait_for import wait_for_ready_pods
from spinney.kube.client import PatchKind
from tests.conftest import Cluster


async def a_pod(cluster: Cluster, name: str, clique: str, *, gang: str = "gang-0") -> None:
    labels = {"grove.io/podgang": gang, "grove.io/podclique": clique}
    manifest = {
        "metadata": {"name": name, "labels": labels},
        "spec": {"schedulerName": "nobody", "containers": [{"name": "main", "image": "pause"}]},
    }
    await cluster.client.create(POD, manifest, cluster.namespace)


async def make_ready(cluster: Cluster, name: str) -> None:
    patch = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    await cluster.client.patch(POD, name, patch, cluster.namespace, kind=PatchKind.STRATEGIC, subresource="status")


async def test_it_waits_for_the_minimum_of_each_clique(cluster: Cluster) -> None:
    """It ends with the ready pod that completes the last minimum; pods of other gangs do not count."""
    await a_pod(cluster, "leader-0", "set-0-leader")
    await a_pod(cluster, "worker-0", "set-0-worker")
    await a_pod(cluster, "worker-1", "set-0-worker")
    await a_pod(cluster, "stranger", "set-0-worker", gang="gang-1")
    waiting = asyncio.create_task(
        wait_for_ready_pods(
            cluster.client,
            cluster.runtime,
            namespace=cluster.namespace,
            gang="gang-0",
            minimums={"set-0-leader": 1, "set-0-worker": 2},
        )
    )

    for name in ("stranger", "leader-0", "worker-0"):
        await make_ready(cluster, name)
    done, _ = await asyncio.wait({waiting}, timeout=0.2)
    assert not done

    await make_ready(cluster, "worker-1")
    await waiting


@pytest.mark.parametrize("value", ["worker", "worker:", "worker:0", ":3", "worker:many"])
def test_a_malformed_clique_is_named(value: str) -> None:
    """A value that is not <clique>:<minimum> is refused, and the message repeats it."""
    answer = CliRunner().invoke(main, ["wait-for", "--podcliques", value])

    assert answer.exit_code == 2
    assert value in answer.output


def test_outside_a_pod_it_says_what_is_missing(tmp_path: Path) -> None:
    """Without the files the operator mounts, the message names the file and the option."""
    answer = CliRunner().invoke(main, ["wait-for", "-p", "worker:1", "--pod-info", str(tmp_path)])

    assert answer.exit_code == 1
    assert str(tmp_path / "namespace") in answer.output
    assert "--pod-info" in answer.output
