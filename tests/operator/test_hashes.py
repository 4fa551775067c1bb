"""Template hashes: stable for ever, sensitive to what reaches pods, and Grove's own adopted."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api import labels as marks
from spinney.api.grove import POD_CLIQUE, POD_CLIQUE_SET, PodCliqueSet, PodCliqueTemplateSpec
from spinney.backends import additions
from spinney.operator.desired.hashes import adoption, digest, is_ours, template_hashes
from spinney.operator.desired.layout import Layout
from spinney.operator.desired.podcliques import desired_clique
from spinney.testing.builders import a_clique, a_pod_clique_set, a_pod_spec
from tests.operator.harness import a_world
from tests.operator.test_pod_manifests import OWNER
from tests.operator.test_rolling_updates import changed
from tests.virtual_time import on_virtual_time

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def test_hashes_never_change() -> None:
    """These exact values are recorded on objects in clusters; a change of them would roll every pod."""
    pcs = a_pod_clique_set("model", [a_clique("worker", 2), a_clique("leader", 1, labels={"a": "b"})])
    hashes = template_hashes(pcs)
    assert hashes.generation == "s19crxxwlcbb"
    assert hashes.cliques == {"worker": "s1zl4dpg9gpx", "leader": "s1cbcp5fzlql"}


@given(JSON_VALUES)
def test_the_order_of_keys_does_not_matter(value: object) -> None:
    """Equal JSON has equal digests, in whatever order its keys were written."""

    def reversed_keys(part: object) -> object:
        if isinstance(part, dict):
            return {key: reversed_keys(part[key]) for key in reversed(list(part))}
        return [reversed_keys(each) for each in part] if isinstance(part, list) else part

    assert digest(value) == digest(reversed_keys(value))


def test_what_reaches_pods_counts_and_nothing_else() -> None:
    """Image, labels, annotations and priority change a clique's hash; replicas, minimum and topology do not."""

    def of(clique: PodCliqueTemplateSpec, **options: str) -> str:
        return template_hashes(a_pod_clique_set("model", [clique], **options)).cliques["worker"]  # type: ignore[arg-type]

    base = of(a_clique("worker", 2))
    assert of(a_clique("worker", 5, 1, required="rack")) == base
    different = [
        of(a_clique("worker", 2, pod_spec=a_pod_spec(image="other"))),
        of(a_clique("worker", 2, labels={"a": "b"})),
        of(a_clique("worker", 2, annotations={"a": "b"})),
        of(a_clique("worker", 2), priority_class="high"),
    ]
    assert len({base, *different}) == 5


def groves(pcs: PodCliqueSet, *, observed: int) -> PodCliqueSet:
    """Return a set as Grove left it: with its own hash on record."""
    status = msgspec.structs.replace(pcs.status, current_generation_hash="zx9v8d", observed_generation=observed)
    metadata = msgspec.structs.replace(pcs.metadata, generation=3)
    return msgspec.structs.replace(pcs, metadata=metadata, status=status)


def test_groves_hashes_are_adopted_for_the_templates_it_had_synced() -> None:
    """Adopted hashes stand for the same templates; a template that changes later gets one of ours."""
    pcs = a_pod_clique_set("model", [a_clique("a"), a_clique("b")])
    left = groves(pcs, observed=3)
    layout = Layout(left)
    cliques = [desired_clique(layout, place, f"grove{place.template.name}", OWNER) for place in layout.standalone(0)]
    recorded = adoption(left, cliques)
    assert recorded is not None
    metadata = msgspec.structs.replace(left.metadata, annotations={additions.ADOPTED_HASHES: recorded})
    taken = msgspec.structs.replace(left, metadata=metadata)
    hashes = template_hashes(taken)
    assert hashes.generation == "zx9v8d"
    assert hashes.cliques == {"a": "grovea", "b": "groveb"}
    later = template_hashes(changed(taken, "a"))
    assert is_ours(later.generation)
    assert is_ours(later.cliques["a"])
    assert later.cliques["b"] == "groveb"
    assert adoption(taken, cliques) is None


@pytest.mark.parametrize("written", ["", "{", "[]", '{"a": {"b": 1}}', "[" * 5000])
def test_a_record_that_cannot_be_read_adopts_nothing(written: str) -> None:
    """Whoever may annotate a set may write anything there: its hashes are ours then, and it is reconciled."""
    pcs = a_pod_clique_set("model")
    metadata = msgspec.structs.replace(pcs.metadata, annotations={additions.ADOPTED_HASHES: written})
    assert template_hashes(msgspec.structs.replace(pcs, metadata=metadata)) == template_hashes(pcs)


def test_a_change_grove_had_not_synced_is_not_adopted() -> None:
    """What changed while nobody was in charge rolls as the change it is."""
    assert adoption(groves(a_pod_clique_set("model"), observed=2), []) is None


@on_virtual_time
async def test_taking_over_from_grove_rolls_no_pod() -> None:
    """Objects with Grove's hashes keep their pods when the operator starts, and roll on the next change."""
    async with a_world() as world:
        pcs = a_pod_clique_set("model", [a_clique("worker", 2)])
        await world.bring_up(pcs)
        server = world.server
        names = [pod.metadata.name for pod in await world.pods()]
    async with a_world(server=server, placing=False) as bare:
        bare.operator.stop()
        await bare.settle(1)
        client = bare.client
        for name in names:
            patch = {"metadata": {"labels": {marks.POD_TEMPLATE_HASH: "grovehash"}}}
            await client.patch(bare.operator.caches.pods.resource, name, patch, "test")
        status = {"status": {"currentPodTemplateHash": "grovehash", "currentPodCliqueSetGenerationHash": "zx9v"}}
        labels = {"metadata": {"labels": {marks.POD_TEMPLATE_HASH: "grovehash"}}}
        await client.patch(POD_CLIQUE, "model-0-worker", labels, "test")
        await client.patch(POD_CLIQUE, "model-0-worker", status, "test", subresource="status")
        generation = {"status": {"currentGenerationHash": "zx9v"}}
        await client.patch(POD_CLIQUE_SET, "model", generation, "test", subresource="status")
    async with a_world(server=server) as world:
        before = {pod.metadata.uid for pod in await world.pods()}
        await world.settle(30)
        assert {pod.metadata.uid for pod in await world.pods()} == before
        await world.bring_up(changed(pcs, "worker"), 30)
        assert not {pod.metadata.uid for pod in await world.pods()} & before
