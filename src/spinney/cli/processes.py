"""Running a process against a cluster: its lease, its metrics, and an end that lets begun work finish."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from spinney.api.core import NODE, POD, Node, Pod
from spinney.api.resource import Resource
from spinney.cli.clusters.choosing import ClusterChoice
from spinney.cli.clusters.connecting import Connection, connected
from spinney.cli.options import METRICS_SETTING, ProcessOptions
from spinney.cli.running import in_one_line, until_told_to_go
from spinney.cli.terminal.output import echo
from spinney.kube.client import Client
from spinney.kube.guarding import ReadOnlyTransport
from spinney.kube.lease import LeaderElection, LeaseTimes, process_identity
from spinney.kube.manager import ComponentFailed, Manager
from spinney.kube.metrics import KubeMetrics
from spinney.runtime import settle_garbage_collector
from spinney.runtime.tasks import in_background

T = TypeVar("T")


@dataclass(frozen=True)
class ProcessLease:
    """The lease that a process must hold to write."""

    name: str
    namespace: str
    times: LeaseTimes = LeaseTimes()  # noqa: RUF009 - a frozen value


def run_process(
    options: ProcessOptions,
    component: str,
    run: Callable[[Manager], Awaitable[None]],
    *failures: type[Exception],
    read_only: bool = False,
) -> None:
    """Run a process on the chosen cluster until it is told to stop; ``failures`` of it become one line.

    One that is ``read_only`` writes nothing, and so needs no lease.
    """
    settle_garbage_collector()
    lease = ProcessLease(component, options.lease_namespace) if options.leader_elect and not read_only else None
    expected: tuple[type[Exception], ...] = (ComponentFailed, OSError, *failures)

    async def use(connection: Connection) -> None:
        client = connection.client
        if read_only:
            client = Client(ReadOnlyTransport(client.transport), client.runtime, field_manager=client.field_manager)
        manager = managed(client, lease=lease, endpoint=options.endpoint)
        try:
            await run(manager)
        finally:
            await manager.abandon()

    with in_one_line(*expected):
        until_told_to_go(connected(ClusterChoice(options.kubeconfig), use, field_manager=component))


async def loaded_meanwhile(
    manager: Manager, optional: Mapping[Resource, type[Any]], load: Callable[[], T]
) -> tuple[T, frozenset[Resource]]:
    """Load a scheduler, which takes longer than all else of a start, and begin to read what it will follow meanwhile.

    Pods and nodes are always read, ``optional`` kinds where they are served; those that are, are returned besides. An
    API server that is away is waited for.
    """
    manager.begin(POD, Pod)
    manager.begin(NODE, Node)
    async with in_background(_begin_when_reached(manager, optional)) as (reading,):
        return await manager.runtime.executor.run(load), await reading


async def _begin_when_reached(manager: Manager, optional: Mapping[Resource, type[Any]]) -> frozenset[Resource]:
    await manager.reach()
    return await manager.begin_served(optional)


def print_checked(config: Path | None, settings: object, *notes: str) -> None:
    """Say that a configuration is valid, and print what it comes to."""
    echo("\n".join(f"# {note}" for note in (f"{config or 'no file: defaults'}: valid.", *notes)))
    echo(yaml.safe_dump(msgspec.to_builtins(settings), sort_keys=False), nl=False)


def managed(
    client: Client,
    *,
    lease: ProcessLease | None,
    endpoint: tuple[str, int] | None,
    setting: str = METRICS_SETTING,
    linger_seconds: float = 0.0,
) -> Manager:
    """Compose what a process runs in; with a lease the manager's client writes nothing without holding it.

    ``endpoint`` is the address and port of metrics and probes, if they are served; ``setting`` is what chooses it.
    """
    runtime, metrics, election, health = client.runtime, KubeMetrics(), None, None
    client = client.measured(metrics.requests)
    if lease is not None:
        identity = process_identity(runtime)
        election = LeaderElection(
            client,
            lease.name,
            lease.namespace,
            identity=identity,
            runtime=runtime,
            times=lease.times,
            metrics=metrics,
        )
    if endpoint is not None:
        from spinney.kube.serving import HealthServer  # noqa: PLC0415 - brings a web server, only where it is asked for

        host, port = endpoint
        health = HealthServer(metrics.registry, host=host, port=port, setting=setting)
    return Manager(client, runtime, election=election, health=health, metrics=metrics, linger_seconds=linger_seconds)
