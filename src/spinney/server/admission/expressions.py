"""The CEL expressions of a policy, with the policy's variables bound in.

A variable is an expression with a name. Its value is only computed where it is used, which is what ``cel.bind`` does:
an expression that mentions variables is compiled inside the bindings of those, and of those that they mention.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Final

from spinney.api.struct import JSON
from spinney.server.crd.rules import Environment, Evaluator, RuleResult, escaped

_SCOPE: Final = ("object", "oldObject", "request", "namespaceObject")
_PARAMS: Final = "params"
_MENTIONED: Final = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\bvariables\.([A-Za-z_]\w*)""")


class NotCompiled(ValueError):
    """An expression that cannot be evaluated here."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression."""

    text: str
    names: tuple[str, ...]
    evaluator: Evaluator
    escaping: bool

    def evaluate(self, scope: Mapping[str, Any]) -> RuleResult:
        """Return what the expression comes to with the given values."""
        values = {name: scope.get(name) for name in self.names}
        return self.evaluator(**(escaped(values) if self.escaping else values))


class Expressions:
    """Compiles the expressions of one policy, given its spec."""

    def __init__(self, spec: JSON) -> None:
        self._names = (*_SCOPE, _PARAMS) if spec.get("paramKind") else _SCOPE
        self._variables: dict[str, str] = {}
        for variable in spec.get("variables") or ():
            self._variables[str(variable.get("name"))] = str(variable.get("expression"))

    def of(self, text: str, *, kind: str = "") -> Expression:
        """Return a compiled expression of a ``kind`` such as BOOL; raise :class:`NotCompiled` with the reason."""
        if find_spec("cel_expr_python") is None:
            raise NotCompiled("expressions are not evaluated here: the package cel-expr-python is not installed")
        bound = self._bound(text, frozenset())
        try:
            evaluator = _environment(self._names).compile(bound, kind)
        except RuntimeError as error:
            raise NotCompiled(str(error).splitlines()[0]) from error
        return Expression(text, self._names, evaluator, escaping="__" in bound)

    def before(self, index: int, spec: JSON) -> "Expressions":
        """Return what the variable at ``index`` is compiled by: it may mention those before it."""
        return Expressions({**spec, "variables": (spec.get("variables") or [])[:index]})

    def _bound(self, text: str, inside: frozenset[str]) -> str:
        mentioned = dict.fromkeys(found[2] for found in _MENTIONED.finditer(text) if found[2])
        for name in mentioned:
            if name not in self._variables or name in inside:
                raise NotCompiled(f"undefined field '{name}' of variables")
        body = _MENTIONED.sub(lambda found: found[1] or f"variable_{found[2]}", text)
        for name in mentioned:
            value = self._bound(self._variables[name], inside | {name})
            body = f"cel.bind(variable_{name}, {value}, {body})"
        return body


_environment = lru_cache(maxsize=4)(Environment)
