"""Relations from files, tables and objects: `connection.read_csv("x.csv")`.

In: paths, options, names, Python objects. Out: lazy relations.
Invariant: a path or a value is a literal in the statement, an option one of the SQL function of that name; one that the function
does not have is an error that names it.
Not here: statements (statements.py), what files are (the engine).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from grouse._native import Connection, Relation
from grouse._relation.derived import marked
from grouse._text import literal, quoted
from grouse.errors import TypeError

# What only type checkers read is not imported: it takes as long as all of this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_Path = str | os.PathLike[str]

# Keywords of pandas that `read_csv` knows by SQL's names.
_CSV_OPTIONS = {
    "sep": "delim",
    "delimiter": "delim",
    "quotechar": "quote",
    "escapechar": "escape",
    "na_values": "nullstr",
    "dtype": "types",
    "date_format": "dateformat",
    "timestamp_format": "timestampformat",
    "skiprows": "skip",
}


class Reading:
    """What `Connection` has of this file."""

    def read_csv(self: Connection, path: _Path | Sequence[_Path], **options: Any) -> Relation:
        """A relation over CSV files: a path, a glob, an address, or a list of them.

        options: those of SQL's `read_csv`, such as header, delim, quote, nullstr, skip, columns, types, all_varchar,
        ignore_errors, union_by_name, filename; also pandas' sep, na_values, dtype, skiprows.
        """
        named = {_CSV_OPTIONS.get(name, name): value for name, value in options.items()}
        return _of_function(self, "read_csv", path, named, "READ_CSV_RELATION")

    from_csv_auto = read_csv

    def read_parquet(self: Connection, path_or_buffer: _Path | Sequence[_Path], **options: Any) -> Relation:
        """A relation over Parquet files: a path, a glob, an address, or a list of them.

        options: those of SQL's `read_parquet`, such as union_by_name, filename, hive_partitioning, binary_as_string.
        """
        return _of_function(self, "read_parquet", path_or_buffer, options, "TABLE_FUNCTION_RELATION")

    from_parquet = read_parquet

    def read_json(self: Connection, path_or_buffer: _Path | Sequence[_Path], **options: Any) -> Relation:
        """A relation over JSON files, of records or of one array: a path, a glob, an address, or a list of them.

        options: those of SQL's `read_json`, such as columns, format, union_by_name, filename.
        """
        return _of_function(self, "read_json", path_or_buffer, options, "TABLE_FUNCTION_RELATION")

    def from_df(self: Connection, df: Any) -> Relation:
        """A relation over a DataFrame of pandas or Polars, or any other object that is a table.

        Raises grouse.TypeError, which names the type, for other objects.
        """
        return self._plan('SELECT * FROM "relation 1"', {"relation 1": df})

    def from_arrow(self: Connection, arrow_object: Any) -> Relation:
        """A relation over a table, batch, reader or dataset of pyarrow, or any object with `__arrow_c_stream__`.

        A reader can be read once. Raises grouse.TypeError, which names the type, for other objects.
        """
        return self._plan('SELECT * FROM "relation 1"', {"relation 1": arrow_object})

    def table(self: Connection, table_name: str) -> Relation:
        """A relation over a table or view of the connection. Raises grouse.UnknownTableError if there is none."""
        made = self._plan(f"SELECT * FROM {quoted(table_name)}", {})
        return marked(made, "TABLE_RELATION", table_name)

    view = table

    def values(self: Connection, *rows: Any) -> Relation:
        """A relation over rows of Python values: `values([1, "a"])` is one, `values((1, "a"), (2, "b"))` are two.

        Columns are called col0, col1, …
        """
        if not rows:
            raise TypeError("values() takes one row at least")
        is_listed = all(isinstance(row, (list, tuple)) for row in rows)
        listed = [list(row) for row in rows] if is_listed else [list(rows)]
        if len({len(row) for row in listed}) > 1 or not listed[0]:
            raise TypeError("values() takes rows of the same number of values, which is not 0")
        marks = ", ".join(f"({', '.join('?' * len(row))})" for row in listed)
        names = ", ".join(f"col{at}" for at in range(len(listed[0])))
        params = [value for row in listed for value in row]
        made = self._plan(f"SELECT * FROM (VALUES {marks}) AS valueslist({names})", {}, params)
        return marked(made, "VALUE_LIST_RELATION", "valueslist")

    def table_function(self: Connection, name: str, parameters: Sequence[Any] | None = None) -> Relation:
        """A relation over a table function: `table_function("range", [10])`."""
        arguments = ", ".join(literal(value) for value in parameters or ())
        made = self._plan(f"SELECT * FROM {quoted(name)}({arguments})", {})
        return marked(made, "TABLE_FUNCTION_RELATION", name)

    def append(self: Connection, table_name: str, df: Any, *, by_name: bool = False) -> Connection:
        """Adds the rows of a DataFrame, or of another object that is a table, to a table, by the order or the names of columns."""
        how = " BY NAME" if by_name else ""
        self._plan(f'INSERT INTO {quoted(table_name)}{how} SELECT * FROM "relation 1"', {"relation 1": df})
        return self


def _of_function(
    connection: Connection, function: str, path: _Path | Sequence[_Path], options: Mapping[str, Any], kind: str
) -> Relation:
    paths = path if isinstance(path, (str, os.PathLike)) else [_plain(one) for one in _sequence(path, function)]
    arguments = [literal(_plain(paths) if isinstance(paths, (str, os.PathLike)) else paths)]
    arguments += [f"{name} => {literal(value)}" for name, value in options.items() if value is not None]
    made = connection._plan(f"SELECT * FROM {function}({', '.join(arguments)})", {})
    return marked(made, kind)


def _plain(path: _Path) -> str:
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"a path is a str or an os.PathLike, not {type(path).__name__}")
    return os.fspath(path)


def _sequence(path: Any, function: str) -> Sequence[Any]:
    if not isinstance(path, (list, tuple)):
        raise TypeError(f"{function}() takes a path or a list of paths, not {type(path).__name__}; open files are not read")
    return path
