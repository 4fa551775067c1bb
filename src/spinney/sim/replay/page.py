"""The report as one HTML page that needs nothing else: tables, and plots drawn as SVG."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Final

from spinney.sim.replay.comparing import GROUP_COLUMNS, GroupLine, Line, ReplayRun, figure_lines, group_lines
from spinney.sim.replay.figures import Point

_COLOURS: Final = ("#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed", "#0891b2")
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 760, 260, 56, 34
_PAGE_STYLE: Final = """
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
"""
_STYLE: Final = """
.spinney-report table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums }
.spinney-report :is(th, td) { text-align: right; padding: .2rem .8rem; border-bottom: 1px solid #8884 }
.spinney-report :is(th, td):first-child { text-align: left }
.spinney-report svg { width: 100%; height: auto; font-size: 11px }
.spinney-report svg text { fill: currentColor }
.spinney-report figcaption { font-weight: 600 }
.spinney-report figure { margin: 1.5rem 0 }
"""


def page_of(title: str, notes: Sequence[str], runs: Sequence[ReplayRun]) -> str:
    """Return the page."""
    head = f"<meta charset=utf-8><title>{escape(title)}</title><style>{_PAGE_STYLE}</style>"
    return f"<!doctype html><html lang=en>{head}\n{report_of(title, notes, runs)}\n</html>"


def report_of(title: str, notes: Sequence[str], runs: Sequence[ReplayRun]) -> str:
    """Return what is on the page, to be a part of any: its style is about itself only."""
    configs = list(dict.fromkeys(run.config for run in runs))
    parts = [
        f'<section class="spinney-report"><style>{_STYLE}</style><h1>{escape(title)}</h1>',
        *(f"<p>{escape(note)}</p>" for note in notes),
        _legend(configs),
        _plot("GPUs given out against GPUs asked for", "% asked for", "% given out", _curves(runs, "arrived")),
        _plot("GPUs given out over time", "hours", "%", _curves(runs, "occupancy")),
        _plot("Jobs that wait over time", "hours", "jobs", _curves(runs, "waiting")),
        _figures(configs, figure_lines(runs)),
        _groups("By size", group_lines(runs, lambda each: each.by_size)),
        _groups("By queue", group_lines(runs, lambda each: each.by_queue)),
        _groups("By kind", group_lines(runs, lambda each: each.by_kind)),
        "</section>",
    ]
    return "\n".join(parts)


def _curves(runs: Sequence[ReplayRun], figure: str) -> dict[str, list[Point]]:
    """Return one curve per configuration: that of its first seed."""
    found: dict[str, list[Point]] = {}
    for run in runs:
        found.setdefault(run.config, getattr(run.figures, figure))
    return found


def _legend(configs: Iterable[str]) -> str:
    return "<p>" + " ".join(
        f'<span style="color:{_COLOURS[place % len(_COLOURS)]}">&#9632; {escape(name)}</span>'
        for place, name in enumerate(configs)
    )


def _plot(title: str, across: str, up: str, curves: Mapping[str, Sequence[Point]]) -> str:
    points = [point for curve in curves.values() for point in curve]
    right = max((point.x for point in points), default=1.0) or 1.0
    top = max((point.y for point in points), default=1.0) or 1.0
    width, height = _WIDTH - _LEFT - 12, _HEIGHT - _BOTTOM - 12

    def place(point: Point) -> str:
        return f"{_LEFT + width * point.x / right:.1f},{12 + height * (1 - point.y / top):.1f}"

    drawn = [
        f'<polyline fill="none" stroke="{_COLOURS[number % len(_COLOURS)]}" stroke-width="1.5" '
        f'points="{" ".join(map(place, curve))}"/>'
        for number, curve in enumerate(curves.values())
    ]
    ticks = []
    for part in range(5):
        x, y = _LEFT + width * part / 4, 12 + height * (1 - part / 4)
        ticks += [
            f'<line x1="{_LEFT}" x2="{_LEFT + width}" y1="{y:.1f}" y2="{y:.1f}" stroke="#8884"/>',
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{top * part / 4:,.4g}</text>',
            f'<text x="{x:.1f}" y="{_HEIGHT - 18}" text-anchor="middle">{right * part / 4:,.4g}</text>',
        ]
    names = (
        f'<text x="{_LEFT + width}" y="{_HEIGHT - 4}" text-anchor="end">{escape(across)}</text>'
        f'<text x="{_LEFT}" y="9">{escape(up)}</text>'
    )
    return (
        f'<figure><figcaption>{escape(title)}</figcaption><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">'
        f"{''.join(ticks)}{''.join(drawn)}{names}</svg></figure>"
    )


def _figures(configs: Sequence[str], lines: Iterable[Line]) -> str:
    return _table(
        "Figures", configs, ((line.name, *(line.estimates.get(name, "-") for name in configs)) for line in lines)
    )


def _groups(title: str, lines: Iterable[GroupLine]) -> str:
    return _table(
        title, ("configuration", *GROUP_COLUMNS), ((each.name, each.config, *each.estimates) for each in lines)
    )


def _table(title: str, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in ("", *columns))
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return f"<h2>{escape(title)}</h2><table><tr>{head}</tr>{body}</table>"
