"""Reading case files: everything of the format is understood, and a bad file is named down to the field."""

import json
from pathlib import Path

import pytest

from spinney.api.struct import JSON
from spinney.sim.cases.reading import InvalidCase, read_cases
from tests.sim.cases.builders import a_case, a_job, a_node, a_queue, a_task


def written(directory: Path, *cases: object, name: str = "cases.json") -> Path:
    path = directory / name
    path.write_text(json.dumps(list(cases)))
    return path


def error(directory: Path, case: object) -> str:
    with pytest.raises(InvalidCase) as caught:
        read_cases([written(directory, case)])
    return str(caught.value)


def test_a_directory_is_read_file_by_file_in_order_of_name(tmp_path: Path) -> None:
    """A directory stands for its JSON files, in the order of their names."""
    written(tmp_path, a_case("b-0001"), name="b.json")
    written(tmp_path, a_case("a-0001"), a_case("a-0002"), name="a.json")
    files = read_cases([tmp_path])
    assert [[case.id for case in file.cases] for file in files] == [["a-0001", "a-0002"], ["b-0001"]]


def test_a_wrong_type_is_named_with_file_case_and_field(tmp_path: Path) -> None:
    """A value of the wrong type is reported with its place."""
    node = a_node()
    node["allocatable"]["gpus"] = "two"
    message = error(tmp_path, a_case(nodes=[node]))
    assert message == "cases.json: case small-0001: nodes[0].allocatable.gpus: Expected `int`, got `str`"


def test_a_missing_field_is_named(tmp_path: Path) -> None:
    """A field without a default that is missing is reported with its place."""
    job = a_job("job")
    del job["tasks"][0]["requests"]["gpu_kind"]
    message = error(tmp_path, a_case(jobs=[job]))
    assert "case small-0001: jobs[0].tasks[0].requests.gpu_kind: missing" in message


def test_an_unknown_action_is_named(tmp_path: Path) -> None:
    """An action no scheduler has is an error of the file, not an action that was not built yet."""
    assert "actions[0]: Invalid enum value 'alocate'" in error(tmp_path, a_case(actions=["alocate"]))


def part_of_a_device(name: str) -> JSON:
    """Return a task that asks for a part of a device and does not say which."""
    task = a_task(name)
    return {**task, "requests": {**task["requests"], "gpu_kind": "fraction"}}


@pytest.mark.parametrize(
    ("case", "complaint"),
    [
        (a_case(queues=[a_queue(parent="nowhere")]), "queues[0].parent: no queue or department 'nowhere'"),
        (
            a_case(jobs=[a_job("job", tasks=[a_task("job-0", state="Running", node="node7")])]),
            "jobs[0].tasks[0].node: no node 'node7'",
        ),
        (
            a_case(jobs=[a_job("job", tasks=[a_task("job-0", state="Running")])]),
            "jobs[0].tasks[0].node: a Running task must be on a node",
        ),
        (
            a_case(jobs=[a_job("job", tasks=[a_task("job-0", pod_set="other")])]),
            "jobs[0].tasks[0].pod_set: 'other', but root_group lists it in 'default'",
        ),
        (a_case(nodes=[a_node("n"), a_node("n")]), "nodes: the name 'n' is there more than once"),
        (
            a_case(jobs=[a_job("job", tasks=[part_of_a_device("job-0")])]),
            "jobs[0].tasks[0].requests.gpu_fraction: a task of kind fraction must give it",
        ),
        (
            a_case(jobs=[{**a_job("job"), "tasks": []}]),
            "jobs[0].root_group: 'job-0' is no task of the job",
        ),
    ],
)
def test_a_dangling_reference_is_named(tmp_path: Path, case: JSON, complaint: str) -> None:
    """A name that refers to nothing in the case is reported with its place."""
    assert complaint in error(tmp_path, case)


def test_null_is_absent_and_a_whole_number_may_be_a_decimal(tmp_path: Path) -> None:
    """Fields that are null have their default, and 2.0 GPUs are two."""
    node = a_node(gpu_memory=None, taints=None)
    node["allocatable"] = {**node["allocatable"], "gpus": 2.0, "mig": None}
    (file,) = read_cases([written(tmp_path, {**a_case(nodes=[node]), "topologies": None})])
    (found,) = file.cases
    assert (found.nodes[0].gpu_memory, found.nodes[0].allocatable.gpus, found.topologies) == (100, 2, ())
    assert file.warnings == ()


def test_one_bad_case_does_not_stand_for_the_file(tmp_path: Path) -> None:
    """A case that cannot be read is named with its reason; the others are there."""
    (file,) = read_cases([written(tmp_path, a_case("ok-0001"), a_case("bad-0001", nodes=[a_node(gpu_memory="much")]))])
    assert [case.id for case in file.cases] == ["ok-0001"]
    (bad,) = file.unreadable
    assert (bad.id, "nodes[0].gpu_memory: Expected `int`" in bad.reason) == ("bad-0001", True)


def test_an_unknown_field_is_a_warning(tmp_path: Path) -> None:
    """A field this version does not know is ignored, and said to be."""
    (file,) = read_cases([written(tmp_path, a_case(nodes=[a_node(colour="green")]))])
    assert file.warnings == ("cases.json: case small-0001: nodes[0].colour is not a field of the format; ignored",)


@pytest.mark.parametrize(
    ("text", "complaint"), [("{", "not JSON"), ('{"id": 1}', "a case file is a list of cases, found an object")]
)
def test_a_file_that_is_no_list_of_cases_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    """A file that is not JSON, or not a list, is refused by name."""
    path = tmp_path / "broken.json"
    path.write_text(text)
    with pytest.raises(InvalidCase, match=complaint):
        read_cases([path])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """A path that does not exist is refused by name."""
    with pytest.raises(InvalidCase, match=r"gone\.json: cannot be read"):
        read_cases([tmp_path / "gone.json"])
