"""JSON patches that give an existing object what it should have and leave alone what others put there."""

from collections.abc import Iterable, Mapping

from spinney.api.merge_patch import pointer
from spinney.api.struct import JSON


def of_texts(
    path: str, found: Mapping[str, str], wanted: Mapping[str, str], *, unwanted: Iterable[str] = ()
) -> list[JSON]:
    """Return the operations that put what is wanted into a map of texts, and what is unwanted out."""
    lacking = {key: text for key, text in wanted.items() if found.get(key) != text}
    if lacking and not found:
        return [{"op": "add", "path": path, "value": lacking}]
    patch: list[JSON] = [{"op": "add", "path": pointer(path, key), "value": text} for key, text in lacking.items()]
    return patch + [
        {"op": "remove", "path": pointer(path, key)} for key in unwanted if key in found and key not in wanted
    ]


def of_fields(path: str, found: JSON, wanted: JSON) -> list[JSON]:
    """Return the operations that make the fields of an object exactly those wanted, each replaced as a whole."""
    patch: list[JSON] = []
    for field in sorted(found.keys() | wanted.keys()):
        if field not in wanted:
            patch.append({"op": "remove", "path": pointer(path, field)})
        elif field not in found or found[field] != wanted[field]:
            patch.append({"op": "add", "path": pointer(path, field), "value": wanted[field]})
    return patch


def of_members(path: str, found: tuple[str, ...], wanted: tuple[str, ...]) -> list[JSON]:
    """Return the operations that add what a list of texts lacks."""
    lacking = [text for text in wanted if text not in found]
    if lacking and not found:
        return [{"op": "add", "path": path, "value": lacking}]
    return [{"op": "add", "path": f"{path}/-", "value": text} for text in lacking]
