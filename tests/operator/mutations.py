"""Workloads with one thing changed: every field of a manifest in turn made wrong, and manifests made bigger or odder.

:func:`mistakes` touches each field once for every way in which people get fields wrong; whether the outcome is still
valid is not its concern. :func:`variations` yields manifests that are meant to be valid. Both are deterministic, so
that a variant is known by its name.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from spinney.api.struct import JSON

Step = str | int
Path = tuple[Step, ...]
Change = Callable[[Any, Step], None]

REFERENCES: Final = {
    "startsAfter",
    "cliqueNames",
    "childCliqueNames",
    "childScalingGroupNames",
    "required",
    "preferred",
    "topologyName",
}
"""Fields whose texts name something that has to exist."""
INT32, INT64 = 2**31, 2**63


@dataclass(frozen=True)
class Variant:
    """A manifest with something changed at ``path``; it is only made when asked for."""

    name: str
    path: Path
    original: JSON
    edit: Callable[[JSON], object]

    @property
    def manifest(self) -> JSON:
        """Return the changed manifest, which is the caller's."""
        changed = copy.deepcopy(self.original)
        self.edit(changed)
        return changed


def mistakes(manifest: JSON) -> Iterator[Variant]:
    """Yield the manifest with one field changed, for each field and each way to get it wrong."""
    for path, value in _places(manifest, ()):
        for what, place, change in _changes(path, value):
            yield Variant(f"{spelled(path)}: {what}", path, manifest, partial(_at, place, change))


def _changes(path: Path, value: Any) -> Iterator[tuple[str, Path, Change]]:
    if isinstance(path[-1], str):
        yield "left out", path, _drop
        yield "misspelt", path, _misspell
    for what, wrong in _wrong(path, value):
        yield what, path, _setting(wrong)
    if isinstance(value, dict):
        yield "a stranger in it", (*path, "stranger"), _setting("x")
    if isinstance(value, list) and value:
        yield "last item twice", path, _setting([*value, value[-1]])
    if len(_names(value)) > 1:
        yield "names swapped", path, _swap


def spelled(path: Path) -> str:
    """Return a path as people write it."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def _places(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if path:
        yield path, value
    inner: list[tuple[Step, Any]] = []
    if isinstance(value, dict):
        inner = [*value.items()]
    elif isinstance(value, list):
        inner = [*enumerate(value)]
        inner = inner[:1] + inner[1:][-1:]  # those between are like the first and the last
    for step, part in inner:
        yield from _places(part, (*path, step))


def _wrong(path: Path, value: Any) -> Iterator[tuple[str, Any]]:
    yield "null", None
    if isinstance(value, bool):
        yield from (("text", "yes"), ("a number", 1))
    elif isinstance(value, int):
        yield from (("text", "several"), ("negative", -1), ("zero", 0), ("a fraction", 1.5))
        yield from (("above 32 bits", INT32), ("above 64 bits", INT64))
    elif isinstance(value, str):
        yield from (("a number", 7), ("a list", [value]), ("empty", ""), ("no name", "Not a Name!"))
        yield from (("padded", f" {value} "), ("very long", "x" * 300), ("not ASCII", "wörker-✓"))
        if REFERENCES & set(path):
            yield "dangling", "nobody"
    elif isinstance(value, list):
        yield from (("empty", []), ("text", "x"), ("an object", {"x": 1}), ("of null", [None]), ("of text", ["x"]))
    else:
        yield from (("empty", {}), ("text", "x"), ("a list", [value]), ("a number", 5))


def _at(path: Path, change: Change, manifest: JSON) -> None:
    around: Any = manifest
    for step in path[:-1]:
        around = around[step]
    change(around, path[-1])


def _setting(value: Any) -> Change:
    def put(around: Any, step: Step) -> None:
        around[step] = copy.deepcopy(value)

    return put


def _drop(around: Any, step: Step) -> None:
    del around[step]


def _misspell(around: Any, step: Step) -> None:
    around[f"{str(step)[:-1]}"] = around.pop(step)


def _names(value: Any) -> list[str]:
    if not isinstance(value, list):
        return []
    return [item["name"] for item in value if isinstance(item, dict) and isinstance(item.get("name"), str)]


def _swap(around: Any, step: Step) -> None:
    first, second = around[step][:2]
    first["name"], second["name"] = second["name"], first["name"]


def variations(manifest: JSON) -> Iterator[Variant]:
    """Yield the manifest made bigger, smaller or odder in ways that are all allowed."""
    for name, edit in _VARIATIONS.items():
        variant = Variant(name, (), manifest, edit)
        if variant.manifest != manifest:
            yield variant


def _template(pcs: JSON) -> JSON:
    template: JSON = pcs["spec"]["template"]
    return template


def _grouped(pcs: JSON) -> set[str]:
    return {name for group in _template(pcs).get("podCliqueScalingGroups", ()) for name in group["cliqueNames"]}


def _standalone(pcs: JSON) -> list[JSON]:
    return [clique for clique in _template(pcs)["cliques"] if clique["name"] not in _grouped(pcs)]


def _scheduled_by(name: str) -> Callable[[JSON], None]:
    def edit(pcs: JSON) -> None:
        pcs["metadata"].setdefault("labels", {}).setdefault("kai.scheduler/queue", "test")
        for clique in _template(pcs)["cliques"]:
            clique["spec"]["podSpec"]["schedulerName"] = name

    return edit


def _minimums(value: int | None) -> Callable[[JSON], None]:
    def edit(pcs: JSON) -> None:
        for clique in _template(pcs)["cliques"]:
            clique["spec"].pop("minAvailable", None)
            if value is not None:
                clique["spec"]["minAvailable"] = value
                clique["spec"].setdefault("replicas", 2)
            if "autoScalingConfig" in clique["spec"]:
                clique["spec"]["autoScalingConfig"].pop("minReplicas", None)

    return edit


def _chained(pcs: JSON) -> None:
    _template(pcs)["cliqueStartupType"] = "CliqueStartupTypeExplicit"
    before: list[str] = []
    for clique in _template(pcs)["cliques"]:
        clique["spec"]["startsAfter"] = before
        before = [clique["name"]]


def _scaled(pcs: JSON) -> None:
    target = {"type": "Utilization", "averageUtilization": 80}
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    for clique in _standalone(pcs):
        most = clique["spec"].get("replicas", 1) + 3
        clique["spec"]["autoScalingConfig"] = {"maxReplicas": most, "metrics": [metric]}


def _odd_texts(pcs: JSON) -> None:
    labels = {"empty": "", "x.y/Z_0": "A-b_c.9", "k" * 63: "v" * 63}
    annotations = {"UPPER.case/Key": "", "text": 'täxt\n\t{"json": [1]} ✓', "long": "x" * 5000}
    for part in (pcs["metadata"], *_template(pcs)["cliques"]):
        part["labels"] = {**part.get("labels", {}), **labels}
        part["annotations"] = {**part.get("annotations", {}), **annotations}


def _long_name(pcs: JSON) -> None:
    groups = {
        name: group["name"]
        for group in _template(pcs).get("podCliqueScalingGroups", ())
        for name in group["cliqueNames"]
    }
    longest = max(len(each["name"]) + len(groups.get(each["name"], "")) for each in _template(pcs)["cliques"])
    if "resourceSharing" not in str(pcs):  # the names of claims have a limit of their own
        pcs["metadata"]["name"] = "n" * (45 - longest)


def _many_cliques(pcs: JSON) -> None:
    first = _template(pcs)["cliques"][0]
    for number in range(9):
        spec = {**copy.deepcopy(first["spec"]), "roleName": f"extra-{number}", "replicas": 1, "minAvailable": 1}
        spec.pop("autoScalingConfig", None)
        spec.pop("startsAfter", None)
        _template(pcs)["cliques"].append({"name": f"c{number}", "labels": first.get("labels", {}), "spec": spec})


def _grouping(pcs: JSON) -> None:
    cliques = [each for each in _standalone(pcs) if "autoScalingConfig" not in each["spec"]]
    if cliques:
        group = {"name": "more", "cliqueNames": [each["name"] for each in cliques], "replicas": 2, "minAvailable": 1}
        _template(pcs).setdefault("podCliqueScalingGroups", []).append(group)


_VARIATIONS: Final[dict[str, Callable[[JSON], None]]] = {
    "two replicas": lambda pcs: pcs["spec"].update(replicas=2),
    "no replicas": lambda pcs: pcs["spec"].update(replicas=0),
    "by spinney-scheduler": _scheduled_by("spinney-scheduler"),
    "by kai-scheduler": _scheduled_by("kai-scheduler"),
    "one pod will do": _minimums(1),
    "no minimum given": _minimums(None),
    "in order": lambda pcs: _template(pcs).update(cliqueStartupType="CliqueStartupTypeInOrder"),
    "one after the other": _chained,
    "autoscaled": _scaled,
    "odd labels and annotations": _odd_texts,
    "as long a name as may be": _long_name,
    "many cliques": _many_cliques,
    "a group more": _grouping,
    "updated on deletion": lambda pcs: pcs["spec"].update(updateStrategy={"type": "OnDelete"}),
    "patient": lambda pcs: _template(pcs).update(terminationDelay="1h30m"),
    "a service for ready pods": lambda pcs: _template(pcs).update(
        headlessServiceConfig={"publishNotReadyAddresses": False}
    ),
}
