"""Rules that hold for names, labels and annotations of every object."""

from collections.abc import Callable, Mapping
from typing import Final

from spinney.api.field_error import FieldError, FieldPath, duplicate, invalid, required, too_long
from spinney.api.meta import ObjectMeta
from spinney.api.names import dns_label_faults, dns_subdomain_faults, label_value_faults, qualified_name_faults

MAX_ANNOTATIONS_BYTES: Final = 256 * 1024


def validate_metadata(metadata: ObjectMeta) -> list[FieldError]:
    """Check the name, labels and annotations of an object."""
    path = FieldPath("metadata")
    errors = []
    if metadata.name:
        errors += name_faults(metadata.name, path.child("name"))
    elif metadata.generate_name:
        stem = metadata.generate_name.removesuffix("-")
        errors += name_faults(stem, path.child("generateName"))
    else:
        errors.append(required(path.child("name"), "name or generateName is required"))
    if metadata.namespace:
        errors += name_faults(metadata.namespace, path.child("namespace"), dns_label_faults)
    errors += validate_labels(metadata.labels, path.child("labels"))
    errors += validate_annotations(metadata.annotations, path.child("annotations"))
    return errors


def name_faults(
    name: str, path: FieldPath, check: Callable[[str], list[str]] = dns_subdomain_faults
) -> list[FieldError]:
    """Check one name by ``check``, a DNS subdomain unless said otherwise."""
    return [invalid(path, name, fault) for fault in check(name)]


def validate_labels(labels: Mapping[str, str], path: FieldPath) -> list[FieldError]:
    """Check label keys and values."""
    errors = []
    for key, value in labels.items():
        errors += [invalid(path, key, fault) for fault in qualified_name_faults(key)]
        errors += [invalid(path.key(key), value, fault) for fault in label_value_faults(value)]
    return errors


def validate_annotations(annotations: Mapping[str, str], path: FieldPath) -> list[FieldError]:
    """Check annotation keys, and the size of all annotations together."""
    errors = [invalid(path, key, fault) for key in annotations for fault in qualified_name_faults(key.lower())]
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > MAX_ANNOTATIONS_BYTES:
        errors.append(too_long(path, None, f"may not be more than {MAX_ANNOTATIONS_BYTES} bytes, has {size}"))
    return errors


def validate_own_name(name: str, taken: set[str], path: FieldPath, needed: str) -> list[FieldError]:
    """Check that an item of a list has a name which those before it, ``taken``, have not; then it is taken, too."""
    errors = [] if name else [required(path, needed)]
    if name and name in taken:
        errors.append(duplicate(path, name))
    taken.add(name)
    return errors
