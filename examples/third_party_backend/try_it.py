"""Bring a PodCliqueSet up through the ACME backend, on a cluster inside this process.

The operator reads ``operator.yaml`` as it would in production and finds the backend by the entry point of the installed
package. Spinney's scheduler, told to answer to ACME's name, stands in for ACME. Time is virtual: this takes a second.
"""

import asyncio
import json
import logging
from pathlib import Path

import click
import structlog
import yaml
from acme_backend import ACME_GANG

from spinney.api.core import NAMESPACE, POD, Pod
from spinney.api.grove import POD_CLIQUE_SET
from spinney.backends import every_backend
from spinney.kube.crds import install_crds
from spinney.nodes import ClusterSpec
from spinney.nodes.spec import NodeGroup
from spinney.operator.configuration import load
from spinney.operator.operator import Settings
from spinney.runtime import Runtime, run_virtual
from spinney.scheduler.config import SchedulerConfig
from spinney.sim.embedded.stack import EmbeddedCluster, StackOptions

HERE = Path(__file__).parent
NODES = ClusterSpec(nodes=(NodeGroup(name="node-{index}", count=2, capacity={"cpu": "2", "memory": "4Gi"}),))


async def main() -> None:
    """Install ACME's CRD, start everything, apply the workload, and wait until its pods are ready."""
    configuration = load(HERE / "operator.yaml", every_backend())
    acme = SchedulerConfig(scheduler_names=("acme-scheduler",))
    options = StackOptions(nodes=NODES, operator=Settings.of(configuration), scheduler=acme)
    cluster = EmbeddedCluster(Runtime.virtual(seed=1), options)
    client = cluster.client
    async with cluster.server.running():
        await client.create(NAMESPACE, {"metadata": {"name": "trial"}})
        await install_crds(client, [yaml.safe_load((HERE / "crd.yaml").read_text())])
        async with cluster.stack.running(), asyncio.timeout(60):
            workload = yaml.safe_load((HERE / "workload.yaml").read_text())
            await client.create(POD_CLIQUE_SET, workload, "trial")
            ready: dict[str, Pod] = {}
            async for event in client.watch(POD, "trial", type=Pod):
                if event.object.is_true("Ready"):
                    ready[event.object.metadata.name] = event.object
                if len(ready) == 4:
                    break
            for name, pod in sorted(ready.items()):
                click.echo(f"{name} on {pod.spec.node_name}, placed by {pod.spec.scheduler_name}")
            for gang in (await client.list(ACME_GANG, "trial")).items:
                click.echo(f"AcmeGang {gang['metadata']['name']}: {json.dumps(gang['spec'], sort_keys=True)}")


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    run_virtual(main())
