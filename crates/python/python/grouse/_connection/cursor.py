"""Cursors as PEP 249 has them.

In: SQL text, parameters in `?` or `$name` form. Out: rows, one after the other; descriptions, counts.
Invariant: a cursor is used by one thread at a time, its connection by any number. A statement without rows of its own has none to
fetch, which is an error; a closed cursor does nothing.
Not here: the connection's own result (statements.py), constants and types of PEP 249 (dbapi.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from grouse._native import Connection, Relation
from grouse.errors import InvalidError, TypeError

# What only type checkers read is not imported: it takes as long as all of this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


# Rows that are fetched at once, if all are.
_PART_ROWS = 1 << 16


def params_of(parameters: Any) -> Any:
    """Parameters as the native module takes them: a list, a dict or None."""
    if parameters is None:
        return None
    if isinstance(parameters, Mapping):
        return dict(parameters)
    if isinstance(parameters, (str, bytes)) or not isinstance(parameters, Sequence):
        raise TypeError(f"parameters are a sequence or a mapping, not {type(parameters).__name__}")
    return list(parameters) or None


def changed_rows(relation: Relation) -> int:
    """The rows that a statement has changed; -1 where it is a query, or does not say."""
    if relation._rows_at_hand() != 1 or relation.columns != ["count"]:
        return -1
    return next(iter(relation))[0]


def is_query(relation: Relation) -> bool:
    """Whether the statement gives rows, and has not merely changed something."""
    return bool(relation.columns) and changed_rows(relation) < 0


def rows_left(relation: Relation) -> list[tuple[Any, ...]]:
    """All rows that the fetch methods have not given; after them there are none."""
    rows = []
    while part := relation.fetchmany(_PART_ROWS):
        rows += part
    return rows


class Cursor:
    """A cursor of a connection, from `Connection.cursor`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._result: Relation | None = None
        self._closed = False
        self.arraysize = 1
        """Rows that `fetchmany` gives if it is not told."""

    @property
    def connection(self) -> Connection:
        """The connection."""
        return self._connection

    @property
    def description(self) -> list[tuple[Any, ...]] | None:
        """Of each column a tuple of seven: its name, its type, and None; None where the statement has no rows."""
        if self._result is None or not is_query(self._result):
            return None
        return self._result.description

    @property
    def rowcount(self) -> int:
        """How many rows the statement has changed; -1 of a query, which does not know before its end."""
        return self._changed

    _changed = -1

    def execute(self, operation: str, parameters: Any = None) -> Cursor:
        """Runs SQL up to its first rows. parameters: a sequence for `?` and `$1`, a mapping for `$name`."""
        self._check()
        self._result = None
        result = self._connection.sql(operation, params_of(parameters)).execute()
        self._result, self._changed = result, changed_rows(result)
        return self

    def executemany(self, operation: str, seq_of_parameters: Iterable[Any]) -> Cursor:
        """Runs one statement with each of these parameters; `rowcount` is of all of them."""
        self._check()
        changed = 0
        for parameters in seq_of_parameters:
            self.execute(operation, parameters)
            changed = -1 if changed < 0 or self._changed < 0 else changed + self._changed
        self._changed = changed
        return self

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row, or None after the last one."""
        return self._rows().fetchone()

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """At most `size` more rows (None: `arraysize`)."""
        return self._rows().fetchmany(self.arraysize if size is None else size)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left; after them there are none."""
        return rows_left(self._rows())

    def df(self) -> Any:
        """The statement's result as a pandas DataFrame, from a run of its own, as for the methods below."""
        return self._rows().df()

    def pl(self) -> Any:
        """The statement's result as a polars DataFrame."""
        return self._rows().pl()

    def arrow(self) -> Any:
        """The statement's result as a pyarrow Table."""
        return self._rows().arrow()

    def fetch_arrow_table(self) -> Any:
        """The same as `arrow`."""
        return self._rows().arrow()

    def close(self) -> None:
        """Ends the cursor and what it runs. Closing it twice is no error."""
        result, self._result, self._closed = self._result, None, True
        if result is not None:
            result.close()

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Does nothing: sizes are as they come."""
        self._check()

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Does nothing: sizes are as they come."""
        self._check()

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self

    def __next__(self) -> tuple[Any, ...]:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _check(self) -> None:
        if self._closed:
            raise InvalidError("the cursor is closed")
        self._connection.tables()  # raises where the connection is closed

    def _rows(self) -> Relation:
        self._check()
        if self._result is None:
            raise InvalidError("there is no result: call execute() first")
        if not is_query(self._result):
            raise InvalidError("the statement has no rows; rowcount says how many it has changed")
        return self._result
