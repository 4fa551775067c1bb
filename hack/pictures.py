"""Draws the pictures of README.md and docs/concepts.md with the library and the command line's own drawing code.

Each is a cluster of :class:`spinney.sim.Cluster` on which the production scheduler has just decided. ``make docs``
writes them; a test fails when what is committed is no longer what the tool draws.
"""

import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console, RenderableType
from rich.text import Text
from rich.tree import Tree

from spinney.api.core import Pod
from spinney.api.grove import POD_CLIQUE_SET
from spinney.api.kai import QUEUE
from spinney.api.labels import POD_CLIQUE
from spinney.api.labels import POD_GANG as GANG_LABEL
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.struct import JSON
from spinney.cli.bodies.top import Memberships
from spinney.cli.demo.workloads import inference, queues, training
from spinney.cli.pictures.picture import Picture
from spinney.cli.screens.content import shares
from spinney.sim import Cluster
from spinney.sim.overview.gang_table import gang_lines

DIRECTORY: Final = Path(__file__).resolve().parent.parent / "docs" / "pictures"
README: Final = Path(__file__).resolve().parent.parent / "README.md"
_MARK, _END = "<!-- drawn by `make docs` -->\n```\n", "\n```\n"
"""What is around the picture in the README."""
_FONT: Final = re.compile(r"\s*@font-face \{\{.*?\}\}\n", re.DOTALL)
_FORMAT: Final = _FONT.sub("", CONSOLE_SVG_FORMAT).replace("Fira Code", "ui-monospace")
"""Rich's form of a screen as SVG, without fonts that would be fetched from elsewhere."""
_TEXT_WIDTH, _TEXT_HEIGHT = 80, 14
"""Columns and lines of a picture in plain text."""


def pictures() -> Mapping[str, str]:
    """Return every picture by file name."""
    return {
        "gang.svg": _svg(_drawn(_a_gang()), "one gang runs, one waits"),
        "workload.svg": _svg(_tree(), "what a PodCliqueSet becomes"),
        "topology.svg": _svg(_drawn(_a_service()), "each group in one rack"),
        "queues.svg": _svg(_drawn(_two_teams()), "queues beside the racks"),
    }


def first_screen() -> str:
    """Return the picture at the top of README.md: what the demo ends with, as text."""
    cluster = Cluster("32x8")
    for queue in queues():
        cluster.submit({"apiVersion": QUEUE.api_version, "kind": QUEUE.kind, **queue})
    for name in ("chat", "chat-kai"):
        cluster.submit(_a_set(inference(name, "spinney-scheduler")))
        cluster.run()
    cluster.submit(_a_set(training(workers=6, within="rack")))
    cluster.run()
    console = Console(file=io.StringIO(), width=_TEXT_WIDTH, highlight=False)
    with console.capture() as captured:
        console.print(_drawn(cluster, height=_TEXT_HEIGHT), end="")
    return captured.get()


def _a_set(manifest: JSON) -> JSON:
    return {"apiVersion": POD_CLIQUE_SET.api_version, "kind": POD_CLIQUE_SET.kind, **manifest}


def _a_gang() -> Cluster:
    cluster = Cluster("8x8")
    cluster.gang("render", pods=3, gpus=4)
    cluster.gang("train", pods=4, gpus=8, within="rack")
    cluster.gang("large", pods=6, gpus=8, within="rack")
    cluster.step()
    return cluster


def _a_service() -> Cluster:
    cluster = Cluster("16x8")
    cluster.submit(_a_set(inference("chat", "spinney-scheduler")))
    cluster.run()
    return cluster


def _two_teams() -> Cluster:
    cluster = Cluster("8x8")
    cluster.queue("company", quota=64)
    cluster.queue("research", parent="company", quota=24)
    cluster.queue("product", parent="company", quota=40)
    for number in range(3):
        cluster.gang(f"research-{number}", pods=2, gpus=8, queue="research")
    cluster.gang("product-0", pods=2, gpus=8, queue="product")
    cluster.gang("product-1", pods=1, gpus=8, queue="product")
    cluster.run()
    return cluster


def _drawn(cluster: Cluster, *, height: int | None = None) -> RenderableType:
    snapshot = cluster.snapshot()
    queues = shares(snapshot, gang_lines(snapshot, singles=True))
    return Picture(Memberships().scene(snapshot.nodes, snapshot.pods, queues), height=height)


def _tree() -> Tree:
    """Return the gangs, cliques and pods that one PodCliqueSet becomes."""
    snapshot = _a_service().snapshot()
    tree = Tree(Text("PodCliqueSet chat, 1 replica", style="bold"))
    pods = snapshot.pods
    for gang in snapshot.of(POD_GANG, PodGang):
        name = gang.metadata.name
        branch = tree.add(Text(f"PodGang {name}", style="cyan"))
        for group in gang.spec.pod_groups:
            members = [pod for pod in pods if _belongs(pod, name, group.name)]
            minimum = f"at least {group.min_replicas}"
            branch.add(f"PodClique {group.name}: {len(members)} pod{'s' * (len(members) != 1)}, {minimum}")
    return tree


def _belongs(pod: Pod, gang: str, clique: str) -> bool:
    labels = pod.metadata.labels
    return labels.get(GANG_LABEL) == gang and labels.get(POD_CLIQUE) == clique


def _svg(drawn: RenderableType, title: str) -> str:
    console = Console(file=io.StringIO(), width=100, record=True, highlight=False, color_system="truecolor")
    console.print(drawn)
    return console.export_svg(title=title, code_format=_FORMAT, unique_id=re.sub(r"\W+", "-", title))


def write(directory: Path = DIRECTORY) -> None:
    """Write every picture."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in pictures().items():
        (directory / name).write_text(text)
    before, _, rest = README.read_text().partition(_MARK)
    README.write_text(f"{before}{_MARK}{first_screen().rstrip()}{rest[rest.index(_END) :]}")


if __name__ == "__main__":
    write()
