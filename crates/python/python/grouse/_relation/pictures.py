"""Pictures of a relation.

In: a relation of one or two columns. Out: a picture, from a run of its own.
Invariant: a result of more rows than a picture shows is an error and not a picture of some of them.
Not here: drawing (grouse/_plot.py).
"""

from __future__ import annotations

from grouse._native import Relation
from grouse._relation.derived import derive
from grouse.errors import InvalidError

# What only type checkers read is not imported: it takes as long as all of this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from grouse._plot import Plot

ROWS_MAX = 100_000


class Pictures:
    """What `Relation` has of this file."""

    def plot(self: Relation, kind: str | None = None) -> Plot:
        """A picture, which a notebook draws and `save` writes as SVG.

        kind: "bar" or "line" of two columns, the second of which has numbers, or "histogram" of one; None chooses by the values.
        """
        from grouse._plot import plot

        columns = self.columns
        rows = derive(self, lambda this: f"SELECT * FROM {this} LIMIT {ROWS_MAX + 1}", "LIMIT_RELATION").fetchall()
        if len(rows) > ROWS_MAX:
            raise InvalidError(f"plot() draws at most {ROWS_MAX:,} rows: aggregate() or sample() makes fewer")
        return plot(columns, rows, kind)
