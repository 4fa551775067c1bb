"""Whether a benchmark got worse since a revision: both are run in turns, and their ranges are compared.

    python -m benchmarks.revisions REVISION [--turns 5] MODULE [ARGUMENTS...]

for example ``python -m benchmarks.revisions v0.4.0 benchmarks.scheduler.decisions --nodes 1000``. Figures of processor
time are taken from what the module prints, so any benchmark will do that says "per CPU second" or "ms CPU". A figure is
worse if the best turn of what is checked out is worse than the worst of the revision: what lies between is noise.
"""

import argparse
import compileall
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent.parent
_FIGURE = re.compile(r"([\d,]+(?:\.\d+)?) *(pods per CPU second|per CPU second|/CPU s\b|ms CPU|s CPU|CPU ms)")
_RATES = {"pods per CPU second", "per CPU second", "/CPU s"}


def figures(printed: str) -> dict[str, float]:
    """Return what was printed as processor time or as a rate of it, as rates: more is better."""
    found: dict[str, float] = {}
    part, seen = "", Counter[str]()
    for line in printed.splitlines():
        if not line.startswith(" "):
            part = line.partition(":")[0] if ":" in line or not _FIGURE.search(line) else ""
        for match in _FIGURE.finditer(line):
            before = re.sub(r"[\d,]+(\.\d+ \w+| pods/s,| /s)", "", line[: match.start()]).strip(" (;,")
            name = before if before.startswith(part) else f"{part} {before}".strip()
            seen[name] += 1
            value = float(match[1].replace(",", ""))
            if value:
                label = name if seen[name] == 1 else f"{name} ({seen[name]})"
                found[label] = value if match[2] in _RATES else 1 / value
    return found


def main() -> int:
    """Run both in turns, print a row per figure, and return 1 if one got worse."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision", help="what to compare with: a commit, tag or branch")
    parser.add_argument("--turns", type=int, default=5, help="how often each is run")
    parser.add_argument("module", help="the benchmark, as after python -m")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    before: defaultdict[str, list[float]] = defaultdict(list)
    now: defaultdict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as directory:
        tree = Path(directory) / "tree"
        subprocess.run(
            ["git", "-C", HERE, "worktree", "add", "--quiet", "--detach", tree, options.revision], check=True
        )
        try:
            for root in (tree, HERE):
                compileall.compile_dir(root / "src", quiet=1)  # no turn is to pay for the compiler
            for turn in range(options.turns):
                for into, root in ((before, tree), (now, HERE)):
                    for name, value in figures(_run(root, options.module, options.arguments)).items():
                        into[name].append(value)
                print(f"turn {turn + 1} of {options.turns}", file=sys.stderr, flush=True)
        finally:
            subprocess.run(["git", "-C", HERE, "worktree", "remove", "--force", tree], check=True)
    return _report(before, now)


def _run(root: Path, module: str, arguments: Sequence[str]) -> str:
    """Return what a benchmark of one tree prints; that it misses a target does not matter here."""
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"}
    ended = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=root,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if not figures(ended.stdout):
        raise SystemExit(f"{module} in {root} printed no processor time (exit code {ended.returncode})")
    return ended.stdout


def _report(before: Mapping[str, Sequence[float]], now: Mapping[str, Sequence[float]]) -> int:
    worse = 0
    for name in now:
        if name not in before:
            print(f"{'new':>6}                 {name}")
            continue
        ratio = median(now[name]) / median(before[name])
        is_worse = max(now[name]) < min(before[name])
        worse += is_worse
        extremes = f"{min(now[name]) / max(before[name]):.2f}-{max(now[name]) / min(before[name]):.2f}"
        print(f"{ratio:>5.2f}x {extremes:>11}  {'WORSE' if is_worse else '     '} {name}")
    print(f"{worse} of {len(now)} figures are worse than in any turn before")
    return int(worse > 0)


if __name__ == "__main__":
    sys.exit(main())
