"""Files that describe nodes: those of an embedded cluster, and those that could be added to a cluster."""

from difflib import get_close_matches
from pathlib import Path

from spinney.api.documents import DocumentProblem, InvalidDocument, decode, parse, steps
from spinney.nodes import ClusterSpec, InvalidClusterSpec


def read_nodes(path: Path) -> ClusterSpec:
    """Read nodes; raises :class:`InvalidDocument` with file, line, field and the nearest word of each fault."""
    document = parse(path.read_text(), str(path))
    nodes = document.problem((), "describes no nodes; it needs a list 'nodes' with name and count")
    if isinstance(document.value, dict) and not get_close_matches("nodes", map(str, document.value)):
        raise InvalidDocument([nodes])  # it is something else, so that its keys are no misspelt ones
    spec = decode(ClusterSpec, document)
    if not spec.nodes:
        raise InvalidDocument([nodes])
    try:
        spec.check(source="")
    except InvalidClusterSpec as error:
        field, _, message = str(error).removeprefix(": ").partition(": ")
        raise InvalidDocument([DocumentProblem(str(path), document.line(*steps(field)), field, message)]) from error
    return spec
