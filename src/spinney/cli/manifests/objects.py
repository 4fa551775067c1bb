"""Manifests given with ``-f``: files, directories or standard input, each object with the lines it was written in."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import yaml

from spinney.api.documents import Document, DocumentProblem, InvalidDocument, nearest, parse, parse_json
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.kube.client import Client
from spinney.kube.discovery import kinds_of

STDIN = Path("-")
_NAMED = ("apiVersion", "kind")
_SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True)
class Manifest:
    """One object as it was written."""

    document: Document

    @property
    def value(self) -> JSON:
        value: JSON = self.document.value
        return value

    @property
    def kind(self) -> str:
        return str(self.value["kind"])

    @property
    def api_version(self) -> str:
        return str(self.value["apiVersion"])

    @property
    def name(self) -> str:
        """Return its name; empty if it has none."""
        return str(self._metadata.get("name") or "")

    @property
    def namespace(self) -> str | None:
        """Return its namespace if it names one."""
        return self._metadata.get("namespace")

    @property
    def _metadata(self) -> JSON:
        """Return its metadata; whatever stands there instead is none."""
        found = self.value.get("metadata")
        return found if isinstance(found, dict) else {}

    def __str__(self) -> str:
        return f"{self.document.source}:{self.document.line()}: {self.kind} {self.name or 'without a name'}"


def read(files: tuple[Path, ...]) -> list[Manifest]:
    """Return every object in the order written; files that cannot be read end the command with their places."""
    found, problems = read_each(files)
    if problems:
        raise click.ClickException("\n".join(map(str, problems)))
    return found


def read_each(files: tuple[Path, ...]) -> tuple[list[Manifest], list[DocumentProblem]]:
    """Return every object in the order written, and what is wrong with files that hold none or cannot be read."""
    found: list[Manifest] = []
    problems: list[DocumentProblem] = []
    for path in (each for given in files for each in _inside(given)):
        try:
            found += [manifest for document in documents(*_text(path)) for manifest in _opened(document)]
        except InvalidDocument as error:
            problems += error.problems
    if not found and not problems:
        raise click.ClickException(
            f"{', '.join(map(str, files))}: no objects; expected Kubernetes manifests, YAML or JSON"
        )
    return found, problems


def read_named(files: tuple[Path, ...], done: str) -> list[Manifest]:
    """Return every object, each with a name; one without ends the command before anything is ``done``."""
    manifests = read(files)
    for manifest in manifests:
        if not manifest.name:
            raise click.ClickException(f"{manifest}: metadata.name is missing; an object is {done} by its name")
    return manifests


def namespace_for(manifest: Manifest, resource: Resource, chosen: str | None, otherwise: str) -> str | None:
    """Return where an object is; one in another namespace than was ``chosen`` with -n ends the command."""
    if not resource.namespaced:
        return None
    if chosen and manifest.namespace not in (None, chosen):
        raise click.ClickException(f"{manifest}: is in namespace {manifest.namespace}, and -n says {chosen}")
    return manifest.namespace or otherwise


async def resource_for(client: Client, manifest: Manifest) -> Resource:
    """Return how the cluster addresses a manifest's kind; one it does not serve ends the command."""
    version = manifest.api_version
    served = {each.kind: each for each in await kinds_of(client, version)}
    if manifest.kind in served:
        return served[manifest.kind]
    hint = nearest(manifest.kind, sorted(served)) if served else f"it serves nothing of {version}."
    raise click.ClickException(
        f"{manifest}: the cluster does not serve {version} {manifest.kind}; {hint} "
        "Its CRD may not be installed, or be older: 'spinney crds' prints ours."
    )


def _inside(path: Path) -> list[Path]:
    """Return the files that are meant by a path: itself, or those of a directory."""
    if path == STDIN or not path.is_dir():
        return [path]
    inside = sorted(each for each in path.iterdir() if each.suffix in _SUFFIXES)
    if not inside:
        raise click.ClickException(f"{path}: has no {', '.join(_SUFFIXES)} files")
    return inside


def _text(path: Path) -> tuple[str, str]:
    """Return what is in a file, and what the file is called."""
    if path == STDIN:
        return sys.stdin.read(), "standard input"
    try:
        return path.read_text(), str(path)
    except (OSError, UnicodeDecodeError) as error:
        message = f"cannot be read as text: {error}; YAML or JSON is expected"
        raise InvalidDocument([DocumentProblem(str(path), 1, "", message)]) from error


def documents(text: str, source: str) -> Iterator[Document]:
    """Yield each YAML document of a text with its lines as they are in the whole; raises :class:`InvalidDocument`."""
    as_json = parse_json(text, source)
    if as_json is not None:
        yield as_json
        return
    lines = text.splitlines(keepends=True)
    try:
        marks = [(node.start_mark.line, node.end_mark.line) for node in yaml.compose_all(text, yaml.SafeLoader) if node]
    except (yaml.YAMLError, RecursionError):
        yield parse(text, source)  # says where the fault is
        return
    for start, end in marks:
        last = end + 1 if end < len(lines) and not lines[end].startswith(("---", "...")) else end
        part = parse("\n" * start + "".join(lines[start : max(last, start + 1)]), source)
        if part.value is not None and part.value != {}:
            yield part


def _opened(document: Document) -> Iterator[Manifest]:
    """Yield the objects of a document: itself, or the items of a list."""
    value = document.value
    if not isinstance(value, dict) or not all(isinstance(value.get(key), str) and value[key] for key in _NAMED):
        raise InvalidDocument([document.problem((), "expected a Kubernetes object with apiVersion and kind")])
    if str(value["kind"]).endswith("List") and isinstance(value.get("items"), list):
        for number in range(len(value["items"])):
            yield from _opened(document.at("items", number))
        return
    yield Manifest(document)
