"""``spinney wait-for``: the start-up init container of a pod whose clique starts after others."""

from collections.abc import Mapping
from pathlib import Path

import click

from spinney.cli.options import TEXT_FILE, with_body

POD_INFO = Path("/var/grove/pod-info")


class Parents(click.ParamType[Mapping[str, int]]):
    """``<clique>:<minimum>``, several separated by commas."""

    name = "CLIQUE:MINIMUM"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Mapping[str, int]:
        """Read one option value."""
        minimums: dict[str, int] = {}
        for part in filter(None, value.split(",")):
            clique, _, minimum = part.rpartition(":")
            if not clique or not minimum.isdigit() or int(minimum) < 1:
                self.fail(f"{part!r} is not <clique>:<minimum> with a minimum of at least 1", param, ctx)
            minimums[clique] = int(minimum)
        return minimums


@click.command("wait-for")
@click.option(
    "-p", "--podcliques", type=Parents(), multiple=True, help="A clique to wait for and how many ready pods of it."
)
@click.option(
    "--pod-info",
    type=click.Path(path_type=Path, file_okay=False),
    default=POD_INFO,
    show_default=True,
    help="Directory with the files namespace and podgangname.",
)
@click.option("--kubeconfig", type=TEXT_FILE, help="Default: the pod's own service account.")
@with_body
def wait_for() -> None:
    """Wait until other cliques of this pod's gang have enough ready pods, then end."""
