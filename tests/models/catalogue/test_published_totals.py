"""Every catalogued architecture has as many parameters as its makers say."""

import re
from decimal import Decimal

import pytest

from shardproof.models.catalogue import architecture, names, published
from shardproof.models.parameters import parameter_count

UNITS = {"": 1, "M": 10**6, "B": 10**9, "T": 10**12}


def unit_of_last_digit(text):
    """Return a published figure and the worth of its last digit."""
    match = re.fullmatch(r"([\d,]+(?:\.(\d+))?)([MBT]?)", text)
    assert match, text
    unit = Decimal(UNITS[match[3]])
    figure = Decimal(match[1].replace(",", "")) * unit
    return figure, unit / 10 ** len(match[2] or "")


@pytest.mark.parametrize("name", names("models"))
def test_the_total_is_the_published_one_to_its_digits(name):
    said = published(name)
    assert said is not None
    assert said.source
    figure, last = unit_of_last_digit(said.parameters)
    total = parameter_count(architecture(name)) + said.includes
    assert abs(total - figure) <= last / 2 if last > 1 else total == figure
