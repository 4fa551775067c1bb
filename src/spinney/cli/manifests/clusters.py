"""The file that describes a simulated cluster, read with its lines."""

from pathlib import Path

from spinney.backends.documents import DocumentProblem, InvalidDocument, decode, parse, steps
from spinney.nodes import ClusterSpec, InvalidClusterSpec


def read_cluster(path: Path) -> ClusterSpec:
    """Read a cluster; raises :class:`InvalidDocument` with file, line, field and the nearest word of each fault."""
    document = parse(path.read_text(), str(path))
    if isinstance(document.value, dict) and not document.value.get("nodes"):
        raise InvalidDocument([document.problem((), "describes no nodes; it needs a list 'nodes' with name and count")])
    spec = decode(ClusterSpec, document)
    try:
        spec.check(source="")
    except InvalidClusterSpec as error:
        field, _, message = str(error).removeprefix(": ").partition(": ")
        raise InvalidDocument([DocumentProblem(str(path), document.line(*steps(field)), field, message)]) from error
    return spec
