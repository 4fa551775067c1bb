"""What a client accepts: media types with their parameters, in its order of preference."""

from dataclasses import dataclass
from functools import lru_cache

from spinney.server.exchange.status import not_acceptable


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
