"""Results of a relation in more forms: numpy, torch, dicts, readers, and what is known of it.

In: a relation. Out: its rows, from a run of their own; its shape.
Invariant: a column of numbers without NULL leaves without a copy where it is one piece; one with NULL is a masked array.
Not here: rows as tuples, pandas, Polars and pyarrow (the native module).
"""

from __future__ import annotations

from collections.abc import Iterator

from grouse._native import Relation
from grouse._relation.derived import derive, pickled, written

# What only type checkers read is not imported: it takes as long as all of this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Results:
    """What `Relation` has of this file."""

    @property
    def dtypes(self: Relation) -> list[str]:
        """The same as `types`."""
        return self.types

    @property
    def description(self: Relation) -> list[tuple[Any, ...]]:
        """Of each column a tuple of seven: its name, the name of its type, and None, as PEP 249 has it."""
        return [(name, kind, None, None, None, None, None) for name, kind in zip(self.columns, self.types)]

    @property
    def shape(self: Relation) -> tuple[int, int]:
        """The number of rows and of columns; the rows are counted by a query."""
        return len(self), len(self.columns)

    def __reduce__(self: Relation) -> tuple[Any, ...]:
        """For pickle: the statement, planned anew on the default connection of the process that reads it."""
        return pickled(self)

    def __len__(self: Relation) -> int:
        """The number of rows, counted by a query."""
        known = self._rows_at_hand()
        if known is not None:
            return known
        return derive(self, lambda this: f"SELECT count(*) FROM {this}", "AGGREGATE_RELATION").fetchall()[0][0]

    def sql_query(self: Relation) -> str:
        """One statement that means the relation. Parameters stay as they were written, variables by their names."""
        return written(self)

    def fetchdf(self: Relation) -> Any:
        """The same as `df`."""
        return self.df()

    def to_df(self: Relation) -> Any:
        """The same as `df`."""
        return self.df()

    def fetch_arrow_table(self: Relation) -> Any:
        """The same as `arrow`, a pyarrow Table."""
        return self.arrow()

    def to_arrow_reader(self: Relation, batch_size: int = 131072) -> Any:
        """A pyarrow RecordBatchReader over a run of its own, with at most `batch_size` rows a batch. Needs pyarrow."""
        import pyarrow

        reader = pyarrow.RecordBatchReader.from_stream(self)
        pieces = (
            batch.slice(start, batch_size) for batch in reader for start in range(0, batch.num_rows, batch_size)
        )
        return pyarrow.RecordBatchReader.from_batches(reader.schema, pieces)

    def fetch_record_batch(self: Relation, rows_per_batch: int = 131072) -> Any:
        """The same as `to_arrow_reader`."""
        return self.to_arrow_reader(rows_per_batch)

    def fetch_arrow_reader(self: Relation, batch_size: int = 131072) -> Any:
        """The same as `to_arrow_reader`."""
        return self.to_arrow_reader(batch_size)

    def iter_rows(self: Relation, batch_size: int = 1024) -> Iterator[tuple[Any, ...]]:
        """An iterator over the rows of a run of its own, as `iter` gives it. `batch_size` changes nothing."""
        return iter(self)

    def to_dicts(self: Relation) -> list[dict[str, Any]]:
        """Each row as a dict by the names of columns."""
        columns = self.columns
        return [dict(zip(columns, row)) for row in self]

    def fetchnumpy(self: Relation) -> dict[str, Any]:
        """A dict of numpy arrays by the names of columns; a column with NULL is a masked array. Needs numpy and pyarrow.

        Integers, floats, booleans, timestamps and durations have numpy's types, dates datetime64[D]; all else is objects.
        A decimal is a decimal.Decimal and a list a list, where DuckDB has a float and an array.
        """
        from grouse._relation.arrays import array_of

        table = self.arrow()
        return {name: array_of(column) for name, column in zip(table.column_names, table.columns)}

    def torch(self: Relation) -> dict[str, Any]:
        """A dict of torch tensors by the names of columns, which have to be numbers or booleans without NULL. Needs torch."""
        import torch

        from grouse._relation.arrays import numbers_of

        table = self.arrow()
        columns = zip(table.column_names, table.columns)
        return {name: torch.from_numpy(numbers_of(name, column)) for name, column in columns}

    def preview(self: Relation, limit: int = 10) -> str:
        """The first `limit` rows as a table of text."""
        from grouse._display import text

        rows = self.limit(limit + 1).fetchall()
        return text(self.columns, self.types, rows[:limit], len(rows) > limit)
