"""Statistics of all columns, as `Relation.describe` gives them.

In: a relation. Out: the text of a statement over it.
Invariant: one pass over the rows; numbers stay numbers, as DOUBLE, all else is text.
Not here: SUMMARIZE, which is the engine's.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from grouse._native import Relation
from grouse._text import quoted

_ROWS = ("count", "mean", "stddev", "min", "max", "median")
_NUMBER = re.compile(r"u?int\d+|decimal.*|double|float|half")
_NESTED = ("list", "struct", "map", "array", "union")


def described(relation: Relation) -> Callable[[str], str]:
    """The statement of `describe`."""
    titles = ", ".join(f"'{row}'" for row in _ROWS)
    columns = [f"unnest([{titles}]) AS aggr"]
    for name, kind in zip(relation.columns, relation.types):
        values = ", ".join(_statistics(quoted(name), kind))
        columns.append(f"unnest([{values}]) AS {quoted(name)}")
    wanted = ", ".join(columns)
    return lambda this: f"SELECT {wanted} FROM {this}"


def _statistics(column: str, kind: str) -> list[str]:
    if _NUMBER.fullmatch(kind):
        calls = ("count", "avg", "stddev", "min", "max", "median")
        return [f"CAST({call}({column}) AS DOUBLE)" for call in calls]
    count, nothing = f"CAST(count({column}) AS VARCHAR)", "CAST(NULL AS VARCHAR)"
    if kind.startswith(_NESTED):
        return [count, *[nothing] * 5]
    least, most = (f"CAST({call}({column}) AS VARCHAR)" for call in ("min", "max"))
    return [count, nothing, nothing, least, most, nothing]
