"""Panels of a Grafana dashboard, described by what they show; where each goes follows from its width."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from spinney.api.struct import JSON

_COLUMNS: Final = 24
_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True)
class Query:
    """What is asked of Prometheus; ``legend`` names each series, with labels in double braces."""

    expression: str
    legend: str = ""


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One picture. ``means`` explains it to a reader who does not know the metric."""

    title: str
    means: str
    queries: Sequence[Query]
    kind: Literal["timeseries", "stat", "table"] = "timeseries"
    unit: str = "short"
    width: int = 8
    height: int = 8
    stacked: bool = False


@dataclass(frozen=True)
class PanelRow:
    """Panels under one heading."""

    title: str
    panels: Sequence[Panel]


def drawn(rows: Sequence[PanelRow]) -> list[JSON]:
    """Return the panels of a dashboard, row below row."""
    return [{"id": number, **panel} for number, panel in enumerate(_placed(rows), start=1)]


def _placed(rows: Sequence[PanelRow]) -> Iterator[JSON]:
    y = 0
    for row in rows:
        yield {"type": "row", "title": row.title, "collapsed": False, "panels": [], "gridPos": _grid(0, y, _COLUMNS, 1)}
        y, x, tallest = y + 1, 0, 0
        for panel in row.panels:
            if x + panel.width > _COLUMNS:
                x, y, tallest = 0, y + tallest, 0
            yield {**_picture(panel), "gridPos": _grid(x, y, panel.width, panel.height)}
            x, tallest = x + panel.width, max(tallest, panel.height)
        y += tallest


def _grid(x: int, y: int, width: int, height: int) -> JSON:
    return {"x": x, "y": y, "w": width, "h": height}


def _picture(panel: Panel) -> JSON:
    picture: JSON = {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.means,
        "datasource": _SOURCE,
        "targets": [_target(query, chr(ord("A") + place), panel.kind) for place, query in enumerate(panel.queries)],
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
    }
    if panel.kind == "stat":
        picture["options"] = {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "value", "graphMode": "area"}
    elif panel.kind == "table":
        names = {f"Value #{chr(ord('A') + place)}": query.legend for place, query in enumerate(panel.queries)}
        hidden = {"Time": True, **{f"Time {place + 1}": True for place in range(len(panel.queries))}}
        picture["transformations"] = [
            {"id": "merge", "options": {}},
            {"id": "organize", "options": {"excludeByName": hidden, "renameByName": names}},
        ]
    else:
        stacking = {"mode": "normal" if panel.stacked else "none", "group": "A"}
        picture["fieldConfig"]["defaults"]["custom"] = {"fillOpacity": 20 if panel.stacked else 0, "stacking": stacking}
        picture["options"] = {"tooltip": {"mode": "multi", "sort": "desc"}, "legend": {"displayMode": "list"}}
    return picture


def _target(query: Query, name: str, kind: str) -> JSON:
    target = {"refId": name, "datasource": _SOURCE, "expr": query.expression, "legendFormat": query.legend}
    return {**target, "instant": True, "format": "table"} if kind == "table" else target
