"""The formats that schemas of custom kinds may name, as Kubernetes checks them; a format it does not know says nothing.

Formats of numbers are bounds, which :mod:`spinney.server.crd.validation` puts into the compiled schema.
"""

import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import date
from email.utils import parseaddr

from spinney.api.names import dns_label_faults, dns_subdomain_faults
from spinney.api.struct import JSON

BOUNDS: Mapping[str, tuple[float, float]] = {
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "float": (-3.4028234663852886e38, 3.4028234663852886e38),
}
CALLED = {"date-time": "datetime"}  # by another name where it is broken

_LETTER = r"[^\W_]"  # or a digit, of any script
_HOSTNAME = re.compile(
    rf"{_LETTER}(-?{_LETTER}{{0,62}})?|({_LETTER}(({_LETTER}|-){{0,61}}{_LETTER})?\.)+[^\W\d_]{{2,63}}"
)
_CLOCK = re.compile(r"(\d\d):(\d\d):(\d\d)(.\d+)?(z|[+-]\d\d:\d\d)")
_GO_DURATION = re.compile(r"[+-]?(0|((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)")
_SPAN = re.compile(r"(\d+)\s*([A-Za-zµ]+)")
_UNITS = ("ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk")
_UNIT_NAMES = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")
_URI = re.compile(r"(/|[A-Za-z][A-Za-z0-9+.-]*:)[^\s\x00-\x20]*")
_IPV4 = re.compile(r"(0*(25[0-5]|2[0-4]\d|1?\d?\d))(\.(0*(25[0-5]|2[0-4]\d|1?\d?\d))){3}")
_MAC = re.compile(
    r"(?:[0-9a-fA-F]{2}([:-])(?:[0-9a-fA-F]{2}\1){4}[0-9a-fA-F]{2})"
    r"|(?:[0-9a-fA-F]{2}([:-])(?:[0-9a-fA-F]{2}\2){6}[0-9a-fA-F]{2})"
    r"|(?:[0-9a-fA-F]{2}([:-])(?:[0-9a-fA-F]{2}\3){18}[0-9a-fA-F]{2})"
    r"|(?:[0-9a-fA-F]{4}\.){2}(?:[0-9a-fA-F]{4}\.)?(?:(?:[0-9a-fA-F]{4}\.){6})?[0-9a-fA-F]{4}"
)
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")
_CARD = re.compile(
    r"(4\d{12}(\d{3})?|5[1-5]\d{14}|6(011|5\d\d)\d{12}|3[47]\d{13}|3(0[0-5]|[68]\d)\d{11}|(2131|1800|35\d{3})\d{11})"
)
_LEVEL = r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"


def _whole(pattern: str, *, ignoring_case: bool = False) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.IGNORECASE if ignoring_case else 0)
    return lambda text: compiled.fullmatch(text) is not None


def _uuid(version: str, variant: str) -> Callable[[str], bool]:
    group = r"[0-9a-f]"
    pattern = f"{group}{{8}}-?{group}{{4}}-?{version}{group}{{3}}-?{variant}{group}{{3}}-?{group}{{12}}"
    return _whole(pattern, ignoring_case=True)


def _is_date(text: str) -> bool:
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_date_time(text: str) -> bool:
    day, separator, clock = text.lower().partition("t")
    match = _CLOCK.fullmatch(clock)
    if not separator or match is None or not _is_date(day):
        return False
    return match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _is_duration(text: str) -> bool:
    if _GO_DURATION.fullmatch(text):
        return True
    units = [unit.lower() for _, unit in _SPAN.findall(text)]
    return any(unit in _UNITS or unit.startswith(_UNIT_NAMES) for unit in units)


def _is_uri(text: str) -> bool:
    return _URI.fullmatch(text) is not None and text.count("[") == text.count("]")


def _is_email(text: str) -> bool:
    name, _, domain = parseaddr(text)[1].partition("@")
    return bool(name and domain) and "@" not in domain


def _is_ipv6(text: str) -> bool:
    if ":" not in text or "%" in text:
        return False
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _is_ipv4(text: str) -> bool:
    return _IPV4.fullmatch(text) is not None or ("." in text and _is_ipv6(text))


def _is_network(text: str) -> bool:
    address, slash, length = text.partition("/")
    if not slash or not length.isdecimal():
        return False
    return int(length) <= (128 if ":" in address else 32) and (_is_ipv4(address) or _is_ipv6(address))


def _is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"\d{9}[\dX]", digits):
        return False
    return sum((index + 1) * (10 if each == "X" else int(each)) for index, each in enumerate(digits)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    return bool(re.fullmatch(r"\d{13}", digits)) and sum((1, 3)[i % 2] * int(c) for i, c in enumerate(digits)) % 10 == 0


def _is_card(text: str) -> bool:
    digits = re.sub(r"\D+", "", text)
    doubled = [int(each) * (1 + index % 2) for index, each in enumerate(reversed(digits))]
    return _CARD.fullmatch(digits) is not None and sum(each - 9 * (each > 9) for each in doubled) % 10 == 0


STRINGS: Mapping[str, Callable[[str], bool]] = {
    "bsonobjectid": _whole(r"[0-9a-fA-F]{24}"),
    "byte": lambda text: _BASE64.fullmatch(text) is not None,
    "cidr": _is_network,
    "creditcard": _is_card,
    "date": _is_date,
    "date-time": _is_date_time,
    "datetime": _is_date_time,
    "duration": _is_duration,
    "email": _is_email,
    "hexcolor": _whole(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "hostname": lambda text: _HOSTNAME.fullmatch(text) is not None,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "k8s-long-name": lambda text: not dns_subdomain_faults(text),
    "k8s-short-name": lambda text: not dns_label_faults(text),
    "mac": lambda text: _MAC.fullmatch(text) is not None,
    "rgbcolor": _whole(rf"rgb\({_LEVEL},{_LEVEL},{_LEVEL}\)"),
    "ssn": _whole(r"\d{3}[- ]\d{2}[- ]\d{4}"),
    "uri": _is_uri,
    "uuid": _whole(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", ignoring_case=True),
    "uuid3": _uuid("3", "[0-9a-f]"),
    "uuid4": _uuid("4", "[89ab]"),
    "uuid5": _uuid("5", "[89ab]"),
}
_CHECKED_AS_TYPES = ("double", "password")


def unrecognized(schema: JSON) -> list[str]:
    """Return the formats of a schema that say nothing, in the order in which they stand there."""
    name = schema.get("format")
    found = [name] if name and name not in STRINGS and name not in BOUNDS and name not in _CHECKED_AS_TYPES else []
    below = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    for child in below:
        if isinstance(child, dict):
            found += unrecognized(child)
    return found
