"""What is kept of the objects that own pods."""

import msgspec

from spinney.grouping.owners import projection


def test_an_owner_from_a_list_knows_what_it_is() -> None:
    """An API server leaves kind and version out of the items of a list; the gang's owner reference needs both."""
    kind = projection("batch/Job", [("spec", "parallelism")], "batch/v1")
    found = msgspec.json.decode(
        b'{"metadata": {"name": "train"}, "spec": {"parallelism": 2, "suspend": true}}', type=kind
    )
    assert (found.api_version, found.kind, found.group_kind) == ("batch/v1", "Job", "batch/Job")
    assert found.spec == {"parallelism": 2}
