"""Getting one object and listing many, whole or page by page, now or at an earlier revision."""

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import msgspec

from spinney.api.field_error import FieldError, forbidden, not_supported
from spinney.api.keys import Key
from spinney.server.exchange.status import StatusError, bad_request, expired, invalid_options, not_found
from spinney.server.operations.context import Context, Target
from spinney.server.operations.selection import CompiledSelectors, selection
from spinney.server.store import Record, TooOld

_WHOLE = re.compile("[-+]?[0-9]{1,18}", re.ASCII)
_MATCHES = ("", "Exact", "NotOlderThan")


@dataclass(frozen=True, slots=True)
class Listed:
    """One page of a list."""

    records: list[Record]
    revision: int
    token: str = ""
    remaining: int | None = None


def get(context: Context, target: Target) -> Record:
    """Return the object; raise a 404 if it does not exist."""
    found = context.collection(target.kind).get(target.key)
    if found is None:
        raise not_found(target.resource, target.key.name)
    return found


def list_objects(context: Context, target: Target, query: Mapping[str, str]) -> Listed:
    """Return the page of a list that the parameters ask for, in the order of namespace and name."""
    selected = selection(target.kind, query)
    revision, exact, after = _position(context, query)
    collection = context.collection(target.kind)
    try:
        moved = exact and collection.changed_since(revision)
    except TooOld as error:
        raise expired(f"The provided continue parameter or resourceVersion can no longer be listed: {error}") from error
    if moved:
        records = collection.records_at(revision, target.namespace, after)
    elif after is None:
        records = current(context, target, selected)
    else:
        records = collection.records(target.namespace, after)
    if not selected.everything:
        records = (record for record in records if selected.matches(record))
    limit = _limit(query)
    if limit <= 0:
        return Listed(list(records), revision)
    page = list(islice(records, limit))
    if next(records, None) is None:
        return Listed(page, revision)
    last = page[-1].key
    if not selected.everything:
        return Listed(page, revision, _token(revision, last))
    remaining = 1 + sum(1 for _ in records) if moved else collection.count(target.namespace, last)
    return Listed(page, revision, _token(revision, last), remaining)


def check_revision(context: Context, text: str) -> int:
    """Return a revision that a client sent; raise if it is no revision, or one from the future."""
    if not _WHOLE.fullmatch(text) or not text.isdecimal():
        raise bad_request(f"resourceVersion: Invalid value: {text!r}: must be a whole number")
    revision = int(text)
    if revision > context.store.revision:
        message = f"Too large resource version: {revision}, current: {context.store.revision}"
        details = {
            "causes": [FieldError("ResourceVersionTooLarge", "", "Too large resource version").cause()],
            "retryAfterSeconds": 1,
        }
        raise StatusError(504, "Timeout", message, details=details, headers={"retry-after": "1"})
    return revision


def bad_option(field: str, why: str) -> StatusError:
    """422: a parameter of a list or watch that may not be given with the others."""
    return invalid_options("ListOptions", forbidden(field, why))


def current(context: Context, target: Target, selected: CompiledSelectors) -> Iterator[Record]:
    """Iterate over the objects that can be selected: all there are, or the one that is named."""
    collection = context.collection(target.kind)
    if selected.only_name is not None and (target.namespace is not None or not target.resource.namespaced):
        found = collection.get(Key(target.namespace or "", selected.only_name))
        return iter(() if found is None else (found,))
    return collection.records(target.namespace)


def _position(context: Context, query: Mapping[str, str]) -> tuple[int, bool, Key | None]:
    """Return the revision to list at, whether exactly there, and the key to go on after."""
    text, match, token = query.get("resourceVersion", ""), query.get("resourceVersionMatch", ""), query.get("continue")
    if match not in _MATCHES:
        raise invalid_options("ListOptions", not_supported("resourceVersionMatch", match, _MATCHES[1:]))
    if query.get("sendInitialEvents"):
        raise bad_option("sendInitialEvents", "sendInitialEvents is forbidden for list")
    if token:
        if match:
            raise bad_option("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided")
        if text not in {"", "0"}:
            raise bad_request("specifying resource version is not allowed when using continue")
        revision, key = _read_token(token)
        return revision, True, key
    if match and not text:
        raise bad_option("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided")
    if match == "Exact" and text == "0":
        why = 'resourceVersionMatch "Exact" is forbidden for resourceVersion "0"'
        raise bad_option("resourceVersionMatch", why)
    if text in {"", "0"}:
        return context.store.revision, False, None
    revision = check_revision(context, text)
    if match == "Exact" or (not match and _limit(query) > 0):
        return revision, True, None
    return context.store.revision, False, None


def _limit(query: Mapping[str, str]) -> int:
    return whole_number("limit", query.get("limit") or "0")


def whole_number(name: str, text: str) -> int:
    """Return the number that a parameter is; raise a 400 if it is none."""
    if not _WHOLE.fullmatch(text):
        raise bad_request(f"{name}: Invalid value: {text!r}: must be a whole number")
    return int(text)


def _token(revision: int, last: Key) -> str:
    content = msgspec.json.encode([revision, last.namespace, last.name])
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _read_token(token: str) -> tuple[int, Key]:
    try:
        content = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        revision, namespace, name = msgspec.json.decode(content, type=tuple[int, str, str])
    except (ValueError, msgspec.DecodeError) as error:
        raise bad_request(f"continue key is not valid: {error}") from error
    return revision, Key(namespace, name)
