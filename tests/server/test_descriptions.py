"""What ``kubectl explain`` says about built-in kinds."""

from spinney.api.builtin_fields.table import field_table
from spinney.server.about.descriptions import DESCRIBED, OF_ALL
from spinney.server.about.descriptions.texts import ITSELF
from tests.server.api import an_api

_RELEASES = ("1.35", "1.36", "1.37")
_VERSIONS = ("v1", "v1beta1", "v1alpha3", "v1alpha2", "v1alpha1")


def _fields_of(name: str) -> set[str]:
    """Return the fields that a type has in any version and release."""
    group, _, kind = name.partition(".")
    found: set[str] = set()
    for release in _RELEASES:
        for version in _VERSIONS:
            try:
                found |= set(field_table(release).message(f"{group}.{version}.{kind}").by_name)
            except KeyError:
                continue
    return found


def test_texts_are_about_what_there_is() -> None:
    """Every text is about a type and a field that Kubernetes has, and is a sentence or two."""
    for name, texts in DESCRIBED.items():
        assert texts[ITSELF], name
        assert not set(texts) - {ITSELF} - _fields_of(name), name
        for text in texts.values():
            assert text[0].isalnum(), text
            assert text.endswith((".", "...")), text
            assert len(text) <= 120, text


def test_a_pod_and_a_group_have_a_text_for_every_field() -> None:
    """What is looked up most is described whole in the newest release, fields of all objects included."""
    table = field_table("1.37")
    for name in ("core.v1.Pod", "core.v1.PodSpec", "core.v1.Container", "core.v1.NodeSpec", "core.v1.ServiceSpec"):
        texts = DESCRIBED[name.replace(".v1", "")]
        assert not set(table.message(name).by_name) - set(texts) - set(OF_ALL), name
    for kind in ("PodGroup", "PodGroupSpec", "PodGroupStatus", "Workload", "WorkloadSpec"):
        fields = table.message(f"scheduling.v1beta1.{kind}").by_name
        assert not set(fields) - set(DESCRIBED[f"scheduling.{kind}"]) - set(OF_ALL), kind


async def test_the_documents_have_the_texts() -> None:
    """The schemas that clients read say what a kind and its fields are for; a condition's status is no kind's."""
    document = await an_api().get("/openapi/v3/api/v1")
    schemas = document["components"]["schemas"]
    pod, spec = schemas["io.k8s.api.core.v1.Pod"], schemas["io.k8s.api.core.v1.PodSpec"]
    assert pod["description"] == DESCRIBED["core.Pod"][ITSELF]
    assert pod["properties"]["kind"]["description"] == OF_ALL["kind"]
    assert spec["properties"]["schedulingGates"]["description"] == DESCRIBED["core.PodSpec"]["schedulingGates"]
    assert "description" not in schemas["io.k8s.api.core.v1.PodCondition"]["properties"]["status"]
