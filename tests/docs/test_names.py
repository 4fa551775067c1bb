"""A class name means one thing: where a name stands twice, it is a noun of somebody's API."""

import re
from collections import defaultdict
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "spinney"

API_NOUNS = {
    # Kinds that several API groups have, each in its group's module: Kubernetes (three versions), KAI, Volcano,
    # scheduler-plugins, Grove, Kueue.
    "PodGroup",
    "PodGroupSpec",
    "PodGroupStatus",
    "PodGroupTemplate",
    "Queue",
    "QueueSpec",
    "QueueStatus",
    "TopologyLevel",
    "Workload",
    "WorkloadSpec",
    # A noun of Kubernetes' API and a noun of a scheduler's framework, which plugin authors know by that name.
    "Event",  # the object that people read; KAI's word to plugins that a task was placed
    "PodAffinity",  # the field of a pod; KAI's plugin
    "PodStatus",  # the block of a pod; KAI's states of a task
    "Status",  # the answer of an API server; the answer of a plugin of kube-scheduler
    # A plugin that both schedulers have, by the name that it has in kube-scheduler and in KAI.
    "DynamicResources",
    # What users import from a package, and what other users import from another.
    "NodeSpec",  # Kubernetes' block of a node; a simulated node in a cluster description
    "Profile",  # of kube-scheduler: plugins in order; of Grove: a backend that is enabled
    "Request",  # HTTP's, as the client sends it; as the embedded server gets it
    "Response",
}
FLAGS = re.MULTILINE | re.DOTALL
QUALIFIED = PACKAGE / "sim" / "cases" / "format.py"
"""The nouns of the case files; where such a noun stands elsewhere, too, it is written with its module: `cases.Node`."""


@cache
def class_names() -> dict[str, list[Path]]:
    """Return the modules that define each class."""
    found: defaultdict[str, list[Path]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for name in re.findall(r"^class (\w+)", path.read_text(), re.MULTILINE):
            found[name].append(path)
    return found


def test_a_public_class_name_means_one_thing() -> None:
    """A reader who meets a name need not look where it was imported from; what may stand twice is listed, with why."""
    twice = {
        name
        for name, paths in class_names().items()
        if not name.startswith("_") and len([path for path in paths if path != QUALIFIED]) > 1
    }

    assert twice == API_NOUNS


def test_nouns_of_the_case_files_are_told_from_others() -> None:
    """`Node` is Kubernetes' own; the node of a case file is `cases.Node`."""
    twice = {name for name, paths in class_names().items() if QUALIFIED in paths and len(paths) > 1}
    imported = {
        name.strip(" ,\n")
        for path in (PACKAGE / "sim").rglob("*.py")
        for names in re.findall(r"from spinney\.sim\.cases\.format import (\(.*?\)|.*?$)", path.read_text(), FLAGS)
        for name in names.strip("()").split(",")
    }

    assert {"Node", "Queue"} < twice
    assert "Case" in imported
    assert not twice & imported


def test_private_classes_of_one_package_have_different_names() -> None:
    """A reader of a whole package meets each name once."""
    twice = {
        name: [str(path.relative_to(PACKAGE)) for path in paths]
        for name, paths in class_names().items()
        if name.startswith("_") and len({path.parent for path in paths}) < len(paths)
    }

    assert not twice
