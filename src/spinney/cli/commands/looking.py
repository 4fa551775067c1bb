"""What can be seen of a cluster: gangs, nodes and queues, why one waits, and a snapshot or a record of all."""

from pathlib import Path
from typing import Final

import click

from spinney.cli.clusters import completing
from spinney.cli.options import (
    SECONDS,
    SEVERAL_FILES,
    WrittenPath,
    argument,
    cluster_options,
    from_option,
    meant,
    namespace_option,
    node_groups_option,
    output_option,
    plugin_option,
    scheduler_config_option,
    with_body,
)

_CALLED: Final = {
    "gangs": ("gangs", "gang", "podgangs", "podgang", "podgroups", "podgroup", "pg"),
    "sets": ("sets", "set", "pcs", "podcliquesets", "podcliqueset"),
    "nodes": ("nodes", "node", "no"),
}
WORDS: Final = {word: kind for kind, words in _CALLED.items() for word in words}
"""What can be listed, by every word people use for it."""
_LISTED_BY: Final = {
    **dict.fromkeys(("queues", "queue", "q"), "spinney queues"),
    **dict.fromkeys(("pods", "pod", "po"), "kubectl get pods"),
}
"""What lists other things that people ask for."""


class KindParameter(click.Choice[str]):
    """One of the words; a typo is answered with the nearest."""

    def __init__(self) -> None:
        super().__init__(list(WORDS), case_sensitive=False)

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str:
        """Return what to write; not every word there is."""
        return "Write what to list: gangs, sets or nodes."

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        found = WORDS.get(value.lower())
        if found is None:
            lists = _LISTED_BY.get(value.lower())
            hint = f"; '{lists}' does that." if lists else meant(value, WORDS)
            self.fail(f"{value!r} cannot be listed{hint} Gangs, sets and nodes can.", param, ctx)
        return found


@click.command()
@argument(
    "kind", metavar="gangs|sets|nodes", type=KindParameter(), meaning="What to list; singular and short words will do."
)
@argument("name", required=False, shell_complete=completing.listed, meaning="Only the one of this name.")
@namespace_option
@click.option("-A", "--all-namespaces", is_flag=True, help="Gangs and sets of all namespaces.")
@click.option("-w", "--watch", is_flag=True, help="Then print each row again when it changes, until Ctrl-C.")
@click.option("--singles", is_flag=True, help="Also pods that are in no gang.")
@cluster_options
@from_option
@output_option("table", "wide", "json", "yaml")
@with_body
def get() -> None:
    """List gangs (PodGangs, and PodGroups of every family), PodCliqueSets (sets), or nodes.

    Gangs are shown with where they are, over how many domains of the topology they spread, and what they wait for.
    On a terminal of fewer than 100 columns SPREAD is left out; -o wide has it.
    """


@click.command()
@click.option(
    "--resource", multiple=True, metavar="NAME", help="Only this resource: gpu, cpu, memory; may be repeated."
)
@cluster_options
@from_option
@scheduler_config_option
@output_option("table", "wide", "json", "yaml")
@with_body
def queues() -> None:
    """Show the queues: quota, limit, fair share, what is allocated and what is requested.

    The table shows GPUs, and what a queue is asked for beyond its limit; -o wide shows cpu and memory of all.
    """


@click.command()
@argument(
    "directory",
    type=WrittenPath(no_dash=SEVERAL_FILES, file_okay=False),
    meaning="Where to write; made if it is not there.",
)
@click.option("--every", default="60s", show_default=True, metavar="DURATION", help="How often to look.")
@click.option("--for", "lasting", metavar="DURATION", help="How long to record; until interrupted without it.")
@cluster_options
@with_body
def record() -> None:
    """Write what happens on a cluster to DIRECTORY, for 'spinney replay'.

    Reads only: a snapshot is taken every so often, and kept where it differs from the one before. Like 'spinney
    snapshot' it holds what scheduling reads and nothing else.
    """


@click.command()
@click.option(
    "-o",
    "--output",
    type=WrittenPath(dir_okay=False),
    default=Path("snapshot.json.gz"),
    show_default=True,
    help="File to write (mode 0600); - is standard output.",
)
@cluster_options
@with_body
def snapshot() -> None:
    """Write a snapshot of a cluster for 'spinney simulate' and '--from'.

    It holds what scheduling reads and nothing else: no secrets, no environment, no commands.
    """


@click.command()
@namespace_option
@cluster_options
@from_option
@click.option("--once", is_flag=True, help="Print one picture and end; the default without a terminal.")
@with_body
def top() -> None:
    """Watch a cluster: gangs with those that wait first, nodes, queues, and the racks as a picture.

    Arrows scroll, / searches, s sorts, enter opens the page of a gang or a node, tab is the next page, q ends it.
    Without -n the pods of all namespaces are shown.
    """


def _one_subject(context: click.Context, parameter: click.Parameter, words: tuple[str, ...]) -> str:
    """Return what is asked about; kind and name as two words are answered with how they are written."""
    if len(words) > 1:
        written = "/".join(words) if len(words) == len(("kind", "name")) else "KIND/NAME"
        raise click.BadParameter(f"one thing is asked about at a time: write {written}.", context, parameter)
    return words[0]


@click.command()
@argument(
    "subject",
    nargs=-1,
    required=True,
    callback=_one_subject,
    metavar="[KIND/]NAME",
    shell_complete=completing.subjects,
    meaning="What to explain: pod/NAME, podgang/NAME, pcs/NAME, pclq/NAME, pcsg/NAME, podgroup/NAME, queue/NAME, or "
    "just NAME.",
)
@namespace_option
@cluster_options
@from_option
@scheduler_config_option
@plugin_option
@node_groups_option
@click.option("-v", "--verbose", is_flag=True, help="Add what scheduler developers want to see: node sets.")
@click.option(
    "--best",
    type=click.IntRange(0),
    default=3,
    show_default=True,
    metavar="N",
    help="How many remedies to show; 0: none.",
)
@click.option(
    "--patience",
    type=SECONDS,
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to try changes at most; what was found by then is shown.",
)
@click.option(
    "--explanations",
    metavar="URL",
    help="The running scheduler's metrics endpoint: say where its last cycle and the simulation differ.",
)
@output_option("text", "json", "yaml")
@with_body
def why() -> None:
    """Say why a pod, gang, PodGroup, PodCliqueSet or queue waits.

    NAME may have its kind before it: pod/NAME, podgang/NAME, pcs/NAME, pclq/NAME, pcsg/NAME, podgroup/NAME, queue/NAME.
    The cluster is only read. Where another scheduler decides, the answer is a simulation with its rules, and says so.
    """
