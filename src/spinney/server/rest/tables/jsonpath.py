"""The part of JSONPath that printer columns use: fields, indexes, ``[*]`` and filters on a field."""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

Step = Callable[[Any], Iterator[Any]]

_TOKEN = re.compile(
    r"""\.(?P<field>(?:\\.|[^.\[\\])+)
      | \[(?P<index>-?\d+)\]
      | \[(?P<star>\*)\]
      | \[['"](?P<quoted>[^'"]*)['"]\]
      | \[\?\(\s*@\.(?P<key>[\w.]+)\s*(?P<operator>==|!=)\s*
          (?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>\w+))\s*\)\]
    """,
    re.VERBOSE,
)


class InvalidPath(ValueError):
    """A JSONPath that is not understood."""


def find(path: str, obj: Any) -> list[Any]:
    """Return the values at ``path``, in order."""
    found = [obj]
    for step in _steps(path):
        found = [value for each in found for value in step(each)]
    return found


@lru_cache(maxsize=1024)
def _steps(path: str) -> tuple[Step, ...]:
    text = path.strip()
    text = text[1:-1] if text.startswith("{") and text.endswith("}") else text
    text = text.removeprefix("$")
    steps: list[Step] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise InvalidPath(f"JSONPath {path!r} is not understood at {text[position:]!r}")
        steps.append(_step(match))
        position = match.end()
    return tuple(steps)


def _step(match: re.Match[str]) -> Step:
    if match["star"]:
        return _every
    if match["index"] is not None:
        return _index(int(match["index"]))
    if match["key"]:
        texts = (match["double"], match["single"], match["bare"])
        wanted = next(text for text in texts if text is not None)
        return _filter(match["key"].split("."), wanted, match["operator"] == "==")
    if match["quoted"] is not None:
        return _field(match["quoted"])
    name = re.sub(r"\\(.)", r"\1", match["field"])
    return _every if name == "*" else _field(name)


def _field(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _index(position: int) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= position < len(value):
            yield value[position]

    return step


def _every(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _filter(keys: list[str], wanted: str, equal: bool) -> Step:
    def step(value: Any) -> Iterator[Any]:
        for item in value if isinstance(value, list) else ():
            found: Any = item
            for key in keys:
                found = found.get(key) if isinstance(found, dict) else None
            text = {True: "true", False: "false"}.get(found, str(found)) if isinstance(found, bool) else str(found)
            if (text == wanted) is equal:
                yield item

    return step
