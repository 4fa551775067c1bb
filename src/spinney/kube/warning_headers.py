"""Warnings an API server sends along with an answer that succeeded (``Warning: 299 - "..."``)."""

import re
from collections.abc import Mapping

import structlog

log = structlog.get_logger()

_REMEMBERED = 1_000

_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


def warnings_in(headers: Mapping[str, str]) -> list[str]:
    """Return the texts of the warnings in a response's headers."""
    return [re.sub(r"\\(.)", r"\1", text) for text in _WARNING.findall(headers.get("warning", ""))]


class WarningLog:
    """Logs each warning once. Mutable: it remembers what it has said, up to a limit."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def __call__(self, text: str) -> None:
        if text not in self._said and len(self._said) < _REMEMBERED:
            self._said.add(text)
            log.warning("the API server warns", warning=text)
