"""Methods of a relation that write: tables, views, files.

In: a relation, a name, options. Out: nothing but the effect, or a relation over what was made.
Invariant: it happens when the method is called, once; a name is one name, whatever its letters. Options that are not given are
the engine's.
Not here: reading files (grouse/_connection/reading.py).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from grouse._native import Relation
from grouse._relation.derived import alias_of, kind_of, marked, run
from grouse._text import Written, expression, literal, quoted
from grouse.errors import InvalidError, TypeError

# What only type checkers read is not imported: it takes as long as all of this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Keywords of `to_csv` and `to_parquet` whose options in SQL have other names.
_CSV_OPTIONS = {
    "sep": "DELIMITER",
    "na_rep": "NULL",
    "header": "HEADER",
    "quotechar": "QUOTE",
    "escapechar": "ESCAPE",
    "date_format": "DATEFORMAT",
    "timestamp_format": "TIMESTAMPFORMAT",
}


class Writing:
    """What `Relation` has of this file."""

    def create(self: Relation, table_name: str) -> None:
        """Makes a table of the rows. Raises grouse.Error if there is one of that name."""
        run(self, lambda this: f"CREATE TABLE {quoted(table_name)} AS SELECT * FROM {this}")

    to_table = create

    def create_view(self: Relation, view_name: str, replace: bool = True) -> Relation:
        """Makes a view of the relation's statement, in place of one of that name if `replace`, and gives a relation over it."""
        verb = "CREATE OR REPLACE VIEW" if replace else "CREATE VIEW"
        run(self, lambda this: f"{verb} {quoted(view_name)} AS SELECT * FROM {this}")
        return marked(self._plan(f"SELECT * FROM {quoted(view_name)}", {}), "TABLE_RELATION", view_name)

    to_view = create_view

    def insert_into(self: Relation, table_name: str) -> None:
        """Adds the rows to a table that is there, by the order of columns."""
        run(self, lambda this: f"INSERT INTO {quoted(table_name)} SELECT * FROM {this}")

    def insert(self: Relation, values: Sequence[Any]) -> None:
        """Adds one row to the table that the relation is all of (`connection.table`)."""
        row = list(values)
        marks = ", ".join("?" * len(row))
        self._plan(f"INSERT INTO {quoted(_table(self, 'insert()'))} VALUES ({marks})", {}, row)

    def update(self: Relation, set: Mapping[str, Any], *, condition: str | None = None) -> None:
        """Gives columns of the table that the relation is all of (`connection.table`) new values, where `condition` is true.

        The values are Python's, a str is text, or expressions. DuckDB refuses a str, since it may also mean a column.
        """
        if not isinstance(set, Mapping) or not set:
            raise TypeError("update() takes a dict of values by the names of columns")
        values = [value for value in set.values() if not isinstance(value, Written)]
        changes = ", ".join(
            f"{quoted(name)} = {value.fragment() if isinstance(value, Written) else '?'}" for name, value in set.items()
        )
        where = "" if condition is None else f" WHERE ({expression(condition, 'update()')})"
        self._plan(f"UPDATE {quoted(_table(self, 'update()'))} SET {changes}{where}", {}, values or None)

    def to_csv(
        self: Relation,
        file_name: str | os.PathLike[str],
        *,
        sep: str | None = None,
        na_rep: str | None = None,
        header: bool | None = None,
        quotechar: str | None = None,
        escapechar: str | None = None,
        date_format: str | None = None,
        timestamp_format: str | None = None,
        quoting: str | int | None = None,
        encoding: str | None = None,
        compression: str | None = None,
        overwrite: bool | None = None,
        per_thread_output: bool | None = None,
        use_tmp_file: bool | None = None,
        partition_by: Sequence[str] | None = None,
        write_partition_columns: bool | None = None,
    ) -> None:
        """Writes a CSV file, as COPY does with these options; with `partition_by` a folder of them.

        quoting: "force", "all" or 1 puts quotes around every value.
        """
        given = dict(locals())
        options = [f"{option} {literal(given[name])}" for name, option in _CSV_OPTIONS.items() if given[name] is not None]
        if quoting is not None and str(quoting).lower() not in ("0", "minimal"):
            if str(quoting).lower() not in ("force", "all", "1"):
                raise InvalidError(f"to_csv(): there is no quoting {quoting!r}; there are 'force' and 'minimal'")
            options.append("FORCE_QUOTE *")
        _copy(self, file_name, "csv", options, given)

    write_csv = to_csv

    def to_parquet(
        self: Relation,
        file_name: str | os.PathLike[str],
        *,
        compression: str | None = None,
        row_group_size: int | None = None,
        row_group_size_bytes: int | str | None = None,
        overwrite: bool | None = None,
        per_thread_output: bool | None = None,
        use_tmp_file: bool | None = None,
        partition_by: Sequence[str] | None = None,
        write_partition_columns: bool | None = None,
        append: bool | None = None,
        filename_pattern: str | None = None,
        file_size_bytes: int | str | None = None,
    ) -> None:
        """Writes a Parquet file, as COPY does with these options; with `partition_by` a folder of them."""
        given = dict(locals())
        _copy(self, file_name, "parquet", [], given)

    write_parquet = to_parquet


# Options of both formats, and those of Parquet's alone, whose names are the keywords'.
_OPTIONS = (
    "encoding",
    "compression",
    "row_group_size",
    "row_group_size_bytes",
    "overwrite",
    "append",
    "per_thread_output",
    "use_tmp_file",
    "write_partition_columns",
    "filename_pattern",
    "file_size_bytes",
)


def _copy(
    relation: Relation, file_name: str | os.PathLike[str], kind: str, options: list[str], given: Mapping[str, Any]
) -> None:
    """Runs COPY with these options and those of `_OPTIONS`."""
    listed = [f"FORMAT {kind}", *options]
    listed += [f"{name.upper()} {literal(given[name])}" for name in _OPTIONS if given.get(name) is not None]
    if given["partition_by"]:
        listed.append(f"PARTITION_BY ({', '.join(map(quoted, given['partition_by']))})")
    path = literal(os.fspath(file_name))
    run(relation, lambda this: f"COPY (SELECT * FROM {this}) TO {path} ({', '.join(listed)})")


def _table(relation: Relation, asker: str) -> str:
    if kind_of(relation) != "TABLE_RELATION":
        raise InvalidError(f"{asker} changes a table; ask for it with connection.table(name)")
    return alias_of(relation)
