"""What may be a name: the checks Kubernetes applies to object names, label keys and values, and identifiers.

Each function returns the faults it finds, as texts that finish the sentence "the value ..."; none means valid.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Final

Check = Callable[[str], list[str]]
"""A check of a name: the faults it finds."""

MAX_SUBDOMAIN: Final = 253
MAX_LABEL: Final = 63
MAX_PORT_NAME: Final = 15
MAX_ANNOTATIONS: Final = 256 * 1024
"""Bytes of all annotations of an object, keys included."""

_HASH: Final = 8

DNS_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
DNS_SUBDOMAIN: Final = rf"{DNS_LABEL}(\.{DNS_LABEL})*"
QUALIFIED_NAME: Final = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"

_DNS_LABEL: Final = re.compile(DNS_LABEL)
_DNS_SUBDOMAIN: Final = re.compile(DNS_SUBDOMAIN)
_QUALIFIED: Final = re.compile(QUALIFIED_NAME)
_PORT_NAME: Final = re.compile(r"[-a-z0-9]+")
_ENV_NAME: Final = re.compile(r"[ -<>-~]+")


def dns_label_faults(name: str) -> list[str]:
    """Check a DNS-1123 label: at most 63 of ``a-z 0-9 -``, alphanumeric at both ends."""
    return _too_long(name, MAX_LABEL) + _unless(
        _DNS_LABEL.fullmatch(name),
        "must be a DNS-1123 label: lower case letters, digits and '-', beginning and ending with a letter or digit",
    )


def valid_name(text: str) -> str:
    """Return a text as a DNS label: as it is where it is one, else changed, with a hash of what it was."""
    if not dns_label_faults(text):
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:_HASH]
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[: MAX_LABEL - _HASH - 1].rstrip("-")
    return f"{plain}-{digest}" if plain else digest


def dns_subdomain_faults(name: str) -> list[str]:
    """Check a DNS-1123 subdomain: dot-separated labels, at most 253 characters."""
    return _too_long(name, MAX_SUBDOMAIN) + _unless(
        _DNS_SUBDOMAIN.fullmatch(name),
        "must be a DNS-1123 subdomain: lower case letters, digits, '-' and '.', "
        "each part beginning and ending with a letter or digit",
    )


def qualified_name_faults(key: str) -> list[str]:
    """Check a label or annotation key: a name of at most 63 characters, optionally ``prefix/`` before it."""
    prefix, slash, name = key.rpartition("/")
    faults = []
    if slash:
        faults += ["must have a non-empty prefix before '/'"] if not prefix else []
        faults += [f"has an invalid prefix: {fault}" for fault in dns_subdomain_faults(prefix)] if prefix else []
    if not name:
        return [*faults, "must have a non-empty name part"]
    return (
        faults
        + _too_long(name, MAX_LABEL)
        + _unless(
            _QUALIFIED.fullmatch(name),
            "must consist of letters, digits, '-', '_' and '.', beginning and ending with a letter or digit",
        )
    )


def bytes_of_annotations(annotations: Mapping[str, str]) -> int:
    """Return what counts towards :data:`MAX_ANNOTATIONS`."""
    return sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())


def label_value_faults(value: str) -> list[str]:
    """Check a label value: empty, or at most 63 characters as in the name of a label key."""
    return _too_long(value, MAX_LABEL) + _unless(
        value == "" or _QUALIFIED.fullmatch(value),
        "must be empty or consist of letters, digits, '-', '_' and '.', beginning and ending with a letter or digit",
    )


def env_name_faults(name: str) -> list[str]:
    """Check the name of an environment variable: any printable ASCII but '='."""
    return _unless(_ENV_NAME.fullmatch(name), "must consist of printable ASCII characters other than '='")


def port_name_faults(name: str) -> list[str]:
    """Check the name of a port: at most 15 of ``a-z 0-9 -``, with a letter, and no ``-`` at an end or twice."""
    return [
        *_too_long(name, MAX_PORT_NAME),
        *_unless(_PORT_NAME.fullmatch(name), "must contain only lower case letters, digits and '-'"),
        *_unless(re.search("[a-z]", name), "must contain at least one letter"),
        *_unless("--" not in name, "must not contain consecutive '-'"),
        *_unless(name.strip("-") == name, "must not begin or end with '-'"),
    ]


def path_segment_faults(name: str) -> list[str]:
    """Check that a name can be one segment of a URL path."""
    faults = [f"must not be {name!r}"] if name in {".", ".."} else []
    return faults + [f"must not contain {mark!r}" for mark in "/%" if mark in name]


def _too_long(text: str, limit: int) -> list[str]:
    return [f"must be no more than {limit} characters, has {len(text)}"] if len(text) > limit else []


def _unless(valid: object, fault: str) -> list[str]:
    return [] if valid else [fault]
