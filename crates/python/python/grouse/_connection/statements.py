"""A connection as its own cursor, as DuckDB has it: `connection.execute("…").fetchall()`.

In: SQL text and parameters. Out: the connection, which gives the rows of the newest statement.
Invariant: what goes wrong before the first row is told by `execute`. The newest result belongs to the connection: threads that
share one take a cursor each.
Not here: cursors (cursor.py), relations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from grouse._connection.cursor import Cursor, changed_rows, params_of, rows_left
from grouse._native import Connection, Relation
from grouse._relation.derived import marked
from grouse.errors import InvalidError, UnsupportedError

# What only type checkers read is not imported: it takes as long as all of this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_RESULT = "_result"


class Statements:
    """What `Connection` has of this file."""

    def query(self: Connection, query: str, *, alias: str = "", params: Any = None) -> Relation:
        """Plans SQL, as `sql` does, and gives the relation a name for expressions."""
        made = self.sql(query, params_of(params))
        return marked(made, "QUERY_RELATION", alias) if alias else made

    from_query = query

    def execute(self: Connection, query: str, parameters: Any = None) -> Connection:
        """Runs SQL up to its first rows and gives the connection, whose fetch methods give the rows.

        parameters: a sequence for `?` and `$1`, a mapping for `$name`. Raises a subclass of grouse.Error.
        """
        self.__dict__[_RESULT] = self.sql(query, params_of(parameters)).execute()
        return self

    def executemany(self: Connection, query: str, parameters: Iterable[Any] = ()) -> Connection:
        """Runs one statement with each of these parameters, in order. The result is the last one's."""
        for one in parameters:
            self.execute(query, one)
        return self

    def fetchone(self: Connection) -> tuple[Any, ...] | None:
        """The next row of the newest statement, or None after the last one."""
        return _result(self).fetchone()

    def fetchmany(self: Connection, size: int = 1) -> list[tuple[Any, ...]]:
        """At most `size` more rows of the newest statement."""
        return _result(self).fetchmany(size)

    def fetchall(self: Connection) -> list[tuple[Any, ...]]:
        """All rows of the newest statement that are left; after them there are none."""
        return rows_left(_result(self))

    def fetchnumpy(self: Connection) -> dict[str, Any]:
        """The newest statement's result as numpy arrays; see Relation.fetchnumpy. It runs anew, as for the methods below."""
        return _result(self).fetchnumpy()

    def df(self: Connection) -> Any:
        """The newest statement's result as a pandas DataFrame."""
        return _result(self).df()

    def fetchdf(self: Connection) -> Any:
        """The same as `df`."""
        return _result(self).df()

    def fetch_df(self: Connection) -> Any:
        """The same as `df`."""
        return _result(self).df()

    def pl(self: Connection) -> Any:
        """The newest statement's result as a polars DataFrame."""
        return _result(self).pl()

    def arrow(self: Connection) -> Any:
        """The newest statement's result as a pyarrow Table."""
        return _result(self).arrow()

    def fetch_arrow_table(self: Connection) -> Any:
        """The same as `arrow`."""
        return _result(self).arrow()

    def to_arrow_table(self: Connection) -> Any:
        """The same as `arrow`."""
        return _result(self).arrow()

    def to_arrow_reader(self: Connection, batch_size: int = 131072) -> Any:
        """The newest statement's result as a pyarrow RecordBatchReader."""
        return _result(self).to_arrow_reader(batch_size)

    def fetch_record_batch(self: Connection, rows_per_batch: int = 131072) -> Any:
        """The same as `to_arrow_reader`."""
        return _result(self).to_arrow_reader(rows_per_batch)

    def torch(self: Connection) -> dict[str, Any]:
        """The newest statement's result as torch tensors; see Relation.torch."""
        return _result(self).torch()

    @property
    def description(self: Connection) -> list[tuple[Any, ...]] | None:
        """Of each column of the newest statement a tuple of seven, as PEP 249 has it; None if there is no statement."""
        found = self.__dict__.get(_RESULT)
        return None if found is None else found.description

    @property
    def rowcount(self: Connection) -> int:
        """How many rows the newest statement has changed (DuckDB says -1); -1 of a query, which does not know before its end."""
        found = self.__dict__.get(_RESULT)
        return -1 if found is None else changed_rows(found)

    def cursor(self: Connection) -> Cursor:
        """A cursor as PEP 249 has it: on the same connection, with a result of its own. DuckDB's is another connection."""
        self.tables()  # raises where the connection is closed
        return Cursor(self)

    def commit(self: Connection) -> Connection:
        """Does nothing: each statement is kept when it has run, since there are no transactions."""
        self.tables()
        return self

    def begin(self: Connection) -> Connection:
        """Raises grouse.UnsupportedError: there are no transactions, and what a statement did cannot be undone."""
        raise UnsupportedError("there are no transactions: each statement is kept when it has run")

    def rollback(self: Connection) -> Connection:
        """Raises grouse.UnsupportedError: there are no transactions, and what a statement did cannot be undone."""
        raise UnsupportedError("there are no transactions: what a statement did cannot be undone")


def _result(connection: Connection) -> Relation:
    found = connection.__dict__.get(_RESULT)
    if found is None:
        raise InvalidError("there is no result: call execute() first")
    return found
