"""Rules that hold for names, labels and annotations of every object."""

from collections.abc import Callable, Iterator, Mapping

from spinney.api.field_error import FieldError, FieldPath, duplicate, invalid, required, too_long
from spinney.api.meta import ObjectMeta
from spinney.api.names import (
    MAX_ANNOTATIONS,
    bytes_of_annotations,
    dns_label_faults,
    dns_subdomain_faults,
    label_value_faults,
    qualified_name_faults,
)


def validate_metadata(metadata: ObjectMeta) -> Iterator[FieldError]:
    """Check the name, labels and annotations of an object."""
    path = FieldPath("metadata")
    if metadata.name:
        yield from name_faults(metadata.name, path.child("name"))
    elif metadata.generate_name:
        stem = metadata.generate_name.removesuffix("-")
        yield from name_faults(stem, path.child("generateName"))
    else:
        yield required(path.child("name"), "name or generateName is required")
    if metadata.namespace:
        yield from name_faults(metadata.namespace, path.child("namespace"), dns_label_faults)
    yield from validate_labels(metadata.labels, path.child("labels"))
    yield from validate_annotations(metadata.annotations, path.child("annotations"))


def name_faults(
    name: str, path: FieldPath, check: Callable[[str], list[str]] = dns_subdomain_faults
) -> list[FieldError]:
    """Check one name by ``check``, a DNS subdomain unless said otherwise."""
    return [invalid(path, name, fault) for fault in check(name)]


def validate_labels(labels: Mapping[str, str], path: FieldPath) -> Iterator[FieldError]:
    """Check label keys and values."""
    for key, value in labels.items():
        yield from (invalid(path, key, fault) for fault in qualified_name_faults(key))
        yield from (invalid(path.key(key), value, fault) for fault in label_value_faults(value))


def validate_annotations(annotations: Mapping[str, str], path: FieldPath) -> Iterator[FieldError]:
    """Check annotation keys, and the size of all annotations together."""
    yield from (invalid(path, key, fault) for key in annotations for fault in qualified_name_faults(key.lower()))
    size = bytes_of_annotations(annotations)
    if size > MAX_ANNOTATIONS:
        yield too_long(path, f"may not be more than {MAX_ANNOTATIONS} bytes, has {size}")


def validate_own_name(name: str, taken: set[str], path: FieldPath, needed: str) -> Iterator[FieldError]:
    """Check that an item of a list has a name which those before it, ``taken``, have not; then it is taken, too."""
    if not name:
        yield required(path, needed)
    if name and name in taken:
        yield duplicate(path, name)
    taken.add(name)
