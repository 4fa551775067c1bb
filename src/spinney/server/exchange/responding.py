"""Making responses: what a client accepts, JSON bodies, warnings, errors."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from spinney.server.exchange.message import Response
from spinney.server.exchange.status import StatusError, not_acceptable

JSON_TYPE = "application/json"


def reply(body: bytes, *, status: int = 200, warnings: Sequence[str] = (), content_type: str = JSON_TYPE) -> Response:
    """Answer with encoded JSON."""
    headers = {"content-type": content_type}
    if warnings:
        headers["warning"] = warning_header(warnings)
    return Response(status, headers, body)


def warning_header(warnings: Sequence[str]) -> str:
    """Return the value of the header that tells warnings, each once."""
    return ", ".join(_warning(text) for text in dict.fromkeys(warnings))


def reply_json(value: Any, *, status: int = 200, warnings: Sequence[str] = ()) -> Response:
    """Answer with a value."""
    return reply(msgspec.json.encode(value), status=status, warnings=warnings)


def failure(error: StatusError) -> Response:
    """Answer with the ``Status`` of an error."""
    headers = {"content-type": JSON_TYPE, **error.headers}
    return Response(error.code, headers, msgspec.json.encode(error.to_json()))


def _warning(text: str) -> str:
    safe = text.replace("\\", "\\\\").replace('"', '\\"').encode("ascii", "backslashreplace").decode()
    return '299 - "' + "".join(each for each in safe if each.isprintable())[:1024] + '"'


@dataclass(frozen=True, slots=True)
class MediaType:
    """One entry of an ``Accept`` header."""

    name: str
    as_kind: str = ""
    group: str = ""
    version: str = ""


@lru_cache(maxsize=256)
def accepted(header: str) -> tuple[MediaType, ...]:
    """Return what an ``Accept`` header lists that is JSON; raise a 406 if it lists only other things."""
    if not header.strip():
        return (MediaType("application/json"),)
    found = []
    for entry in header.split(","):
        name, *parameters = [part.strip() for part in entry.split(";")]
        given = dict(part.partition("=")[::2] for part in parameters)
        if name in {"application/json", "application/*", "*/*"}:
            found.append(MediaType("application/json", given.get("as", ""), given.get("g", ""), given.get("v", "")))
    if not found:
        raise not_acceptable(("application/json",))
    return tuple(found)
