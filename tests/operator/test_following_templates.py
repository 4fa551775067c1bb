"""Labels and annotations of a set's templates reach what is made from them, also when they change or go."""

import pytest

from spinney.api import labels as marks
from spinney.api.core import POD
from spinney.api.grove import ON_DELETE, POD_CLIQUE, POD_CLIQUE_SCALING_GROUP, ROLLING_RECREATE, PodCliqueSet
from spinney.api.podgang import POD_GANG
from spinney.api.resource import Resource
from spinney.testing.builders import a_clique, a_pod_clique_set, a_scaling_group
from tests.operator.harness import World, given_a_world


def workload(strategy: str, tags: dict[str, str], of_group: dict[str, str] | None = None) -> PodCliqueSet:
    """Return a set whose cliques carry tags as labels and annotations, and whose group has annotations."""
    cliques = [a_clique(name, labels=tags, annotations=tags) for name in ("alone", "member")]
    groups = [a_scaling_group("g", ["member"], annotations=of_group or {})]
    return a_pod_clique_set("model", cliques, groups, strategy=strategy)


async def tags(world: World, resource: Resource) -> list[tuple[dict[str, str], dict[str, str]]]:
    """Return the tags of every object of a kind, as labels and as annotations."""
    found = [each["metadata"] for each in (await world.client.list(resource, world.namespace)).items]
    return [
        tuple(  # type: ignore[misc]
            {key: text for key, text in each.get(kind, {}).items() if key.startswith("tag/")}
            for kind in ("labels", "annotations")
        )
        for each in found
    ]


@pytest.mark.parametrize("strategy", [ROLLING_RECREATE, ON_DELETE])
@given_a_world
async def test_a_tag_that_goes_from_the_template_goes_from_the_pods(world: World, strategy: str) -> None:
    """New pods have exactly the labels and annotations of the template in force, not those of the one before."""
    await world.bring_up(workload(strategy, {"tag/old": "1", "tag/both": "1"}))
    after = {"tag/both": "2", "tag/new": "1"}
    await world.bring_up(workload(strategy, after), 60)
    if strategy == ON_DELETE:
        for pod in await world.pods():
            await world.client.delete(POD, pod.metadata.name, world.namespace)
        await world.settle()
    assert await tags(world, POD_CLIQUE) == [(after, after)] * 2
    assert await tags(world, POD) == [(after, after)] * 2


@given_a_world
async def test_what_somebody_else_puts_on_a_clique_stays(world: World) -> None:
    """Labels of others are left alone as long as the template does not change."""
    await world.bring_up(workload(ROLLING_RECREATE, {}))
    patch = {"metadata": {"labels": {"tag/theirs": "1"}}}
    await world.client.patch(POD_CLIQUE, "model-0-alone", patch, world.namespace)
    scaled = workload(ROLLING_RECREATE, {})
    await world.bring_up(scaled)
    assert ({"tag/theirs": "1"}, {}) in await tags(world, POD_CLIQUE)


@given_a_world
async def test_a_scaling_group_has_the_annotations_of_its_template(world: World) -> None:
    """Annotations that a group gets later reach it, without a pod being touched."""
    await world.bring_up(workload(ROLLING_RECREATE, {}, {"tag/a": "1"}))
    before = {pod.metadata.uid for pod in await world.pods()}
    assert await tags(world, POD_CLIQUE_SCALING_GROUP) == [({}, {"tag/a": "1"})]
    await world.bring_up(workload(ROLLING_RECREATE, {}, {"tag/a": "2", "tag/b": "1"}))
    assert await tags(world, POD_CLIQUE_SCALING_GROUP) == [({}, {"tag/a": "2", "tag/b": "1"})]
    assert {pod.metadata.uid for pod in await world.pods()} == before


@given_a_world
async def test_a_topology_named_in_an_annotation_of_a_clique_is_not_passed_on(world: World) -> None:
    """The annotation that names a gang's topology is the operator's alone."""
    clique = a_clique("a", annotations={marks.TOPOLOGY_NAME: "mine", "tag/a": "1"})
    await world.bring_up(a_pod_clique_set("model", [clique]))
    for resource in (POD_CLIQUE, POD):
        (found,) = (await world.client.list(resource, world.namespace)).items
        assert marks.TOPOLOGY_NAME not in found["metadata"]["annotations"]
        assert found["metadata"]["annotations"]["tag/a"] == "1"


@given_a_world
async def test_a_gang_loses_what_its_set_loses(world: World) -> None:
    """Labels and annotations of a set are its gangs', and go with it; what others put on a gang stays."""
    both = {"tag/a": "1", "tag/b": "1"}
    await world.bring_up(a_pod_clique_set("model", labels=both, annotations=both))
    assert await tags(world, POD_GANG) == [(both, both)]
    theirs = {"metadata": {"annotations": {"tag/theirs": "1"}}}
    await world.client.patch(POD_GANG, "model-0", theirs, world.namespace)
    await world.bring_up(a_pod_clique_set("model", labels={"tag/a": "1"}, annotations={"tag/b": "1"}))
    assert await tags(world, POD_GANG) == [({"tag/a": "1"}, {"tag/b": "1", "tag/theirs": "1"})]
