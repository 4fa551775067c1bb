"""What a command reads: the chosen cluster, or a snapshot file that stands in for one."""

from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING

from spinney.api.core import NODE
from spinney.cli.clusters.choosing import ClusterChoice
from spinney.cli.running import in_one_line
from spinney.cli.terminal.logs import log_to_stderr
from spinney.cli.terminal.output import echo, progress
from spinney.runtime import collection_held_off
from spinney.runtime.tasks import together
from spinney.sim.snapshots.snapshot import KINDS, ClusterSnapshot, Unseen, take

if TYPE_CHECKING:
    from spinney.cli.clusters.connecting import Connection


async def _nothing_else(_: "Connection") -> None:
    """Read nothing besides the snapshot."""


def snapshot_of(
    choice: ClusterChoice,
    also: "Callable[[Connection], Coroutine[None, None, None]]" = _nothing_else,
) -> tuple[ClusterSnapshot, str | None]:
    """Return a snapshot of the chosen cluster or file, and the namespace to look in; ``None`` is all of them.

    ``also`` is called with the connection to a cluster, to read more from it meanwhile.
    """
    log_to_stderr()
    if choice.file is not None:
        from spinney.sim.snapshots.files import UnreadableSnapshot, read_snapshot  # noqa: PLC0415 - a cluster is no file

        with in_one_line(UnreadableSnapshot), progress(f"reading {choice.file}"):
            return read_snapshot(choice.file), choice.namespace

    from spinney.cli.clusters.connecting import with_cluster  # noqa: PLC0415 - a file needs no HTTP stack

    async def use(connection: "Connection") -> tuple[ClusterSnapshot, str | None]:
        with progress(f"reading {connection.source}", steps=len(KINDS)) as say:
            taking = take(
                connection.client,
                namespace=connection.namespace,
                source=connection.source,
                on_kind=lambda resource: say(f"reading {resource} of {connection.source}"),
            )
            with collection_held_off():  # all that is read stays
                snapshot, _ = await together(taking, also(connection))
        return snapshot, connection.namespace

    return with_cluster(choice, use)


def print_unseen(snapshot: ClusterSnapshot) -> None:
    """Say on standard error what the answer does not take into account."""
    if snapshot.unseen:
        echo("\nnot seen, so the answer may be incomplete:", err=True)
        for line in _grouped(snapshot.unseen):
            echo(f"  {line}", err=True)
        if snapshot.refused(NODE):
            echo("  docs/operate.md has a read-only role that sees all of it", err=True)


def _grouped(unseen: Iterable[Unseen]) -> list[str]:
    """Return a line per reason, with every kind it is the reason for."""
    kinds: dict[str, dict[str, None]] = {}
    for each in unseen:
        kinds.setdefault(each.reason, {})[each.what] = None
    return [
        f"{reason}: {', '.join(dict.fromkeys(what.partition('.')[0] for what in found))}"
        if reason.startswith("may not be listed")
        else f"{', '.join(found)}: {reason}"
        for reason, found in kinds.items()
    ]
