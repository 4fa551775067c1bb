"""Files that somebody else wrote: they are read or refused in a sentence, and never harm who reads them."""

import gzip
import json
import os
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from spinney.api import yaml_text
from spinney.api.struct import JSON
from spinney.cli import main
from spinney.cli.terminal.printable import printable
from spinney.runtime.private_files import write_private
from spinney.sim import snapshot_files
from spinney.sim.snapshot import ClusterSnapshot
from spinney.sim.snapshot_files import FORMAT, UnreadableSnapshot, read_snapshot, write_snapshot

DEEP = '{"a":' * 100_000 + "1" + "}" * 100_000
ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"


_READER = """
import sys
from pathlib import Path
from spinney.sim.snapshot_files import UnreadableSnapshot, read_snapshot

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


def test_names_do_nothing_to_the_terminal(tmp_path: Path) -> None:
    """Escape sequences in names and messages are shown, not sent, in tables, answers and errors."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p{ESCAPES}", "labels": {"a": ESCAPES}},
        "spec": {"schedulerName": "spinney-scheduler", "containers": [{"name": "c", "image": "i"}]},
    }
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [a_node(name=f"n{ESCAPES}"), pod]}))
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps({**a_node(), "kind": f"Node{ESCAPES}"}))
    for arguments in (
        ["get", "nodes", "--from", str(path)],
        ["simulate", str(path)],
        ["simulate", str(wrong)],
        ["why", f"pod/p{ESCAPES}", "--from", str(path)],
        ["get", "nodes", "--from", str(path), "-o", "json"],
        ["validate", "-f", str(wrong)],
    ):
        result = CliRunner().invoke(main, arguments, color=True)
        told = result.output + result.stderr
        assert "owned" in told, (arguments, told)
        for ours in ("\x1b[31m", "\x1b[32m", "\x1b[0m"):
            told = told.replace(ours, "")
        assert not {*"\x1b\x07\x9b\u202e"} & {*told}, (arguments, told)


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
