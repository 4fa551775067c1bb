"""Files that somebody else wrote: they are read or refused in a sentence, and never harm who reads them."""

import gzip
import json
import os
import re
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import structlog
import yaml
from click.testing import CliRunner

import spinney.cli
from spinney.api import yaml_text
from spinney.api.struct import JSON
from spinney.cli import main
from spinney.cli.terminal.logs import log_to_stderr
from spinney.cli.terminal.printable import printable
from spinney.runtime.private_files import write_private
from spinney.sim.snapshots import files as snapshot_files
from spinney.sim.snapshots.files import FORMAT, UnreadableSnapshot, read_snapshot, write_snapshot
from spinney.sim.snapshots.snapshot import ClusterSnapshot

DEEP = '{"a":' * 100_000 + "1" + "}" * 100_000
ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"


_READER = """
import sys
from pathlib import Path
from spinney.sim.snapshots.files import UnreadableSnapshot, read_snapshot

for path in sys.argv[1:]:
    try:
        read_snapshot(Path(path))
    except UnreadableSnapshot as error:
        print(error)
"""


def a_node(**metadata: object) -> JSON:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", **metadata}}


def _zipped(path: Path, content: str) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("snapshot.json", content)


def test_nesting_does_not_kill_the_process(tmp_path: Path) -> None:
    """A file nested a hundred thousand deep, in whatever form, is refused in a sentence."""
    forms = {
        "list.json": "[" * 100_000 + "]" * 100_000,
        "node.json": f'{{"apiVersion":"v1","kind":"Node","metadata":{DEEP}}}',
        "flow.yaml": "apiVersion: v1\nkind: Node\nmetadata: " + "{a: " * 50_000 + "1" + "}" * 50_000,
        "own.json": f'{{"format":"{FORMAT}","objects":[{{"apiVersion":"v1","kind":"Node","spec":{DEEP}}}]}}',
    }
    for name, text in forms.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "own.gz").write_bytes(gzip.compress(forms["own.json"].encode()))
    _zipped(tmp_path / "kai.zip", f'{{"rawObjects":{{"nodes":[{DEEP}]}}}}')
    paths = sorted(tmp_path.iterdir())
    ended = subprocess.run([sys.executable, "-c", _READER, *paths], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout.count("nested deeper")) == (0, len(paths)), ended


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a0: &a0 [x,x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1},*a{i - 1}]\n" for i in range(1, 40)), "stand for more"),
        ("a: &a [*a]", "stands in what it stands for"),
        ("a: .inf", "not a number that JSON has"),
        ("a: " + "9" * 5000, "digits"),
        ("? [a]\n: b", "unhashable|text"),
    ],
)
def test_text_that_becomes_something_else_is_refused(text: str, message: str) -> None:
    """Aliases of aliases, circles, and numbers that JSON does not have are no YAML here."""
    with pytest.raises(yaml.YAMLError, match=message):
        yaml_text.load(text)


def test_aliases_that_people_write_are_read() -> None:
    """An anchor that is used twice stands for the same twice, and a merge key merges."""
    found = yaml_text.load("a: &a {x: 1}\nb: *a\nc: {<<: *a, y: 2}")
    assert found == {"a": {"x": 1}, "b": {"x": 1}, "c": {"x": 1, "y": 2}}


def test_a_little_that_becomes_a_lot_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A packed file that grows beyond what any snapshot does is refused before it fills the memory."""
    monkeypatch.setattr(snapshot_files, "_ALWAYS_UNPACKED", 1 << 20)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b" " * (8 << 20)))
    _zipped(tmp_path / "bomb.zip", " " * (8 << 20))
    for name in ("bomb.gz", "bomb.zip"):
        with pytest.raises(UnreadableSnapshot, match="which no snapshot of a cluster does"):
            read_snapshot(tmp_path / name)


def a_hostile_cluster(path: Path) -> None:
    """Write a cluster in which everything that has a name or a message has escape sequences in it."""
    name = f"x{ESCAPES}"
    grouped = {"kai.scheduler/queue": name, "pod-group-name": name}
    pod: JSON = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": name, "labels": grouped, "annotations": grouped},
        "spec": {"schedulerName": "spinney-scheduler", "containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "message": name}]},
    }
    bound = {**pod, "metadata": {**pod["metadata"], "name": f"y{ESCAPES}"}, "spec": {**pod["spec"], "nodeName": name}}
    bounds = {"quota": 0, "limit": -1, "overQuotaWeight": 1}
    queue = {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"resources": {"gpu": bounds, "cpu": bounds, "memory": bounds}},
    }
    group = {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": name},
        "spec": {"minMember": 3, "queue": name},
    }
    path.write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [a_node(name=name), pod, bound, queue, group]})
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["simulate"],
        ["get", "nodes", "--from"],
        ["top", "--once", "--from"],
        ["plan", "defrag", "--nodes", "1", "--from"],
        ["why", "queue/q", "--from"],
    ],
    ids=" ".join,
)
def test_an_amount_that_is_none_is_said_with_its_place(tmp_path: Path, arguments: list[str]) -> None:
    """Every command that reads a cluster of a file names file, object and field of what is no quantity."""
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({**a_node(), "status": {"capacity": {"cpu": "banana"}}}))
    answer = CliRunner().invoke(main, [*arguments, str(path)])
    assert answer.exit_code == 1
    assert f"{path}: Node n1: status.capacity[cpu]: 'banana' is not a quantity" in answer.output


def test_names_do_nothing_to_the_terminal(tmp_path: Path) -> None:
    """Escape sequences in names and messages are shown, not sent: in tables, pictures, answers and errors."""
    path, wrong = tmp_path / "cluster.json", tmp_path / f"wrong{ESCAPES}.json"
    a_hostile_cluster(path)
    wrong.write_text(json.dumps({**a_node(), "kind": f"Node{ESCAPES}"}))
    name, source = f"x{ESCAPES}", ["--from", str(path)]
    for arguments in (
        *(
            ["get", kind, *source, *more]
            for kind in ("nodes", "gangs")
            for more in ([], ["-o", "json"], ["-o", "yaml"])
        ),
        ["queues", *source],
        ["queues", *source, "-o", "wide"],
        ["top", "--once", *source],
        ["simulate", str(path)],
        ["simulate", str(path), "-o", "json"],
        ["simulate", str(wrong)],
        ["why", f"pod/{name}", "--namespace", name, *source],
        ["why", name, "--namespace", name, *source],
        ["why", f"pcs/{name}", "--namespace", name, *source],
        ["validate", "-f", str(wrong)],
        ["operator", "--check", "--config", str(wrong)],
        ["grouper", "--check", "--config", str(wrong)],
        ["scheduler", "--check", "--config", str(wrong)],
        ["coscheduler", "--check", "--config", str(wrong)],
        ["manifests", "--values", str(wrong)],
        ["cases", str(wrong)],
        ["replay", str(wrong)],
    ):
        result = CliRunner().invoke(main, arguments, color=True)
        told = result.output + result.stderr
        assert "owned" in told, (arguments, told)
        for ours in ("\x1b[31m", "\x1b[32m", "\x1b[0m"):
            told = told.replace(ours, "")
        assert not {*"\x1b\x07\x9b\u202e"} & {*told}, (arguments, told)


def test_log_lines_do_nothing_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """What is logged about an object of others, its traceback included, is shown, not sent."""
    log_to_stderr(2)
    try:
        int(f"no {ESCAPES}")
    except ValueError as error:
        raised = ValueError(f"{error}: {ESCAPES}")
        structlog.get_logger().error("failed", pod=f"p{ESCAPES}", exc_info=raised)
    finally:
        structlog.reset_defaults()
    told = capsys.readouterr().err
    assert told.count("owned") == 3
    assert not {*"\x1b\x07\x9b\u202e"} & {*told}, told


def test_there_is_one_way_to_print() -> None:
    """Commands print through ``terminal/output``, which shows control characters; others print no text of objects."""
    printing = re.compile(r"\bclick\.(?:secho|echo)\(|(?<![\w.])print\(")
    source = Path(spinney.cli.__file__).parent
    found = {str(file.relative_to(source)) for file in source.rglob("*.py") if printing.search(file.read_text())}
    assert found == {
        "__init__.py",  # an empty line
        "bodies/completion.py",  # what click wrote for a shell
        "commands/shell.py",
        "options.py",  # that a command is being loaded
        "kubectl_completing.py",  # words that were looked at when they were found
        "terminal/output.py",
        "bodies/manifests.py",  # YAML, which writes control characters out
        "bodies/grouper.py",  # likewise
        "bodies/snapshot.py",  # a compressed file, and never to a terminal
    }


def test_what_is_shown_is_still_json() -> None:
    """A control character is written out as JSON writes it, so what programs read stays what it is."""
    text = json.dumps({"a": f"x{ESCAPES}\x7f"}, ensure_ascii=False)
    assert json.loads(printable(text)) == {"a": f"x{ESCAPES}\x7f"}


def test_a_snapshot_is_private_whatever_was_there(tmp_path: Path) -> None:
    """A snapshot is readable by its owner only, also where a file that anybody could read was before."""
    path = tmp_path / "cluster.gz"
    path.touch()
    path.chmod(0o666)
    write_snapshot(ClusterSnapshot(), path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    """A private file takes the place of a link; what the link points at is not written, and nothing is left behind."""
    target, link = tmp_path / "target", tmp_path / "kubeconfig"
    target.write_text("untouched")
    link.symlink_to(target)
    (tmp_path / f".kubeconfig.{os.getpid()}").symlink_to(target)
    write_private(link, b"secret")
    assert (target.read_text(), link.read_text(), link.is_symlink()) == ("untouched", "secret", False)
    assert len(list(tmp_path.iterdir())) == 3
