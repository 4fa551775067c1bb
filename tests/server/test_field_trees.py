"""Trees of fields do what sets of fields do."""

from hypothesis import given
from hypothesis import strategies as st

from spinney.server.kinds import shapes
from spinney.server.patches.fieldset import Path, fields_of, from_fields_v1, to_fields_v1
from spinney.server.patches.fieldtree import tree_of, with_paths, without_paths

_PATHS = st.lists(st.sampled_from(["f:a", "f:b", 'k:{"n":"x"}']), min_size=1, max_size=4).map(tuple)
_SETS = st.frozensets(_PATHS, max_size=8)


@given(present=_SETS, added=_SETS)
def test_adding_is_the_union(present: frozenset[Path], added: frozenset[Path]) -> None:
    """A tree with paths added is the tree of the union."""
    assert with_paths(to_fields_v1(present), added) == to_fields_v1(present | added)


@given(present=_SETS, removed=_SETS)
def test_removing_is_the_difference(present: frozenset[Path], removed: frozenset[Path]) -> None:
    """A tree with paths removed stands for the difference."""
    assert from_fields_v1(without_paths(to_fields_v1(present), removed)) == present - removed


@given(present=_SETS, removed=_SETS)
def test_arguments_are_left_alone(present: frozenset[Path], removed: frozenset[Path]) -> None:
    """The tree that is changed is another one than the one that was given."""
    tree = to_fields_v1(present)
    with_paths(without_paths(tree, removed), removed)
    assert tree == to_fields_v1(present)


def test_the_tree_of_an_object_is_that_of_its_fields() -> None:
    """Lists that are maps or sets, atomic parts and empty values are told apart in the same way."""
    pod = {
        "metadata": {"labels": {"a": "b"}, "finalizers": ["x", "y"], "annotations": {}},
        "spec": {
            "containers": [{"name": "c", "env": [{"name": "A"}], "command": ["a", "b"]}],
            "nodeSelector": {"a": "b"},
            "tolerations": [{"key": "k"}],
        },
    }
    assert tree_of(pod, shapes.POD) == to_fields_v1(fields_of(pod, shapes.POD))


def test_only_a_new_object_owns_lists_of_no_items() -> None:
    """Created with an empty list, an object has an owner of it; applied with one it has not."""
    empty = {"spec": {"tolerations": [{"key": "k"}], "containers": []}}
    assert tree_of(empty, shapes.POD)["f:spec"]["f:containers"] == {}
    assert ("f:spec", "f:containers") not in fields_of(empty, shapes.POD)
