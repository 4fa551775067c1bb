"""Names for shells to complete: gangs, sets, queues and pods of the chosen cluster, namespaces, contexts.

Only what is needed is listed, and for a few seconds: a user has pressed tab and waits. Whatever goes wrong means that
nothing is offered; a shell has no place for an error.
"""

import os
from pathlib import Path

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from spinney.cli.clusters.choosing import ClusterChoice
from spinney.cli.terminal.printable import printable


def contexts(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the contexts of the kubeconfig."""
    from spinney.cli.clusters import names  # noqa: PLC0415 - help must not wait for an HTTP stack

    return _offered(names.contexts(_path(context, "kubeconfig")), incomplete)


def namespaces(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the namespaces of the cluster."""
    from spinney.cli.clusters import names  # noqa: PLC0415

    return _offered(names.listed(_choice(context), names.NAMESPACES, incomplete), incomplete)


def subjects(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer what ``why`` can be asked about; pods only where the word says that one is meant."""
    from spinney.cli.clusters import names  # noqa: PLC0415

    word, slash, rest = incomplete.partition("/")
    found = names.subjects(_choice(context), word if slash else "", rest if slash else incomplete)
    return _offered([f"{word}/{each}" for each in found] if slash else found, incomplete)


def listed(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer names of what ``get`` lists."""
    from spinney.cli.clusters import names  # noqa: PLC0415

    word = {"gangs": "gang", "sets": "pcs", "nodes": "node"}.get(str(context.params.get("kind")), "gang")
    return _offered(names.subjects(_choice(context), word, incomplete), incomplete)


def nodes(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer names of nodes."""
    from spinney.cli.clusters import names  # noqa: PLC0415

    return _offered(names.subjects(_choice(context), "node", incomplete), incomplete)


def _offered(found: list[str], incomplete: str) -> list[CompletionItem]:
    """Return the names that begin so; none with control characters, which the shell would send to the terminal."""
    from spinney.cli.clusters.names import MOST  # noqa: PLC0415

    return [CompletionItem(name) for name in found if name.startswith(incomplete) and name == printable(name)][:MOST]


def _choice(context: click.Context) -> ClusterChoice:
    given = context.params
    file = _path(context, "from_file")
    return ClusterChoice(_path(context, "kubeconfig"), given.get("context"), given.get("namespace"), file)


def _path(context: click.Context, parameter: str) -> Path | None:
    """Return a file that an option names; for one that was refused, which click leaves out, a file with nothing."""
    found = context.params.get(parameter)
    if found is None and context.get_parameter_source(parameter) is ParameterSource.COMMANDLINE:
        return Path(os.devnull)
    return Path(found).expanduser() if found else None
