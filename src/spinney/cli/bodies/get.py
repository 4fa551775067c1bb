"""``spinney get``: gangs of every family, PodCliqueSets and nodes, as schedulers see them."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import click

from spinney.api.core import EVENT, NODE
from spinney.api.events import Event
from spinney.api.grove import POD_CLIQUE_SET, PodCliqueSet
from spinney.api.labels import PART_OF
from spinney.api.labels import POD_GANG as GANG_LABEL
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.struct import JSON
from spinney.cli.clusters.choosing import ClusterChoice
from spinney.cli.clusters.following import following
from spinney.cli.clusters.reading import print_unseen, snapshot_of
from spinney.cli.options import meant
from spinney.cli.pictures.gpus import cpu_on
from spinney.cli.screens.content import node_state
from spinney.cli.terminal.output import columns, echo, is_narrow, print_data, room_for, shortened
from spinney.cluster.devices import gpus_on
from spinney.cluster.resources import GPU_NAME
from spinney.explain.amounts import first_few
from spinney.gangs.source_workloads import SourceWorkload, made_for
from spinney.kube.errors import Forbidden
from spinney.kube.keys import Key, key_of
from spinney.scheduler.intake.inventory import Inventory
from spinney.sim.advice.cut_names import cut, is_meant
from spinney.sim.advice.subjects import written_out
from spinney.sim.overview.gang_table import GangLine, gang_lines
from spinney.sim.overview.history import refusal_events
from spinney.sim.snapshots.snapshot import ClusterSnapshot, Unseen, forbidden
from spinney.sim.whatif.loading import inventory_of

if TYPE_CHECKING:
    from spinney.cli.clusters.connecting import Connection

_PREFIX = "unschedulable on cluster: "
"""What every refusal of the session scheduler begins with; the column says it already."""


class GetTable(NamedTuple):
    """What is listed: for people, and for programs."""

    headings: list[str]
    rows: list[list[object]]
    data: Sequence[object]


@dataclass(frozen=True)
class GetQuery:
    """What the user asked for."""

    kind: str
    name: str | None
    here: str | None
    """The namespace; ``None`` is all of them."""
    wide: bool
    singles: bool

    def listed(
        self, snapshot: ClusterSnapshot, gangs: Sequence[GangLine], inventory: Callable[[], Inventory]
    ) -> GetTable:
        match self.kind:
            case "gangs":
                return _gangs(snapshot, gangs, self)
            case "sets":
                return _sets(snapshot, gangs, self)
            case _:
                return _nodes(snapshot, inventory(), self)


def get(
    *,
    kind: str,
    name: str | None,
    all_namespaces: bool,
    singles: bool,
    choice: ClusterChoice,
    output: str,
    watch: bool,
) -> None:
    wide = output == "wide"
    if watch:
        if choice.file is not None or output in ("json", "yaml"):
            raise click.UsageError("--watch follows a cluster and prints a table; leave --from and -o json or yaml out")
        from spinney.cli.clusters.connecting import with_cluster  # noqa: PLC0415 - a file needs no HTTP stack

        with_cluster(
            choice,
            lambda connection: _follow(
                connection, GetQuery(kind, name, None if all_namespaces else connection.namespace, wide, singles)
            ),
        )
        return
    events: list[Event] = []
    unseen: list[Unseen] = []

    async def read_refusals(connection: "Connection") -> None:
        try:
            events.extend(await refusal_events(connection.client, None if all_namespaces else connection.namespace))
        except Forbidden as refusal:
            unseen.append(forbidden(EVENT, refusal))

    snapshot, here = snapshot_of(choice, also=read_refusals) if kind == "gangs" else snapshot_of(choice)
    snapshot = replace(snapshot, objects={**snapshot.objects, EVENT: tuple(events)}, unseen=(*snapshot.unseen, *unseen))
    asked = GetQuery(kind, name, None if all_namespaces else here, wide, singles)
    gangs = gang_lines(snapshot, singles=singles) if kind != "nodes" else []
    table = asked.listed(snapshot, gangs, lambda: inventory_of(snapshot))
    if name is not None and not table.rows:
        raise click.ClickException(_missing(asked, snapshot, gangs))
    if output in ("json", "yaml"):
        print_data({kind: table.data}, output)
    elif table.rows:
        echo(columns(table.headings, table.rows))
    else:
        echo(f"no {kind} found{_where(asked)}{_elsewhere(asked, snapshot, gangs)}", err=True)
    print_unseen(snapshot)


async def _follow(connection: "Connection", asked: GetQuery) -> None:
    """Print the table, then each row that changed, until cancelled."""
    shown: dict[tuple[object, ...], list[object]] = {}
    columns_of_name = 2 if asked.here is None and asked.kind != "nodes" else 1
    async with following(connection) as cluster:
        print_unseen(cluster.snapshot())
        async for snapshot in cluster.states():
            gangs = cluster.gangs(snapshot, singles=asked.singles)
            table = asked.listed(snapshot, gangs, lambda: cluster.inventory)
            heading, *lines = columns(table.headings, table.rows).splitlines()
            if not shown and table.rows:
                echo(heading)
            now: dict[tuple[object, ...], list[object]] = {}
            for line, row, found in zip(lines, table.rows, table.data, strict=True):
                key = tuple(row[:columns_of_name])
                if isinstance(found, GangLine):  # what it is called depends on the others
                    key = found.namespace, found.name, found.source
                now[key] = row
                if shown.get(key) != row:
                    echo(line)
            for key in shown.keys() - now.keys():
                echo(f"{'/'.join(map(str, shown[key][:columns_of_name]))} is gone")
            shown = now


def _is_of(line: GangLine, wanted: str | None, made: Mapping[Key, PodGang]) -> bool:
    """Tell whether a gang is made for the workload that the user names: train, job/train, or what owns that."""
    if wanted is None or not line.workload:
        return False
    kind, _, name = wanted.rpartition("/")
    kind = written_out(kind)
    own = SourceWorkload(*line.workload.split("/", 1))
    gang = made.get(Key(line.namespace, line.name))
    return own.is_called(kind, name) or (gang is not None and made_for(gang, kind, name) is not None)


def _missing(asked: GetQuery, snapshot: ClusterSnapshot, gangs: Sequence[GangLine]) -> str:
    kind, name = asked.kind.removesuffix("s"), asked.name or ""
    if asked.kind == "nodes":
        known = [each.metadata.name for each in snapshot.nodes]
        return f"there is no node {name!r}{meant(name, known)} 'spinney get nodes' lists all."
    missing = f"there is no {kind} {name!r}{_where(asked)}"
    if elsewhere := _elsewhere(asked, snapshot, gangs):
        return missing + elsewhere
    objects = snapshot.of(POD_CLIQUE_SET, PodCliqueSet)
    names = [(each.namespace, each.name) for each in gangs] if asked.kind == "gangs" else list(map(key_of, objects))
    known = [own for namespace, own in names if asked.here in (None, namespace)]
    return f"{missing}{meant(name, known)} 'spinney get {kind}s -A' lists all."


def _where(asked: GetQuery) -> str:
    return f" in namespace {asked.here}" if asked.here is not None and asked.kind != "nodes" else ""


def _elsewhere(asked: GetQuery, snapshot: ClusterSnapshot, gangs: Sequence[GangLine]) -> str:
    """Return in which other namespaces there is what was not found in one, as the end of a sentence."""
    if not _where(asked):
        return ""
    wanted = replace(asked, here=None)
    found = _gangs(snapshot, gangs, wanted) if asked.kind == "gangs" else _sets(snapshot, gangs, wanted)
    namespaces = sorted({str(row[0]) for row in found.rows})
    if not namespaces:
        return ""
    noun = "namespace" if len(namespaces) == 1 else "namespaces"
    there = "there is one" if asked.name is not None else f"{asked.kind} are"
    return f"; {there} in {noun} {first_few(namespaces)}: pass -n {namespaces[0]}, or -A for all"


def _gangs(snapshot: ClusterSnapshot, gangs: Sequence[GangLine], asked: GetQuery) -> GetTable:
    made = {key_of(each): each for each in snapshot.of(POD_GANG, PodGang)}
    lines = [
        each
        for each in gangs
        if asked.here in (None, each.namespace)
        and (asked.name is None or is_meant(each.name, asked.name) or _is_of(each, asked.name, made))
    ]
    narrow = is_narrow() and not asked.wide
    name_of = _short_names(lines) if narrow else {}
    shown: list[tuple[str, bool, Callable[[GangLine], object]]] = [
        ("NAMESPACE", asked.here is None, lambda each: each.namespace),
        ("NAME", True, lambda each: name_of.get((each.namespace, each.name), each.name)),
        ("OF", not narrow and any(each.workload for each in lines), lambda each: each.workload),
        ("MIN", True, lambda each: each.minimum),
        ("PLACED", True, lambda each: f"{each.placed}/{each.pods}"),
        ("READY", True, lambda each: f"{each.ready}/{each.pods}"),
        ("STATE", True, lambda each: each.state),
        ("SPREAD", not narrow, lambda each: each.spread),
        ("KIND", asked.wide, lambda each: each.source),
        ("SCHEDULER", asked.wide, lambda each: each.scheduler),
        ("QUEUE", asked.wide, lambda each: each.queue),
        ("NODES", asked.wide, lambda each: ", ".join(each.nodes)),
    ]
    headings = [heading for heading, wanted, _ in shown if wanted]
    rows = [[cell(each) for _, wanted, cell in shown if wanted] for each in lines]
    reasons = [each.reason.replace(_PREFIX, "", 1) for each in lines]
    limit = max(map(len, reasons), default=0) if asked.wide else room_for(headings, rows)
    rows = [[*row, shortened(reason, max(limit, 1))] for row, reason in zip(rows, reasons, strict=True)]
    return GetTable([*headings, "WAITS FOR"], rows, lines)


def _short_names(lines: Sequence[GangLine]) -> Mapping[tuple[str, str], str]:
    """Return what gangs are called where there is little room: the workload that has no other gang, or a cut name."""
    gangs_of = Counter((each.namespace, each.workload) for each in lines)
    short = cut({each.name for each in lines})
    return {
        (each.namespace, each.name): each.workload
        if each.workload and gangs_of[each.namespace, each.workload] == 1
        else short[each.name]
        for each in lines
    }


def _sets(snapshot: ClusterSnapshot, gangs: Sequence[GangLine], asked: GetQuery) -> GetTable:
    parts = {
        (pod.metadata.namespace, pod.metadata.labels.get(GANG_LABEL)): pod.metadata.labels.get(PART_OF)
        for pod in snapshot.pods
    }
    data: list[JSON] = []
    rows: list[list[object]] = []
    for pcs in snapshot.of(POD_CLIQUE_SET, PodCliqueSet):
        namespace, own = key_of(pcs)
        if asked.here not in (None, namespace) or asked.name not in (None, own):
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
    headings = ["NAMESPACE", "NAME", "REPLICAS", "GANGS", "PODS", "PLACED", "GANGS THAT WAIT"]
    if asked.here is not None:
        headings, rows = headings[1:], [row[1:] for row in rows]
    return GetTable(headings, rows, data)


def _nodes(snapshot: ClusterSnapshot, inventory: Inventory, asked: GetQuery) -> GetTable:
    if snapshot.refused(NODE):
        raise click.ClickException("nodes may not be listed; ask for get and list on nodes")
    table = inventory.cluster.table
    column = table.axis.column(GPU_NAME)
    data: list[JSON] = []
    rows: list[list[object]] = []
    for node in sorted(snapshot.nodes, key=lambda each: each.metadata.name):
        if asked.name not in (None, node.metadata.name):
            continue
        row = table.row(node.metadata.name)
        gpus, idle = gpus_on(node), int(table.idle[row, column])
        pods = int(table.used[row, table.axis.column("pods")])
        state = node_state(node)
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
    return GetTable(["NAME", "STATE", "GPUS", "CPU", "PODS", "TAINTS"], rows, data)
