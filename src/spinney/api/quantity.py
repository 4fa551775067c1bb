"""Resource quantities, exact: parsing, arithmetic and the canonical text Kubernetes writes.

A quantity is an integer number of nano-units (10^-9), the finest Kubernetes represents, plus the family of suffixes it
was written with, which decides how it is written back: decimal (``n u m k M G T P E``), binary (``Ki`` to ``Ei``) or a
decimal exponent (``1e3``). Finer amounts round away from zero, so that a request above zero stays above zero.

Kubernetes writes some texts back as they came although a shorter spelling exists (``1.005`` is not turned into
``1005m``); those are kept in :attr:`Quantity.spelling`, so what we write is byte for byte what an API server writes.

Schedulers work with whole numbers: :func:`milli` and :func:`value` turn the handful of distinct texts found in a
cluster into integers through a cache.
"""

import re
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Final

RawQuantity = str | int | float
"""A quantity as JSON carries it: text, or a bare number."""


class InvalidQuantity(ValueError):
    """A text that is not a quantity."""

    def __init__(self, text: str) -> None:
        super().__init__(
            f"{text!r} is not a quantity; expected a number with an optional suffix, such as 1, 100m, 1.5, 2Gi or 1e3"
        )
        self.text = text


class Format(Enum):
    """The family of suffixes a quantity is written with."""

    DECIMAL = "DecimalSI"
    BINARY = "BinarySI"
    EXPONENT = "DecimalExponent"


_NANO_DIGITS: Final = 9
_NANO: Final = 10**_NANO_DIGITS
_DECIMAL_SUFFIXES: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_BY_EXPONENT: Final = {exponent: suffix for suffix, exponent in _DECIMAL_SUFFIXES.items()}
_BINARY_SUFFIXES: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_BINARY_BY_POWER: Final = ["", *_BINARY_SUFFIXES]
_BINARY_CAP: Final = (2**63 - 1) * _NANO
_LARGEST_EXPONENT: Final = 18
# Kubernetes keeps a text of at most 18 digits as an int64; only those are ever written back unchanged.
_INT64_DIGITS: Final = 18
_BINARY_INT64_DIGITS: Final = 15
# No resource is counted in such numbers, and computing with them would take for ever, or fail.
_MAX_EXPONENT: Final = 1000
_MAX_LENGTH: Final = 1100
_TEXT: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?"
)


@dataclass(frozen=True, slots=True, order=True)
class Quantity:
    """An exact amount. Equality, order and hash look at the amount alone: ``1000m`` equals ``1``."""

    nano: int
    format: Format = field(default=Format.DECIMAL, compare=False)
    spelling: str | None = field(default=None, compare=False, repr=False)

    @classmethod
    def parse(cls, text: RawQuantity) -> "Quantity":
        """Return the quantity that ``text`` denotes; raises :class:`InvalidQuantity`."""
        return _parse(text if isinstance(text, str) else repr(text))

    @classmethod
    def of(cls, units: int, format: Format = Format.DECIMAL) -> "Quantity":  # noqa: A002 - Kubernetes' own word
        """Return ``units`` whole units, such as bytes or devices."""
        return cls(units * _NANO, format)

    def __add__(self, other: "Quantity") -> "Quantity":
        return Quantity(self.nano + other.nano, self.format if self.nano else other.format)

    def __sub__(self, other: "Quantity") -> "Quantity":
        return Quantity(self.nano - other.nano, self.format if self.nano else other.format)

    def __mul__(self, factor: int) -> "Quantity":
        return Quantity(self.nano * factor, self.format)

    __rmul__ = __mul__

    def __neg__(self) -> "Quantity":
        return Quantity(-self.nano, self.format)

    def __bool__(self) -> bool:
        return self.nano != 0

    @property
    def milli(self) -> int:
        """Return the amount in thousandths, rounded away from zero."""
        return _whole(self.nano, _NANO // 1000)

    @property
    def value(self) -> int:
        """Return the amount in whole units, rounded away from zero."""
        return _whole(self.nano, _NANO)

    def __str__(self) -> str:
        if self.spelling is not None:
            return self.spelling
        if self.nano == 0:
            return "0"
        if self.format is Format.BINARY and self.nano % _NANO == 0 and abs(self.nano) >= 1024 * _NANO:
            return _binary_text(self.nano // _NANO)
        return _decimal_text(self.nano, self.format)


ZERO: Final = Quantity(0)


def milli(quantity: RawQuantity | Quantity) -> int:
    """Return a quantity in thousandths (millicores), rounded up."""
    if isinstance(quantity, int):
        return quantity * 1000
    return quantity.milli if isinstance(quantity, Quantity) else Quantity.parse(quantity).milli


def value(quantity: RawQuantity | Quantity) -> int:
    """Return a quantity in whole units (bytes, devices), rounded up."""
    if isinstance(quantity, int):
        return quantity
    return quantity.value if isinstance(quantity, Quantity) else Quantity.parse(quantity).value


@lru_cache(maxsize=65_536)
def _parse(text: str) -> Quantity:
    match = _TEXT.fullmatch(text)
    if match is None or not (match["whole"] or match["fraction"]) or len(text) > _MAX_LENGTH:
        raise InvalidQuantity(text)
    whole = match["whole"].lstrip("0") or "0"
    fraction = match["fraction"] or ""
    suffix = match["suffix"] or ""
    digits = whole + fraction
    if suffix in _BINARY_SUFFIXES:
        format_, exponent = Format.BINARY, 0
        magnitude = int(digits) << _BINARY_SUFFIXES[suffix]
    elif suffix in _DECIMAL_SUFFIXES:
        format_, exponent = Format.DECIMAL, _DECIMAL_SUFFIXES[suffix]
        magnitude = int(digits)
    else:
        format_, exponent = Format.EXPONENT, int(suffix[1:])
        magnitude = int(digits)
    if exponent > _MAX_EXPONENT:
        raise InvalidQuantity(text)
    nano = _shift(magnitude, exponent - len(fraction) + _NANO_DIGITS)
    if format_ is Format.BINARY:
        nano = min(nano, _BINARY_CAP)
        if 0 < nano < _NANO:
            format_ = Format.DECIMAL
    kept = _kept_as_written(whole, fraction, suffix, format_, exponent)
    return Quantity(-nano if match["sign"] == "-" else nano, format_, text if kept else None)


def _whole(nano: int, unit: int) -> int:
    return -(-nano // unit) if nano >= 0 else nano // unit


def _shift(magnitude: int, places: int) -> int:
    """Return ``magnitude * 10**places``, rounded up to a whole number."""
    if magnitude == 0:
        return 0
    if places >= 0:
        return magnitude * int(10**places)
    # Beyond its own length every digit is behind the point, however many more places there are.
    return -(-magnitude // int(10 ** min(-places, len(str(magnitude)) + 1)))


def _kept_as_written(whole: str, fraction: str, suffix: str, format_: Format, exponent: int) -> bool:
    """Tell whether Kubernetes takes this text for canonical without computing the canonical one."""
    if format_ is Format.BINARY:
        power = _BINARY_SUFFIXES[suffix]
        room = _BINARY_INT64_DIGITS - len(whole) - int(power * 3 / 10) - 1
        return not fraction and room >= 0 and int(whole) & 0x07 != 0
    scale = exponent - len(fraction)
    digits = whole + fraction
    fits = len(digits) <= _INT64_DIGITS and scale >= -_NANO_DIGITS
    return fits and scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"


def _decimal_text(nano: int, format_: Format) -> str:
    mantissa, exponent = abs(nano), -_NANO_DIGITS
    largest = _LARGEST_EXPONENT if format_ is not Format.EXPONENT else None
    while mantissa % 1000 == 0 and exponent != largest:
        mantissa //= 1000
        exponent += 3
    sign = "-" if nano < 0 else ""
    if format_ is Format.EXPONENT:
        return f"{sign}{mantissa}e{exponent}" if exponent else f"{sign}{mantissa}"
    return f"{sign}{mantissa}{_DECIMAL_BY_EXPONENT[exponent]}"


def _binary_text(units: int) -> str:
    mantissa, power = abs(units), 0
    while mantissa % 1024 == 0 and power < len(_BINARY_BY_POWER) - 1:
        mantissa //= 1024
        power += 1
    return f"{'-' if units < 0 else ''}{mantissa}{_BINARY_BY_POWER[power]}"
