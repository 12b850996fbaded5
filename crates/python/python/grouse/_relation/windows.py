"""Window functions of a relation as methods of their names: `rel.row_number("OVER (ORDER BY x)", "x")`.

In: a window, `"OVER (…)"`, the function's arguments, columns to show beside it. Out: a lazy relation of as many rows.
Invariant: the method's name means what the function of that name means in SQL.
Not here: aggregates over windows (aggregates.py).
"""

from __future__ import annotations

from collections.abc import Callable

from grouse._native import Relation
from grouse._relation.aggregates import each, named
from grouse._text import expression, literal, natural

# The function behind each method, and what it is said to give.
_RANKS = {
    "row_number": ("row_number", "The number of the row in its partition, from 1."),
    "rank": ("rank", "The rank of the row, with gaps after equal ones."),
    "dense_rank": ("dense_rank", "The rank of the row, without gaps."),
    "rank_dense": ("dense_rank", "The rank of the row, without gaps."),
    "percent_rank": ("percent_rank", "The rank from 0 to 1."),
    "cume_dist": ("cume_dist", "The share of rows up to this one."),
}
_EDGES = {
    "first_value": "The first value of the window.",
    "last_value": "The last value of the window.",
}
_WINDOW = """

        window_spec: `"OVER (…)"`. projected_columns: expressions to show before the function's column."""


def _rank(name: str, function: str, says: str) -> Callable[..., Relation]:
    def method(self: Relation, window_spec: str, projected_columns: str = "") -> Relation:
        return each(self, [f"{function}()"], "", window_spec, projected_columns)

    return named(method, name, says + _WINDOW)


def _edge(name: str, says: str) -> Callable[..., Relation]:
    def method(self: Relation, expression: str, window_spec: str = "", projected_columns: str = "") -> Relation:
        return each(self, [f"{name}({_one(expression, name)})"], "", window_spec, projected_columns)

    return named(method, name, says + _WINDOW)


def _shifted(name: str, says: str) -> Callable[..., Relation]:
    def method(
        self: Relation,
        expression: str,
        window_spec: str,
        offset: int = 1,
        default_value: str = "NULL",
        ignore_nulls: bool = False,
        projected_columns: str = "",
    ) -> Relation:
        call = f"{name}({_one(expression, name)}, {literal(int(offset))}, {_one(default_value, name)}){_nulls(ignore_nulls)}"
        return each(self, [call], "", window_spec, projected_columns)

    return named(method, name, says + _WINDOW)


def _one(text: str, name: str) -> str:
    return expression(text, f"{name}()")


def _nulls(are_ignored: bool) -> str:
    return " IGNORE NULLS" if are_ignored else ""


class Windows:
    """What `Relation` has of this file."""

    for _name, (_function, _says) in _RANKS.items():
        locals()[_name] = _rank(_name, _function, _says)
    for _name, _says in _EDGES.items():
        locals()[_name] = _edge(_name, _says)
    lag = _shifted("lag", "The value `offset` rows before; `default_value`, an expression, where there is no such row.")
    lead = _shifted("lead", "The value `offset` rows after; `default_value`, an expression, where there is no such row.")
    del _name, _function, _says

    def n_tile(self: Relation, window_spec: str, num_buckets: int, projected_columns: str = "") -> Relation:
        """The number of the bucket, from 1 to `num_buckets`, that the row falls into; buckets are of equal size."""
        return each(self, [f"ntile({natural(num_buckets, 'n_tile()')})"], "", window_spec, projected_columns)

    def nth_value(
        self: Relation, expression: str, window_spec: str, offset: int, ignore_nulls: bool = False, projected_columns: str = ""
    ) -> Relation:
        """The value of the `offset`-th row of the window, from 1."""
        call = f"nth_value({_one(expression, 'nth_value')}, {literal(int(offset))}){_nulls(ignore_nulls)}"
        return each(self, [call], "", window_spec, projected_columns)
