"""``spinney get``: gangs of every family, PodCliqueSets and nodes, as schedulers see them."""

from typing import Final

import click

from spinney.cli.clusters import completing
from spinney.cli.options import (
    argument,
    cluster_options,
    from_option,
    meant,
    namespace_option,
    output_option,
    with_body,
)

WORDS: Final = {
    "gangs": "gangs",
    "gang": "gangs",
    "podgangs": "gangs",
    "podgang": "gangs",
    "podgroups": "gangs",
    "podgroup": "gangs",
    "pg": "gangs",
    "sets": "sets",
    "set": "sets",
    "pcs": "sets",
    "podcliquesets": "sets",
    "podcliqueset": "sets",
    "nodes": "nodes",
    "node": "nodes",
    "no": "nodes",
}
"""What can be listed, by every word people use for it."""


class KindParameter(click.Choice[str]):
    """One of the words; a typo is answered with the nearest."""

    def __init__(self) -> None:
        super().__init__(list(WORDS), case_sensitive=False)

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str:
        """Return what to write; not every word there is."""
        return "Write what to list: gangs, sets or nodes."

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return what is to be listed."""
        found = WORDS.get(value.lower())
        if found is None:
            self.fail(f"{value!r} cannot be listed{meant(value, WORDS)} Gangs, sets and nodes can.", param, ctx)
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
    """
