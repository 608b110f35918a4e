"""Formatted numbers: their digits follow from their errors."""

import codecs

import numpy as np
import pytest

from sbnn._core import text as formats


def test_numbers_are_formatted_for_reading():
    assert formats.number(-0.00012345) == "−0.000123"
    assert formats.number(12345.6) == "12,346"
    assert formats.number(154.3, 2) == "154"
    assert [formats.number(v, 2) for v in (99.7, 100.0, 99.2)] == ["100", "100", "99"]
    assert [formats.number(v) for v in (999.7, 999.2, 1e6)] == ["1,000", "999", "1e+06"]
    assert formats.number(float("nan")) == "–"
    assert formats.number(np.float64("inf")) == "∞"
    assert formats.number(np.bool_(True)) == "yes"
    assert formats.number(12000) == "12,000"
    assert formats.number(np.int64(-3)) == "−3"
    assert formats.number(None) == "–"
    assert formats.fixed(-0.04, 1) == "0.0"


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [
        (6.3612, 0.5213, "6.4 ± 0.5"),
        (-23.0255, 0.0811, "−23.03 ± 0.08"),
        (57.7, 3.81, "58 ± 4"),
        (1234.5, 120.0, "1,234 ± 120"),
        (0.0123, 0.00147, "0.0123 ± 0.0015"),  # two digits of an error that starts with a 1
        (3.21e-9, 2e-10, "3.2e−09 ± 2e−10"),
        (2.34567e8, 3e6, "2.35e+08 ± 3e+06"),
        (1.23456, None, "1.23"),
        (1.23456, 0.0, "1.23"),
        (float("nan"), 0.1, "–"),
    ],
)
def test_number_has_the_digits_its_error_justifies(value, error, shown):
    assert formats.with_error(value, error) == shown


def test_rounding_moves_a_number_by_less_than_its_error():
    rng = np.random.default_rng(0)
    for value, error in zip(rng.normal(size=200) * 100, 10 ** rng.uniform(-5, 2, size=200)):
        text = formats.rounded(value, error).replace("−", "-").replace(",", "")
        assert abs(float(text) - value) <= 0.26 * error + 1e-12
        coarser = formats.decimals_of(error) - 1
        # with one digit less it could move by more than that
        assert coarser < 0 or 0.5 * 10.0**-coarser > 0.25 * error


def test_decimals_of_a_share_follow_the_number_of_rows():
    assert formats.percent(0.957, 70) == "96 %"
    assert formats.percent(0.957, 5000) == "95.7 %"
    assert formats.percent(1.0, 40) == "100 %"
    assert formats.percent(0.996, 250) == "99.6 %"  # one of 250 is outside: not all
    assert formats.explained(0.957) == "96 %"
    assert formats.explained(0.9968) == "99.7 %"
    assert formats.explained(0.62) == "62 %"


def test_durations_and_counts_have_units():
    assert [formats.duration(s) for s in (0.04, 2.71, 35.2, 290.0, 1500.0, 7000.0)] == [
        "0.0 s", "2.7 s", "35 s", "4.8 min", "25 min", "1.9 h",
    ]  # fmt: skip
    assert formats.plural(1, "row") == "1 row"
    assert formats.plural(1200, "row") == "1,200 rows"


def test_names_with_commas_are_quoted():
    assert formats.names(["a", "b c"]) == "a, b c"
    assert formats.names(["load, kN", "b"]) == "“load, kN”, “b”"


def test_number_and_unit_stay_on_one_line():
    gap = formats.NO_BREAK
    text = formats.unbroken("95 % of 70 rows in 3 s, 6.4 ± 0.5")
    assert text == f"95{gap}% of 70 rows in 3{gap}s, 6.4{gap}±{gap}0.5"


def test_text_that_is_no_shell_command_is_split_at_blanks() -> None:
    assert formats.words("sbnn fit 'a b'") == ["sbnn", "fit", "'a b'"]
    assert formats.words('sbnn "fit') == ["sbnn", '"fit']


def test_unencodable_characters_are_spelled_in_ascii() -> None:
    codecs.register_error("spelled", formats.ascii_spelling)
    assert "−1 ± 2 γ 漢".encode("ascii", "spelled") == b"-1 +/- 2 gamma ?"
    assert all(spelling.isascii() for spelling in formats.ASCII.values())
    with pytest.raises(UnicodeDecodeError):
        b"\xff".decode("ascii", "spelled")
