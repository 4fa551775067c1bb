"""Quantities: exact arithmetic, and the very text Kubernetes writes."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api.quantity import Format, InvalidQuantity, Quantity, milli, value
from tests.api.samples import DATA

SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    **{s: Fraction(1000**i) for i, s in enumerate("kMGTPE", start=1)},
    **{f"{s}i": Fraction(1024**i) for i, s in enumerate("KMGTPE", start=1)},
    "e3": Fraction(1000),
    "E-2": Fraction(1, 100),
    "e+1": Fraction(10),
}

amounts = st.integers(min_value=-(10**15), max_value=10**15)
quantities = st.builds(Quantity, st.integers(-(10**24), 10**24), st.sampled_from(Format))


def test_reads_and_writes_as_kubernetes() -> None:
    """Every text of a table made with Kubernetes' own parser gives the same text, thousandths and units."""
    for row in json.loads((DATA / "quantities.json").read_text(encoding="utf-8")):
        text = row["in"]
        if row["str"] is None:
            with pytest.raises(InvalidQuantity):
                Quantity.parse(text)
            continue
        quantity = Quantity.parse(text)
        assert str(quantity) == row["str"], text
        assert quantity.milli == row.get("milli", quantity.milli), text
        assert quantity.value == row.get("value", quantity.value), text


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1000m", "1"),
        ("1024Ki", "1Mi"),
        ("0.5", "500m"),
        ("1.5Gi", "1536Mi"),
        ("1e3", "1e3"),
        ("1E3", "1e3"),
        ("0.1n", "1n"),
        ("1024", "1024"),
        ("0Gi", "0"),
    ],
)
def test_writes_the_canonical_form(text: str, canonical: str) -> None:
    """A quantity is written with the largest suffix of its family that keeps it whole."""
    assert str(replace(Quantity.parse(text), spelling=None)) == canonical


@pytest.mark.parametrize("text", ["", ".", "-", "+", "abc", "1 ", "1K", "1mi", "1e", "1.2.3", "0x1", "1_0", "1e1001"])
def test_refuses_what_is_no_quantity(text: str) -> None:
    """The error names the text and says what a quantity looks like."""
    with pytest.raises(InvalidQuantity, match="is not a quantity; expected a number"):
        Quantity.parse(text)


@pytest.mark.parametrize("text", ["1" + "0" * 5000, "0." + "0" * 5000 + "1", "1e" + "9" * 5000, "9" * 5000 + "Ei"])
def test_a_text_longer_than_any_amount_is_no_quantity(text: str) -> None:
    """Whatever Python says of thousands of digits, readers are told of a quantity: they expect nothing else."""
    with pytest.raises(InvalidQuantity):
        Quantity.parse(text)


@given(st.integers(0, 10**9), st.integers(0, 999), st.sampled_from(sorted(SUFFIXES)), st.booleans())
def test_parses_exactly_rounding_up_to_nano(whole: int, fraction: int, suffix: str, negative: bool) -> None:
    """The amount is exact down to a nano-unit, and rounds away from zero below it."""
    exact = (whole + Fraction(fraction, 1000)) * SUFFIXES[suffix] * 10**9
    nano = min(-((-exact.numerator) // exact.denominator), (2**63 - 1) * 10**9 if suffix.endswith("i") else 10**60)
    assert Quantity.parse(f"{'-' if negative else ''}{whole}.{fraction:03}{suffix}").nano == (
        -nano if negative else nano
    )


@given(quantities)
def test_text_means_the_same_amount(quantity: Quantity) -> None:
    """Parsing what was written gives the amount back, whatever the family of suffixes."""
    text = str(quantity)
    if quantity.format is Format.BINARY and abs(quantity.nano) > (2**63 - 1) * 10**9 and text.endswith("i"):
        return  # binary texts are capped at what an int64 holds, as in Kubernetes
    assert Quantity.parse(text) == quantity


@given(quantities, quantities, quantities, st.integers(-1000, 1000))
def test_arithmetic_is_that_of_numbers(a: Quantity, b: Quantity, c: Quantity, k: int) -> None:
    """Sums associate and commute, differences undo them, multiples distribute."""
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert a + b - b == a
    assert k * (a + b) == k * a + k * b
    assert (a < b) == (a.nano < b.nano)
    assert hash(Quantity(a.nano, Format.BINARY)) == hash(a)


def test_a_sum_keeps_the_first_family_of_suffixes() -> None:
    """Adding to zero takes the other's family, as in Kubernetes."""
    assert str(Quantity.parse("1Gi") + Quantity.parse("1M")) == "1074741824"
    assert str(Quantity.parse("0") + Quantity.parse("2Gi")) == "2Gi"
    assert str(Quantity.parse("1Gi") - Quantity.parse("1Gi")) == "0"


@pytest.mark.parametrize(
    ("raw", "in_milli", "in_units"),
    [("100m", 100, 1), ("1", 1000, 1), (2, 2000, 2), (0.5, 500, 1), ("1.0001", 1001, 2), ("-1500m", -1500, -2)],
)
def test_whole_numbers_round_away_from_zero(raw: str | int | float, in_milli: int, in_units: int) -> None:
    """Thousandths and units are rounded so that what is asked for is there, from text and from bare numbers."""
    assert milli(raw) == in_milli
    assert value(raw) == in_units
    assert milli(Quantity.parse(raw)) == in_milli


@given(amounts)
def test_construction_from_whole_numbers_is_exact(units: int) -> None:
    """Units survive the way through a quantity."""
    assert Quantity.of(units).value == units
