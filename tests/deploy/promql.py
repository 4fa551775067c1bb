"""What an expression of PromQL asks for: metrics, the labels it selects and groups by, and those of its answer."""

import re
from dataclasses import dataclass, field

import promql_parser as promql

OF_TARGETS = frozenset({"job", "instance", "namespace", "pod", "service", "endpoint", "container"})
"""Labels that Prometheus adds to whatever it scrapes."""
_CHOSEN = {"$resource": "gpu", "$queue": ".*", "$__rate_interval": "5m"}
"""What Grafana puts in the place of its variables."""


@dataclass
class Asked:
    """What is asked of one metric."""

    metric: str
    labels: set[str] = field(default_factory=set)
    equal: dict[str, str] = field(default_factory=dict)


def asked(expression: str) -> list[Asked]:
    """Return what is asked of each metric; raises ``ValueError`` for what is no PromQL."""
    text = expression
    for variable, value in _CHOSEN.items():
        text = text.replace(variable, value)
    found: list[Asked] = []
    _visit(promql.parse(text), frozenset(), found)
    return found


def legend_labels(legend: str) -> set[str]:
    return set(re.findall(r"{{\s*(\w+)\s*}}", legend))


def _visit(expr: promql.Expr, grouped: frozenset[str], found: list[Asked]) -> None:
    """Collect what selectors ask for; ``grouped`` are the labels that what stands around them looks at."""
    match expr:
        case promql.VectorSelector():
            matchers = expr.matchers.matchers
            equal = {each.name: each.value for each in matchers if each.op == promql.MatchOp.Equal}
            found.append(Asked(expr.name or "", {each.name for each in matchers} | grouped, equal))
        case promql.MatrixSelector():
            _visit(expr.vector_selector, grouped, found)
        case promql.AggregateExpr():
            _visit(expr.expr, grouped | set(expr.modifier.labels if expr.modifier else ()), found)
        case promql.BinaryExpr():
            matching = expr.modifier.matching if expr.modifier else None
            both = grouped | set(matching.labels if matching else ())
            _visit(expr.lhs, both, found)
            _visit(expr.rhs, both, found)
        case promql.Call():
            for argument in expr.args:
                _visit(argument, grouped, found)
        case promql.ParenExpr() | promql.SubqueryExpr() | promql.UnaryExpr():
            _visit(expr.expr, grouped, found)
        case promql.NumberLiteral() | promql.StringLiteral():
            return
        case _:
            raise TypeError(f"{expression_kind(expr)} is not known here")


def expression_kind(expr: promql.Expr) -> str:
    """Return what kind of expression it is."""
    return type(expr).__name__
