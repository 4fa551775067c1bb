"""Test plans as tables: each line of a plan, and the tests that carry it out.

A table is checked against the tests themselves: every test it names exists under that name, says in a sentence what it
shows, and is neither skipped nor expected to fail.
"""

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import pytest

Plan = Mapping[str, Sequence[str]]

LAME = {"skip", "skipif", "xfail"}


def found(node: str) -> Any:
    """Return the test behind a node id such as ``tests/room/test_file.py::TestClass::test_name``."""
    path, *names = node.split("::")
    thing: Any = import_module(path.removesuffix(".py").replace("/", "."))
    for name in names:
        thing = getattr(thing, name)
    return thing


def marks(node: str) -> Iterator[str]:
    """Yield the marks that a test has, by itself, from its class or from its module."""
    path, *names = node.split("::")
    for depth in range(len(names) + 1):
        holder = found("::".join([path, *names[:depth]]))
        own = getattr(holder, "pytestmark", [])
        for mark in own if isinstance(own, list) else [own]:
            yield mark.name


def check(line: str, nodes: Sequence[str]) -> None:
    """Check that a line of a plan is carried out."""
    assert nodes, f"nothing carries out {line!r}"
    for node in nodes:
        assert node.rsplit("::", 1)[1].startswith("test_"), node
        assert callable(found(node)), node
        assert (found(node).__doc__ or "").strip().endswith("."), f"{node} does not say what it shows"
        assert not LAME & set(marks(node)), f"{node} is skipped or expected to fail"


def lines(plan: Plan) -> pytest.MarkDecorator:
    """Parametrize a test with the lines of a plan."""
    return pytest.mark.parametrize(("line", "nodes"), plan.items(), ids=list(plan))
