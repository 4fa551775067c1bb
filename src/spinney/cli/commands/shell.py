"""What is about this command itself."""

import click

import spinney
from spinney.cli.options import argument, with_body

SHELLS = ("bash", "zsh", "fish")


@click.command()
@argument("shell", type=click.Choice(SHELLS), meaning="The shell the script is for.")
@with_body
def completion() -> None:
    """Print a script that makes a shell complete commands, options and the names in your cluster.

    For bash put 'source <(spinney completion bash)' into ~/.bashrc, for zsh 'source <(spinney completion zsh)' into
    ~/.zshrc after compinit, for fish write it to ~/.config/fish/completions/spinney.fish.
    """


@click.command()
def version() -> None:
    """Print the version of Spinney."""
    click.echo(spinney.__version__)
