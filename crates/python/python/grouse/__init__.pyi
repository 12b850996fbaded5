"""Types of `grouse`: the native module's, PEP 249's, and functions on the default connection."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from grouse import errors as errors
from grouse._calls import *
from grouse._connection import Cursor as Cursor
from grouse._connection.dbapi import *
from grouse._expression import *
from grouse._native import Batch as Batch
from grouse._native import Batches as Batches
from grouse._native import Connection as Connection
from grouse._native import Profile as Profile
from grouse._native import Progress as Progress
from grouse._native import Relation as Relation
from grouse._native import Rows as Rows
from grouse._native import __version__ as __version__
from grouse._native import connect as connect
from grouse._native import default_connection as default_connection
from grouse._native import sql as sql
from grouse._relation import Grouped as Grouped
from grouse.errors import *

_Path: TypeAlias = str | os.PathLike[str]

def append(table_name: str, df: Any, *, by_name: bool = False) -> Connection:
    """`Connection.append` of the default connection."""

def arrow() -> Any:
    """`Connection.arrow` of the default connection."""

def begin() -> Connection:
    """`Connection.begin` of the default connection."""

def commit() -> Connection:
    """`Connection.commit` of the default connection."""

def create_function(
    name: str,
    function: Callable[..., Any],
    parameters: Sequence[Any] | None = None,
    return_type: Any = None,
    *,
    type: str = "native",
    null_handling: str = "default",
    exception_handling: str = "default",
    side_effects: bool = False,
) -> Connection:
    """`Connection.create_function` of the default connection."""

def cursor() -> Cursor:
    """`Connection.cursor` of the default connection."""

def df() -> Any:
    """`Connection.df` of the default connection."""

def execute(query: str, parameters: Any = None) -> Connection:
    """`Connection.execute` of the default connection."""

def executemany(query: str, parameters: Iterable[Any] = ()) -> Connection:
    """`Connection.executemany` of the default connection."""

def fetch_arrow_table() -> Any:
    """`Connection.fetch_arrow_table` of the default connection."""

def fetch_df() -> Any:
    """`Connection.fetch_df` of the default connection."""

def fetch_record_batch(rows_per_batch: int = 131072) -> Any:
    """`Connection.fetch_record_batch` of the default connection."""

def fetchall() -> list[tuple[Any, ...]]:
    """`Connection.fetchall` of the default connection."""

def fetchdf() -> Any:
    """`Connection.fetchdf` of the default connection."""

def fetchmany(size: int = 1) -> list[tuple[Any, ...]]:
    """`Connection.fetchmany` of the default connection."""

def fetchnumpy() -> dict[str, Any]:
    """`Connection.fetchnumpy` of the default connection."""

def fetchone() -> tuple[Any, ...] | None:
    """`Connection.fetchone` of the default connection."""

def from_arrow(arrow_object: Any) -> Relation:
    """`Connection.from_arrow` of the default connection."""

def from_csv_auto(path: _Path | Sequence[_Path], **options: Any) -> Relation:
    """`Connection.from_csv_auto` of the default connection."""

def from_df(df: Any) -> Relation:
    """`Connection.from_df` of the default connection."""

def from_parquet(path_or_buffer: _Path | Sequence[_Path], **options: Any) -> Relation:
    """`Connection.from_parquet` of the default connection."""

def from_query(query: str, *, alias: str = "", params: Any = None) -> Relation:
    """`Connection.from_query` of the default connection."""

def interrupt() -> None:
    """`Connection.interrupt` of the default connection."""

def load_ipython_extension(ipython: object) -> None:
    """What `%load_ext grouse` calls: `%sql` and `%%sql` are there then."""

def pl() -> Any:
    """`Connection.pl` of the default connection."""

def query(query: str, *, alias: str = "", params: Any = None) -> Relation:
    """`Connection.query` of the default connection."""

def read_csv(path: _Path | Sequence[_Path], **options: Any) -> Relation:
    """`Connection.read_csv` of the default connection."""

def read_json(path_or_buffer: _Path | Sequence[_Path], **options: Any) -> Relation:
    """`Connection.read_json` of the default connection."""

def read_parquet(path_or_buffer: _Path | Sequence[_Path], **options: Any) -> Relation:
    """`Connection.read_parquet` of the default connection."""

def register(name: str, obj: Any) -> None:
    """`Connection.register` of the default connection."""

def remove_function(name: str) -> Connection:
    """`Connection.remove_function` of the default connection."""

def rollback() -> Connection:
    """`Connection.rollback` of the default connection."""

def table(table_name: str) -> Relation:
    """`Connection.table` of the default connection."""

def table_function(name: str, parameters: Sequence[Any] | None = None) -> Relation:
    """`Connection.table_function` of the default connection."""

def tables() -> list[str]:
    """`Connection.tables` of the default connection."""

def to_arrow_reader(batch_size: int = 131072) -> Any:
    """`Connection.to_arrow_reader` of the default connection."""

def to_arrow_table() -> Any:
    """`Connection.to_arrow_table` of the default connection."""

def torch() -> dict[str, Any]:
    """`Connection.torch` of the default connection."""

def unregister(name: str) -> None:
    """`Connection.unregister` of the default connection."""

def values(*rows: Any) -> Relation:
    """`Connection.values` of the default connection."""

def view(table_name: str) -> Relation:
    """`Connection.view` of the default connection."""

def aggregate(df: Any, aggr_expr: str | Iterable[str], group_expr: str | Iterable[str] = "") -> Relation:
    """`Relation.aggregate` over a DataFrame, or another object that is a table."""

def distinct(df: Any, on: str | Iterable[str] | None = None) -> Relation:
    """`Relation.distinct` over a DataFrame, or another object that is a table."""

def filter(df: Any, filter_expr: str) -> Relation:
    """`Relation.filter` over a DataFrame, or another object that is a table."""

def limit(df: Any, n: int, offset: int = 0) -> Relation:
    """`Relation.limit` over a DataFrame, or another object that is a table."""

def order(df: Any, order_expr: str) -> Relation:
    """`Relation.order` over a DataFrame, or another object that is a table."""

def project(df: Any, *columns: str, groups: str = "") -> Relation:
    """`Relation.project` over a DataFrame, or another object that is a table."""

def write_csv(df: Any, file_name: str | os.PathLike[str], *, sep: str | None = None, na_rep: str | None = None, header: bool | None = None, quotechar: str | None = None, escapechar: str | None = None, date_format: str | None = None, timestamp_format: str | None = None, quoting: str | int | None = None, encoding: str | None = None, compression: str | None = None, overwrite: bool | None = None, per_thread_output: bool | None = None, use_tmp_file: bool | None = None, partition_by: Sequence[str] | None = None, write_partition_columns: bool | None = None) -> None:
    """`Relation.write_csv` over a DataFrame, or another object that is a table."""

def write_parquet(df: Any, file_name: str | os.PathLike[str], *, compression: str | None = None, row_group_size: int | None = None, row_group_size_bytes: int | str | None = None, overwrite: bool | None = None, per_thread_output: bool | None = None, use_tmp_file: bool | None = None, partition_by: Sequence[str] | None = None, write_partition_columns: bool | None = None, append: bool | None = None, filename_pattern: str | None = None, file_size_bytes: int | str | None = None) -> None:
    """`Relation.write_parquet` over a DataFrame, or another object that is a table."""

def alias(df: Any, alias: str) -> Relation:
    """A relation over a DataFrame, or another object that is a table, of this name in expressions."""

def query_df(df: Any, virtual_table_name: str, sql_query: str) -> Relation:
    """Runs SQL in which a DataFrame, or another object that is a table, is a table of that name."""
