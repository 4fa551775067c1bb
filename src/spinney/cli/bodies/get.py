"""``spinney get``: gangs of every family, PodCliqueSets and nodes, as schedulers see them."""

from collections.abc import Sequence
from pathlib import Path

import click

from spinney.api.core import NODE
from spinney.api.grove import POD_CLIQUE_SET, PodCliqueSet
from spinney.api.labels import PART_OF
from spinney.api.quantity import value
from spinney.api.struct import JSON
from spinney.cli.clusters.choosing import ClusterChoice
from spinney.cli.clusters.reading import print_unseen, snapshot_of
from spinney.cli.options import meant
from spinney.cli.pictures.gpus import cpu_on
from spinney.cli.terminal.output import columns, echo, print_data, room_for, shortened
from spinney.gangs.sources.podgang import Workload
from spinney.sim.gang_table import GangLine, gang_lines
from spinney.sim.loading import inventory_of
from spinney.sim.snapshot import ClusterSnapshot

_GPU = "nvidia.com/gpu"
_PREFIX = "unschedulable on cluster: "
"""What every reason of the session scheduler begins with; the column says it already."""


def get(
    *,
    kind: str,
    name: str | None,
    namespace: str | None,
    all_namespaces: bool,
    singles: bool,
    kubeconfig: Path | None,
    context: str | None,
    from_file: Path | None,
    output: str,
) -> None:
    snapshot, here = snapshot_of(ClusterChoice(kubeconfig, context, namespace), from_file)
    here = None if all_namespaces else here
    match kind:
        case "gangs":
            lines = [
                each
                for each in gang_lines(snapshot, singles=singles)
                if _matches(each.namespace, each.name, here, name) or _is_of(each, here, name)
            ]
            if name is not None and not lines:
                raise click.ClickException(_missing("gang", name, here, [each.name for each in gang_lines(snapshot)]))
            _print(lines, _gang_rows(lines, wide=output == "wide", everywhere=here is None), output, "gangs")
        case "sets":
            _print_sets(snapshot, here, name, output)
        case _:
            _print_nodes(snapshot, name, output)
    print_unseen(snapshot)


def _matches(namespace: str, name: str, here: str | None, wanted: str | None) -> bool:
    return (here is None or namespace == here) and (wanted is None or name == wanted)


def _is_of(line: GangLine, here: str | None, wanted: str | None) -> bool:
    """Tell whether a gang was made for the workload that somebody names: train, or job/train."""
    if wanted is None or not line.workload or here not in (None, line.namespace):
        return False
    kind, _, name = wanted.rpartition("/")
    own = Workload(*line.workload.split("/", 1))
    return own.is_called(kind or own.kind, name)


def _print(data: object, table: tuple[list[str], list[list[object]]], output: str, what: str) -> None:
    if output in ("json", "yaml"):
        print_data({what: data}, output)
    elif table[1]:
        echo(columns(*table))
    else:
        echo(f"no {what} found", err=True)


def _missing(kind: str, name: str, here: str | None, known: Sequence[str]) -> str:
    where = f" in namespace {here}" if here is not None else ""
    return f"there is no {kind} {name!r}{where}{meant(name, known)} 'spinney get {kind}s -A' lists all."


def _gang_rows(lines: list[GangLine], *, wide: bool, everywhere: bool) -> tuple[list[str], list[list[object]]]:
    headings = ["NAME", "MIN", "PLACED", "READY", "STATE", "SPREAD"]
    rows: list[list[object]] = [
        [each.name, each.minimum, f"{each.placed}/{each.pods}", f"{each.ready}/{each.pods}", each.state, each.spread]
        for each in lines
    ]
    if any(each.workload for each in lines):
        headings = ["NAME", "OF", *headings[1:]]
        rows = [[row[0], each.workload, *row[1:]] for row, each in zip(rows, lines, strict=True)]
    if wide:
        headings += ["KIND", "SCHEDULER", "QUEUE", "NODES"]
        rows = [
            [*row, each.source, each.scheduler, each.queue, ", ".join(each.nodes)]
            for row, each in zip(rows, lines, strict=True)
        ]
    if everywhere:
        headings, rows = (
            ["NAMESPACE", *headings],
            [[each.namespace, *row] for row, each in zip(rows, lines, strict=True)],
        )
    reasons = [each.reason.removeprefix(_PREFIX) for each in lines]
    limit = max(map(len, reasons), default=0) if wide else room_for(headings, rows)
    rows = [[*row, shortened(reason, max(limit, 1))] for row, reason in zip(rows, reasons, strict=True)]
    return [*headings, "WAITS FOR"], rows


def _print_sets(snapshot: ClusterSnapshot, here: str | None, name: str | None, output: str) -> None:
    gangs = gang_lines(snapshot)
    parts = {
        (pod.metadata.namespace, pod.metadata.labels.get("grove.io/podgang")): pod.metadata.labels.get(PART_OF)
        for pod in snapshot.pods
    }
    data: list[JSON] = []
    rows: list[list[object]] = []
    for pcs in snapshot.of(POD_CLIQUE_SET, PodCliqueSet):
        namespace, own = pcs.metadata.namespace or "", pcs.metadata.name
        if not _matches(namespace, own, here, name):
            continue
        mine = [each for each in gangs if each.namespace == namespace and parts.get((namespace, each.name)) == own]
        pods, placed = sum(each.pods for each in mine), sum(each.placed for each in mine)
        waiting = [each.name for each in mine if each.state in ("pending", "gated")]
        rows.append([namespace, own, pcs.spec.replicas, len(mine), pods, placed, ", ".join(waiting)])
        data.append(
            {
                "namespace": namespace,
                "name": own,
                "replicas": pcs.spec.replicas,
                "pods": pods,
                "placed": placed,
                "gangs": mine,
            }
        )
    if name is not None and not data:
        known = [each.metadata.name for each in snapshot.of(POD_CLIQUE_SET, PodCliqueSet)]
        raise click.ClickException(_missing("set", name, here, known))
    headings = ["NAMESPACE", "NAME", "REPLICAS", "GANGS", "PODS", "PLACED", "GANGS THAT WAIT"]
    if here is not None:
        headings, rows = headings[1:], [row[1:] for row in rows]
    _print(data, (headings, rows), output, "sets")


def _print_nodes(snapshot: ClusterSnapshot, name: str | None, output: str) -> None:
    if snapshot.refused(NODE):
        raise click.ClickException("nodes may not be listed; ask for get and list on nodes")
    known = [each.metadata.name for each in snapshot.nodes]
    if name is not None and name not in known:
        raise click.ClickException(f"there is no node {name!r}{meant(name, known)} 'spinney get nodes' lists all.")
    table = inventory_of(snapshot).cluster.table
    column = table.axis.column(_GPU)
    data: list[JSON] = []
    rows: list[list[object]] = []
    for node in sorted(snapshot.nodes, key=lambda each: each.metadata.name):
        if name is not None and node.metadata.name != name:
            continue
        row = table.row(node.metadata.name)
        gpus, idle = value(node.status.allocatable.get(_GPU, 0)), int(table.idle[row, column])
        pods = int(table.used[row, table.axis.column("pods")])
        state = "cordoned" if node.spec.unschedulable else "ready" if node.ready else "not ready"
        taints = ", ".join(f"{taint.key}:{taint.effect}" for taint in node.spec.taints)
        cores, taken = cpu_on(node) / 1000, float(table.used[row, table.axis.column("cpu")]) / 1000
        rows.append([node.metadata.name, state, f"{gpus - idle}/{gpus}", f"{taken:g}/{cores:g}", pods, taints])
        data.append(
            {
                "name": node.metadata.name,
                "state": state,
                "gpus": gpus,
                "gpusUsed": gpus - idle,
                "cpu": cores,
                "cpuUsed": taken,
                "pods": pods,
            }
        )
    _print(data, (["NAME", "STATE", "GPUS", "CPU", "PODS", "TAINTS"], rows), output, "nodes")
