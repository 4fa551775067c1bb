"""The capability matrix in the guide is what the backends say.

Run ``python -m tests.backends.test_capability_matrix`` to write it.
"""

from pathlib import Path

from spinney.backends import BackendContext, Capabilities, SchedulerBackend
from spinney.backends.coscheduling import CoschedulingBackend, CoschedulingConfig
from spinney.backends.kai import KaiScheduler
from spinney.backends.kube import KubeScheduler, KubeSchedulerConfig
from spinney.backends.spinney_scheduler import SpinneyScheduler
from spinney.backends.volcano import Volcano
from spinney.runtime import run_virtual
from spinney.server import ServerOptions
from tests.backends.bench import asking

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "backends.md"
BEGIN, END = "<!-- capabilities:begin", "<!-- capabilities:end -->"


def native(context: BackendContext) -> SchedulerBackend:
    """Return the kube backend with native gangs."""
    return KubeScheduler(context, KubeSchedulerConfig(gang_scheduling=True))


def composite(context: BackendContext) -> SchedulerBackend:
    """Return the kube backend with trees of native groups."""
    return KubeScheduler(context, KubeSchedulerConfig(gang_scheduling=True, composites=True))


COLUMNS = {
    "kube-scheduler": (KubeScheduler, "1.37"),
    "kube-scheduler 1.35, gangScheduling": (native, "1.35"),
    "kube-scheduler 1.36, gangScheduling": (native, "1.36"),
    "kube-scheduler 1.37, gangScheduling": (native, "1.37"),
    "kube-scheduler 1.37, composites": (composite, "1.37"),
    "kai-scheduler": (KaiScheduler, "1.37"),
    "coscheduling": (lambda context: CoschedulingBackend(context, CoschedulingConfig()), "1.37"),
    "volcano": (Volcano, "1.37"),
    "spinney-scheduler": (SpinneyScheduler, "1.37"),
}


async def matrix() -> str:
    """Return the matrix as the guide shows it."""
    found: dict[str, Capabilities] = {}
    for title, (make, release) in COLUMNS.items():
        async with asking(make, options=ServerOptions(kubernetes_version=release)) as backend:
            found[title] = backend.capabilities
    names = list(Capabilities().named())
    lines = ["| backend | " + " | ".join(name.replace("_", " ") for name in names) + " |"]
    lines.append("|---|" + "---|" * len(names))
    for title, capabilities in found.items():
        cells = ["yes" if value else "" for value in capabilities.named().values()]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def guide_with(table: str) -> str:
    """Return the guide with this matrix in it."""
    before, marker, rest = GUIDE.read_text().partition(BEGIN)
    heading, _, after = rest.partition("\n")
    return f"{before}{marker}{heading}\n\n{table}\n\n{END}{after.partition(END)[2]}"


def test_the_guide_shows_what_the_backends_say() -> None:
    """The committed matrix agrees with the capabilities of the built-in backends."""
    assert guide_with(run_virtual(matrix())) == GUIDE.read_text()


if __name__ == "__main__":
    GUIDE.write_text(guide_with(run_virtual(matrix())))
