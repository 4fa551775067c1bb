"""Files in every shape that people hand over: what can be read is judged, and what cannot is said with its line."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from spinney.api.struct import JSON
from spinney.cli import main
from tests.workloads.files import WORKLOADS, pod_clique_set

TEXT = (WORKLOADS / "simple1.yaml").read_text(encoding="utf-8")
SET: JSON = pod_clique_set(WORKLOADS / "simple1.yaml")
ANCHORS = """\
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: anchored}
spec:
  template:
    cliques:
    - name: a
      spec: &first
        roleName: a
        podSpec: {containers: [{name: main, image: i}]}
    - name: b
      spec: {<<: *first, roleName: b}
"""
BOMB = "a: &a [x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{chr(ord(name) - 1)}'] * 9)}]\n" for name in "bcdefgh"
)

READ: dict[str, tuple[str | bytes, int]] = {
    "with a byte order mark": (f"\ufeff{TEXT}", 1),
    "with the line ends of Windows": (TEXT.replace("\n", "\r\n"), 1),
    "with anchors": (ANCHORS, 1),
    "with empty documents": (f"---\n---\n# nothing\n---\n{TEXT}\n---\nnull\n---\n{{}}\n---\n{ANCHORS}\n...\n", 2),
    "as JSON": (json.dumps(SET), 1),
    "with a date for a text": (TEXT.replace("metadata:\n", "metadata:\n  annotations: {built: 2026-01-02}\n", 1), 1),
    "in a List": (yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [SET, SET]}), 2),
    "in a List of its kind": (
        yaml.safe_dump({"apiVersion": SET["apiVersion"], "kind": "PodCliqueSetList", "items": [SET]}),
        1,
    ),
}

REFUSED: dict[str, tuple[str | bytes, str]] = {
    "nothing": ("# nothing\n", "no objects"),
    "no object": ("hello\n", "expected a Kubernetes object"),
    "a list": ("- a\n", "expected a Kubernetes object"),
    "bytes": (b"\x00\x01", "not text"),
    "another encoding": (TEXT.encode("utf-16"), "cannot be read as text"),
    "tabs": (TEXT.replace("    ", "\t"), "indent with spaces"),
    "a template": (TEXT.replace("name: simple1", "name: {{ .Values.name }}", 1), "rendered first"),
    "a tag": (TEXT.replace("kind: ", "kind: !!python/object:os.system ", 1), "tag"),
    "a key twice": (f"{TEXT}\nkind: PodCliqueSet\n", "kind: given twice, first in line 2"),
    "JSON cut off": (json.dumps(SET)[:-5], "expected ',' or '}'"),
    "aliases of aliases": (f"{BOMB}apiVersion: v1\nkind: List\nitems: *h\n", "aliases make it endless"),
    "an alias to itself": ("apiVersion: v1\nkind: List\nitems: &i [*i]\n", "aliases make it endless"),
    "depths": ("[" * 3000, "nested too deeply"),
    "a List without items": ("apiVersion: v1\nkind: List\n", "a List needs the list of its items"),
    "an empty item": ("apiVersion: v1\nkind: List\nitems: [null]\n", "expected a Kubernetes object"),
    "no apiVersion": (TEXT.replace("apiVersion: grove.io/v1alpha1\n", ""), "apiVersion and kind"),
    "a number for apiVersion": (TEXT.replace("grove.io/v1alpha1", "1"), "apiVersion and kind"),
    "another version": (TEXT.replace("v1alpha1", "v1", 1), "found 'grove.io/v1', expected grove.io/v1alpha1"),
    "another group": (TEXT.replace("grove.io/", "grove/", 1), "found 'grove/v1alpha1', expected grove.io/v1alpha1"),
    "no group": (TEXT.replace("grove.io/v1alpha1", "v1", 1), "found 'v1', expected grove.io/v1alpha1"),
    "another kind": (TEXT.replace("PodCliqueSet", "PodCliqueSets", 1), "did you mean 'PodCliqueSet'?"),
    "the group of another kind": (TEXT.replace("PodCliqueSet", "PodGang", 1), "expected scheduler.grove.io/v1alpha1"),
    "text for metadata": (yaml.safe_dump({**SET, "metadata": "x"}), "metadata: Invalid value"),
    "a list for a spec": (yaml.safe_dump({**SET, "spec": [1]}), "spec: Invalid value"),
}


def said_of(content: str | bytes, directory: Path) -> tuple[int, str]:
    """Return the exit code and the words of ``spinney validate`` about a file."""
    file = directory / "workload.yaml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    answer = CliRunner().invoke(main, ["validate", "-f", str(file)])
    assert answer.exception is None or isinstance(answer.exception, SystemExit), answer.exception
    assert "should not have happened" not in answer.output
    return answer.exit_code, answer.output


@pytest.mark.parametrize("shape", READ)
def test_a_file_is_read(tmp_path: Path, shape: str) -> None:
    """However it is written down, each object in it is found and judged."""
    content, objects = READ[shape]
    code, output = said_of(content, tmp_path)
    assert (code, output.splitlines()[-1]) == (0, f"{objects} of {objects} objects are valid"), output


@pytest.mark.parametrize("shape", REFUSED)
def test_a_file_is_refused(tmp_path: Path, shape: str) -> None:
    """What cannot be read, or is not what it says it is, is refused with the reason."""
    content, reason = REFUSED[shape]
    code, output = said_of(content, tmp_path)
    assert (code, reason in output) == (1, True), output
