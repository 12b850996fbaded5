"""Is an answer the expected one?

In: two lists of rows as `engines.server.plain` makes them. Out: None, or the first difference in words.
Invariant: integers and text have to be equal; floats may differ by the tolerance, decimals by a unit of their last digit.
"""

import decimal
from typing import Any

ABSOLUTE = 1e-12
"""Two numbers this close are equal whatever their size: a sum that should be 0 seldom is."""


def difference(found: list[list], right: list[list], tolerance: float) -> str | None:
    if len(found) != len(right):
        return f"{len(found)} rows instead of {len(right)}"
    for at, (row, expected) in enumerate(zip(found, right)):
        if len(row) != len(expected):
            return f"row {at}: {len(row)} columns instead of {len(expected)}"
        for column, (value, want) in enumerate(zip(row, expected)):
            if not equal(value, want, tolerance):
                return f"row {at}, column {column}: {value!r} instead of {want!r}"
    return None


def equal(value: Any, want: Any, tolerance: float) -> bool:
    if value is None or want is None or isinstance(value, str) or isinstance(want, str):
        return value == want
    if isinstance(value, int) and isinstance(want, int) and tolerance < 1e-6:
        return value == want
    near = float(want if not isinstance(want, dict) else want["decimal"])
    got = float(value if not isinstance(value, dict) else value["decimal"])
    if got != got or near != near:
        return got != got and near != near
    slack = max(tolerance * max(abs(got), abs(near)), ABSOLUTE, last_digit(value), last_digit(want))
    return abs(got - near) <= slack


def last_digit(value: Any) -> float:
    """Hosts cut averages of decimals off after a few digits; sums have two and lose none."""
    if not isinstance(value, dict):
        return 0.0
    digits = -decimal.Decimal(value["decimal"]).as_tuple().exponent
    return 1.01 * 10.0**-digits if digits > 4 else 0.0
