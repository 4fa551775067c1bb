"""Dictionaries whose copies share what did not change."""

from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.cluster.layered import LayeredDict

Steps = st.lists(st.tuples(st.sampled_from(["set", "pop", "fork", "swap"]), st.integers(0, 12), st.integers(1, 99)))


@given(Steps)
@settings(max_examples=200)
def test_a_layered_dict_and_its_forks_are_dictionaries(steps: list[tuple[str, int, int]]) -> None:
    """Whatever is written to a dictionary and to its forks, in any order, each is what a copied one would be."""
    pairs: list[tuple[LayeredDict[int, int], dict[int, int]]] = [(LayeredDict(), {})]
    for what, key, value in steps:
        layered, plain = pairs[-1]
        match what:
            case "set":
                layered[key] = value
                plain[key] = value
            case "pop":
                assert layered.pop(key) == plain.pop(key, None)
            case "fork":
                pairs.append((layered.fork(), dict(plain)))
            case _:
                pairs.insert(0, pairs.pop())
    for layered, plain in pairs:
        assert dict(layered.items()) == plain
        assert len(layered) == len(plain)
        assert sorted(layered.values()) == sorted(plain.values())
        assert [(layered.get(key), key in layered) for key in range(13)] == [
            (plain.get(key), key in plain) for key in range(13)
        ]


def test_many_changes_since_a_fork_become_part_of_what_is_shared() -> None:
    """A dictionary that changed much since it was last copied is still right after the next copy."""
    layered: LayeredDict[int, int] = LayeredDict()
    for key in range(3000):
        layered[key] = key
    forks = [layered.fork()]
    for key in range(0, 3000, 2):
        layered.pop(key)
        layered[key + 3000] = key
    forks.append(layered.fork())
    assert (len(forks[0]), len(forks[1])) == (3000, 3000)
    assert (forks[0].get(2), forks[1].get(2), forks[1].get(3002)) == (2, None, 2)
