"""Differences between what a case expects and what we answer; a key that is absent is not asserted."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from spinney.api.struct import JSON

_OF_GROUPS: Final = frozenset({"group", "whole", "sub_groups", "delayed_launcher"})
_EMPTY: Final[tuple[Any, ...]] = (None, "", [], {}, 0)


class CaseDifference(NamedTuple):
    """Something that is not as expected."""

    key: str
    """The key of the expectation."""
    text: str

    def __str__(self) -> str:
        return self.text


def differences(check: str, expect: JSON, found: JSON) -> list[CaseDifference]:
    if check in _OF_GROUPS:
        return list(_group(expect, found))
    return [
        _difference(key, wanted, found.get(key))
        for key, wanted in expect.items()
        if not _covers(found.get(key), wanted)
    ]


def _group(expect: JSON, found: JSON) -> Iterator[CaseDifference]:
    if bool(expect.get("error")) != bool(found.get("error")):
        said = f" ({found['message']})" if found.get("message") else ""
        yield CaseDifference("error", f"error: expected {bool(expect.get('error'))}, found {found.get('error')}{said}")
        return
    if expect.get("error"):
        for word in expect.get("error_mentions", ()):
            if word not in found.get("message", ""):
                yield CaseDifference("error_mentions", f"error: expected to name {word}, found {found.get('message')}")
        return
    for key, wanted in expect.items():
        yield from _aspect(key, wanted, found)
    if expect.get("exact"):
        for key in ("queue", "priority_class", "preemptibility", "preemption_delay", "min_sub_group", "labels"):
            if key not in expect and found.get(key) not in _EMPTY:
                yield _difference(key, "nothing", found.get(key))
        if "labels" in expect and expect["labels"] != found["labels"]:
            yield _difference("labels", expect["labels"], found["labels"])
        if "annotations" in expect and expect["annotations"] != found["annotations"]:
            yield _difference("annotations", expect["annotations"], found["annotations"])


def _aspect(key: str, wanted: Any, found: JSON) -> Iterator[CaseDifference]:
    match key:
        case "error" | "exact" | "error_mentions" | "same_as_rule":
            return
        case "labels" | "annotations" | "owner" | "topology":
            own = found[key]
            differs = not _covers(own, wanted)
        case "labels_count" | "annotations_count" | "sub_group_count":
            own = len(found[{"sub_group_count": "sub_groups"}.get(key, key.removesuffix("_count"))])
            differs = own != wanted
        case "name_contains":
            own = found["name"]
            differs = not all(part in own for part in wanted)
        case "name_not" | "priority_class_not":
            own = found[key.removesuffix("_not")]
            differs = own == wanted
        case "min_sub_group_is_set":
            own = found["min_sub_group"]
            differs = (own is not None) != wanted
        case "sub_groups_present":
            own = bool(found["sub_groups"])
            differs = own != wanted
        case "sub_groups":
            yield from _sub_groups(wanted, found["sub_groups"])
            return
        case _:
            own = found.get(key)
            differs = own != wanted and not (own in _EMPTY and wanted in _EMPTY and key != "min_sub_group")
    if differs:
        yield _difference(key, wanted, own)


def _sub_groups(wanted: Sequence[JSON], found: Sequence[JSON]) -> Iterator[CaseDifference]:
    by_name = {each["name"]: each for each in found}
    for each in wanted:
        index = each.get("index")
        at_index = None if index is None else next(iter(found[index : index + 1]), None)
        own = by_name.get(each.get("name", "")) if index is None else at_index
        if own is None:
            yield CaseDifference("sub_groups", f"sub-group {each.get('name', index)}: expected to exist, found none")
            continue
        for key, value in each.items():
            if key == "index" or _same_in_sub_group(key, value, own):
                continue
            shown = own.get(key.removesuffix("_count").removesuffix("_contain"))
            yield CaseDifference(
                f"sub_groups.{key}", f"sub-group {own['name']}: {key}: expected {value}, found {shown}"
            )


def _same_in_sub_group(key: str, wanted: Any, own: JSON) -> bool:
    match key:
        case "pods_count":
            return len(own["pods"]) == int(wanted)
        case "pods_contain":
            return set(wanted) <= set(own["pods"])
        case "topology":
            return bool((own[key] is None) == (wanted is None)) and _covers(own[key] or {}, wanted or {})
        case _:
            return bool(own.get(key) == wanted)


def _covers(found: Any, wanted: Any) -> bool:
    """Tell whether what was found has everything that is wanted; empty and absent are equal."""
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        return all(_covers(found.get(key), value) for key, value in wanted.items())
    return bool(found == wanted) or (found in _EMPTY and wanted in _EMPTY and not isinstance(wanted, bool))


def _difference(key: str, wanted: Any, found: Any) -> CaseDifference:
    return CaseDifference(key, f"{key}: expected {wanted}, found {found}")
