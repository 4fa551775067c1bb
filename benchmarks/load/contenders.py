"""Who binds the pods, each a process of its own."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.bytecode import compile_ahead
from benchmarks.load.processes import SPINNEY
from spinney.testing.controlplane import ControlPlane

OUR_USER = "spinney-scheduler"


@dataclass(frozen=True)
class Contender:
    """Somebody who binds pods: ``scheduler`` is what the pods have to name."""

    name: str
    scheduler: str
    command: tuple[str, ...] = ()  # empty: the stock scheduler of the control plane

    @property
    def in_plane(self) -> bool:
        """Tell whether it is one of the programs of the control plane."""
        return not self.command

    @contextmanager
    def running(self, plane: ControlPlane, kubeconfig: Path) -> Iterator[tuple[int, ...]]:
        """Run it for the time of the block, which is given its process ids."""
        if self.in_plane:
            with plane.scheduler({"clientConnection": {"qps": 5000, "burst": 5000}}):
                yield (plane.pids[-1],)
            return
        with (plane.directory / f"{self.name}.log").open("ab") as log:
            process = subprocess.Popen([*self.command, str(kubeconfig)], stdout=log, stderr=log)
        try:
            yield (process.pid,)
        finally:
            process.terminate()
            process.wait()


STOCK = Contender("kube-scheduler", "default-scheduler")
OURS = Contender("spinney", "spinney-scheduler", (*SPINNEY, "scheduler", "--kubeconfig"))
COSCHEDULER = Contender("coscheduler", "coscheduling", (*SPINNEY, "coscheduler", "--kubeconfig"))
BARE = Contender("bare client", "nobody", (sys.executable, "-m", "benchmarks.load.bare"))
BARE_SILENT = Contender("bare, no events", "nobody", (sys.executable, "-m", "benchmarks.load.bare", "--no-events"))


_IMPORTED = (
    "spinney.cli.commands.processes",
    "spinney.cli.bodies.scheduler",
    "spinney.cli.settings.session_process",
    "spinney.cli.bodies.coscheduler",
    "spinney.cli.settings.coscheduler_process",
    "spinney.cli.bodies.operator",
    "spinney.kube.wire.proxied",
    "benchmarks.load.bare",
)


def compile_ours() -> None:
    """Have everything compiled that our processes import."""
    compile_ahead(*_IMPORTED)
