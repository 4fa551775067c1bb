"""Writes the table of fields of the built-in kinds that the rules and the embedded server read.

Run with ``.venv/bin/python hack/fields/fields.py`` (needs Go; some minutes). ``fields.go`` reads the struct tags of
Kubernetes' published API types, once per release the server can play; here the answers become one table with a line
per type. A field that some of these releases do not have says which ones do.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "src/spinney/api/builtin_fields/kubernetes.json"
MINORS = ("1.37", "1.36", "1.35")  # newest first: where releases differ about a field, the newest is right
ORIGIN = (
    "Field numbers, names and types of the Kubernetes API types of k8s.io/api, k8s.io/apimachinery and"
    " k8s.io/apiextensions-apiserver (Apache License 2.0), read by hack/fields. type: [number, name, type, flags,"
    " patch, releases]; an empty name is inline; flag o: left out when it is empty."
)
_UNSERVED = ("alpha", "beta")
_GANGS = "scheduling.k8s.io/"
_OPTIONS = ("CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions")

Table = dict[str, Any]


def main() -> None:
    """Read every release, merge, and write the table."""
    tables = [_read(minor) for minor in MINORS]
    kinds: dict[str, str] = {}
    for table in tables:
        kinds |= {kind: type_name for kind, type_name in table["kinds"].items() if _wanted(kind) and kind not in kinds}
    kinds |= {"meta.k8s.io/v1 DeleteOptions": "meta.v1.DeleteOptions"}
    types: dict[str, list[list[Any]]] = {}
    for type_name in _reachable(list(kinds.values()), tables):
        types[type_name] = _merged([table["types"].get(type_name) for table in tables])
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text(_rendered(kinds, types))


def _read(minor: str) -> Table:
    command = ["go", "run", "../../fields/fields.go"]
    done = subprocess.run(command, cwd=ROOT / "hack/controlplane" / minor, check=True, capture_output=True)  # noqa: S603
    table: Table = json.loads(done.stdout)
    return table


def _wanted(kind: str) -> bool:
    api_version, _, name = kind.partition(" ")
    if name in _OPTIONS or name.endswith("List"):
        return False
    return api_version.startswith(_GANGS) or not any(mark in api_version for mark in _UNSERVED)


def _reachable(names: list[str], tables: list[Table]) -> list[str]:
    found: dict[str, None] = {}
    waiting = [*names, "apiextensions.v1.JSONSchemaProps"]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found[name] = None
        for table in tables:
            waiting += [_element(row[2]) for row in table["types"].get(name, ()) if "." in row[2]]
    return sorted(found)


def _element(described: str) -> str:
    return described.replace("[]", "").replace("{}", "").replace("items:", "")


def _merged(versions: list[list[list[Any]] | None]) -> list[list[Any]]:
    rows: dict[str, list[Any]] = {}
    having: dict[str, list[str]] = {}
    for minor, version in zip(MINORS, versions, strict=True):
        for row in version or ():
            key = row[1] or row[2]
            rows.setdefault(key, row)
            having.setdefault(key, []).append(minor)
    everywhere = [minor for minor, version in zip(MINORS, versions, strict=True) if version is not None]
    merged = []
    for key, row in rows.items():
        whole = [*row, "" if having[key] == everywhere else " ".join(having[key])]
        while whole[-1] == "":
            whole.pop()
        merged.append(whole)
    return sorted(merged, key=lambda row: (row[0], row[1]))


def _rendered(kinds: dict[str, str], types: dict[str, list[list[Any]]]) -> str:
    def compact(value: Any) -> str:
        return json.dumps(value, separators=(",", ":"))

    lines = [f'{{"origin":{compact(ORIGIN)},"kinds":{{']
    lines.append(",\n".join(f"{compact(kind)}:{compact(kinds[kind])}" for kind in sorted(kinds)))
    lines.append('},"types":{')
    lines.append(",\n".join(f"{compact(name)}:{compact(rows)}" for name, rows in types.items()))
    return "\n".join(lines) + "\n}}\n"


if __name__ == "__main__":
    main()
