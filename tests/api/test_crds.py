"""The custom resource definitions: in step with the types, and of the form an API server accepts."""

from collections.abc import Iterator
from pathlib import Path

import jsonschema_rs
import pytest
from click.testing import CliRunner

from spinney.api.schema.crd import KINDS, CustomKind, definition, manifest_text, manifests
from spinney.api.schema.structural import NotStructural, structural_schema
from spinney.api.struct import JSON, Struct, to_json
from spinney.cli.commands.changing import OWNERS as WHOSE
from spinney.cli.commands.changing import crds
from tests.api.samples import DATA
from tests.workloads.files import WORKLOADS, documents

COMMITTED = Path(__file__).parents[2] / "deploy" / "crds"
FORBIDDEN_KEYWORDS = {"$ref", "oneOf", "allOf", "not", "const", "definitions", "additionalItems", "patternProperties"}


def name_of(value: object) -> str | None:
    """Name a parameter for the test report."""
    return value.crd_name if isinstance(value, CustomKind) else None


def schema_of(kind: CustomKind) -> JSON:
    """Return the schema in the manifest of a kind."""
    schema: JSON = to_json(definition(kind))["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def nodes(schema: JSON, path: str = "") -> Iterator[tuple[str, JSON]]:
    """Walk every schema inside a schema, with its path."""
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from nodes(schema[key], f"{path}[]")


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_committed_manifests_are_those_of_the_types(kind: CustomKind) -> None:
    """The file under deploy/crds is what the types give; if not, run `make crds`."""
    assert (COMMITTED / kind.file_name).read_text(encoding="utf-8") == manifest_text(kind)


def test_no_other_manifests_are_committed() -> None:
    """Each file under deploy/crds belongs to a kind."""
    assert {path.name for path in COMMITTED.iterdir()} == {kind.file_name for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_schemas_are_structural(kind: CustomKind) -> None:
    """Every node has a type or may hold anything, and nothing uses what structural schemas forbid."""
    for path, node in nodes(schema_of(kind)):
        typed = (
            "type" in node or node.get("x-kubernetes-int-or-string") or node.get("x-kubernetes-preserve-unknown-fields")
        )
        assert typed, path
        assert not FORBIDDEN_KEYWORDS & set(node), path


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_keys_of_list_maps_are_always_there(kind: CustomKind) -> None:
    """A field that tells items of a list apart is required in each."""
    for path, node in nodes(schema_of(kind)):
        for key in node.get("x-kubernetes-list-map-keys", []):
            assert key in node["items"]["required"], path


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_defaults_are_valid(kind: CustomKind) -> None:
    """What the API server fills in passes the schema it is filled in by."""
    for path, node in nodes(schema_of(kind)):
        if "default" in node:
            assert jsonschema_rs.is_valid(node, node["default"]), path


def of_kind(kind: CustomKind, found: list[JSON]) -> list[JSON]:
    wanted = (kind.resource.api_version, kind.resource.kind)
    return [document for document in found if (document["apiVersion"], document["kind"]) == wanted]


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_samples_pass_their_schema(kind: CustomKind) -> None:
    """An object with every field set passes the schema of its kind, and no field of it is unknown there."""
    own = [document for path in sorted(DATA.glob("*.yaml")) for document in documents(path)]
    published = [document for path in sorted(WORKLOADS.glob("*.yaml")) for document in documents(path)]
    validator = jsonschema_rs.validator_for(closed(schema_of(kind)))
    assert of_kind(kind, own)
    for document in of_kind(kind, own + published):
        assert [error.message for error in validator.iter_errors(document)] == []


def closed(schema: JSON) -> JSON:
    """Return a schema that refuses fields it does not know, where an API server would drop them."""
    tightened = {key: value for key, value in schema.items() if key != "format"}
    for key in ("items", "additionalProperties"):
        if key in schema:
            tightened[key] = closed(schema[key])
    if "properties" in schema:
        tightened["properties"] = {
            name: child if name == "metadata" else closed(child) for name, child in schema["properties"].items()
        }
        tightened["additionalProperties"] = False
    return tightened


def test_a_pod_spec_is_left_open() -> None:
    """Whatever stands in a pod spec reaches the pod: the API server is told not to prune it."""
    found = dict(nodes(schema_of(KINDS[0])))
    pod_spec = found[".spec.template.cliques[].spec.podSpec"]
    assert (pod_spec["type"], pod_spec["x-kubernetes-preserve-unknown-fields"]) == ("object", True)
    assert "properties" not in pod_spec


def test_topology_constraints_carry_their_rules_at_each_level() -> None:
    """The set, its groups and its cliques have the same CEL rules for a constraint."""
    found = dict(nodes(schema_of(KINDS[0])))
    rules = [
        found[f".spec.template{level}.topologyConstraint"]["x-kubernetes-validations"]
        for level in ("", ".cliques[]", ".podCliqueScalingGroups[]")
    ]
    assert rules[0] == rules[1] == rules[2]
    assert [rule.get("reason") for rule in rules[0]] == [None, None, "FieldValueForbidden"]


def test_scale_subresources_point_at_fields_that_exist() -> None:
    """HPAs find replicas and selector where the definition says."""
    scaled = [kind for kind in KINDS if kind.scale is not None]
    assert [kind.resource.kind for kind in scaled] == ["PodCliqueSet", "PodClique", "PodCliqueScalingGroup"]
    for kind in scaled:
        found = dict(nodes(schema_of(kind)))
        assert kind.scale is not None
        for path in (kind.scale.spec_replicas_path, kind.scale.status_replicas_path, kind.scale.label_selector_path):
            assert path in found


def test_manifests_belong_to_the_caller() -> None:
    """Changing a manifest does not change the next one."""
    manifests()[0]["spec"].clear()
    assert manifests()[0]["spec"]["group"] == "grove.io"


def test_a_type_no_schema_describes_is_refused() -> None:
    """The generator fails on a union that structural schemas cannot express, instead of guessing."""

    class Odd(Struct, frozen=True, kw_only=True):
        either: bool | str

    with pytest.raises(NotStructural, match="union of"):
        structural_schema(Odd)


def test_the_command_writes_what_is_committed(tmp_path: Path) -> None:
    """`spinney crds` prints Grove's manifests or whose one asks for, and with --output writes one file per kind."""
    result = CliRunner().invoke(crds, ["--of", "all", "--output", str(tmp_path / "out")])
    assert result.exit_code == 0
    written = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "out").iterdir()}
    assert written == {kind.file_name: manifest_text(kind) for kind in KINDS}
    printed = CliRunner().invoke(crds).output
    assert printed == "".join(manifest_text(kind) for kind in KINDS if kind.resource.group.endswith("grove.io"))
    volcanos = CliRunner().invoke(crds, ["--of", "volcano"]).output
    assert volcanos == "".join(manifest_text(kind) for kind in KINDS if "volcano" in kind.resource.group)
    assert set(WHOSE) == {kind.owner for kind in KINDS}
