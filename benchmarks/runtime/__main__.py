"""Prints the figures of the Kubernetes runtime beside their targets; exits with 1 if one is missed.

usage: python -m benchmarks.runtime [figure ...]     figures: memory watch_events reconciles lease

Each figure is measured in a process of its own, so that none pays for another's memory. Rates are per second of
processor time, which is what one core gives when nothing else runs on it.
"""

import json
import subprocess
import sys
from dataclasses import asdict

import structlog

from benchmarks.runtime.figures import FIGURES, Figure


def main(arguments: list[str]) -> int:
    """Measure what is asked for, or everything."""
    if arguments[:1] == ["--one"]:
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
        print(json.dumps(asdict(FIGURES[arguments[1]]())))
        return 0
    missed = 0
    for name in arguments or FIGURES:
        command = [sys.executable, "-m", "benchmarks.runtime", "--one", name]
        figure = Figure(**json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout))
        missed += not figure.met
        bound = "at most" if figure.better == "less" else "at least"
        verdict = "ok    " if figure.met else "MISSED"
        print(
            f"{verdict} {figure.name:26} {_rounded(figure.value):>10} {figure.unit:3}"
            f" (target: {bound} {figure.target:,g} {figure.unit}) {figure.note}",
            flush=True,
        )
    return 1 if missed else 0


def _rounded(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
