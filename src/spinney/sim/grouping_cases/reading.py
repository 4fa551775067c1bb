"""Grouping cases as they are in files."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from spinney.api.core import Pod
from spinney.api.struct import JSON
from spinney.grouping.owners import Owner


class GroupingCase(msgspec.Struct, frozen=True):
    """One question and what is expected as the answer."""

    id: str
    check: str
    raw: JSON
    """The whole case, as it came."""

    @property
    def rule(self) -> str:
        return str(self.raw.get("rule") or "")

    @property
    def expect(self) -> JSON:
        return dict(self.raw.get("expect") or {})

    @property
    def settings(self) -> JSON:
        return dict(self.raw.get("settings") or {})

    @property
    def arguments(self) -> JSON:
        """Return further input of the check."""
        return dict(self.raw.get("arguments") or {})

    @property
    def top_owner(self) -> Owner | None:
        """Return the owner that the rule sees."""
        return as_owner(self.raw["top_owner"]) if self.raw.get("top_owner") else None

    @property
    def pod(self) -> Pod:
        return as_pod(self.raw.get("pod") or {})

    def of_kind(self, kind: str) -> list[JSON]:
        """Return the objects of a kind that the API server holds."""
        return [each for each in self.raw.get("cluster") or () if each.get("kind") == kind]


def is_grouping_file(path: Path) -> bool:
    """Tell whether a file holds grouping cases; one that cannot be read is reported with the others."""
    try:
        raw: Any = msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError):
        return False
    return isinstance(raw, list) and bool(raw) and all(isinstance(each, dict) and "check" in each for each in raw)


def sorted_out(paths: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """Return paths of scheduler cases and files of grouping cases; directories of both are taken apart."""
    others: list[Path] = []
    grouping: list[Path] = []
    for path in paths:
        inside = sorted(path.glob("*.json")) if path.is_dir() else [path]
        found = [each for each in inside if is_grouping_file(each)]
        grouping += found
        if not found:
            others.append(path)
        else:
            others += [each for each in inside if each not in found]
    return others, grouping


def read(paths: Sequence[Path]) -> list[tuple[Path, GroupingCase]]:
    """Read files of grouping cases."""
    return [
        (path, GroupingCase(str(raw.get("id", f"{path.stem} number {number}")), str(raw["check"]), raw))
        for path in paths
        for number, raw in enumerate(msgspec.json.decode(path.read_bytes(), type=list[dict[str, Any]]), 1)
    ]


def as_owner(raw: JSON) -> Owner:
    """Return an object of a case as an owner."""
    return msgspec.convert(_plain(raw), type=Owner)


def as_pod(raw: JSON) -> Pod:
    """Return an object of a case as a pod."""
    return msgspec.convert(_plain(raw), type=Pod)


def _plain(raw: JSON) -> JSON:
    """Return an object without what the tests wrote that no API server would: null, and times that are objects."""
    metadata = {key: value for key, value in (raw.get("metadata") or {}).items() if value is not None}
    deletion = metadata.get("deletionTimestamp")
    if isinstance(deletion, dict):
        metadata["deletionTimestamp"] = deletion.get("time", "1970-01-01T00:00:00Z")
    metadata["ownerReferences"] = [
        {"apiVersion": "", "kind": "", "name": "", "uid": "", **each} for each in metadata.get("ownerReferences") or ()
    ]
    return {**{key: value for key, value in raw.items() if value is not None}, "metadata": metadata}
