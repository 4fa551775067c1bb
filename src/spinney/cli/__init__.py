"""What people touch: the ``spinney`` command. Sub-commands are imported only when they are used."""

import click

from spinney import __version__

__all__ = ["main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="spinney")
def main() -> None:
    """Gang scheduling for AI workloads on Kubernetes."""
