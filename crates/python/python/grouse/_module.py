"""Functions of the module: methods of the default connection and of relations over a DataFrame, by their names.

In: what the methods take; the functions of relations take an object that is a table first. Out: what the methods give.
Invariant: the default connection is asked for at each call, so that one that was closed is made anew.
Not here: the methods; `sql`, `connect` and `default_connection` (the native module).
"""

from __future__ import annotations

from collections.abc import Callable

from grouse._native import Connection, Relation, default_connection

# What only type checkers read is not imported: it takes as long as all of this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OF_CONNECTION = (
    "append",
    "arrow",
    "begin",
    "commit",
    "create_function",
    "cursor",
    "df",
    "execute",
    "executemany",
    "fetch_arrow_table",
    "fetch_df",
    "fetch_record_batch",
    "fetchall",
    "fetchdf",
    "fetchmany",
    "fetchnumpy",
    "fetchone",
    "from_arrow",
    "from_csv_auto",
    "from_df",
    "from_parquet",
    "from_query",
    "interrupt",
    "pl",
    "query",
    "read_csv",
    "read_json",
    "read_parquet",
    "register",
    "remove_function",
    "rollback",
    "table",
    "table_function",
    "tables",
    "to_arrow_reader",
    "to_arrow_table",
    "torch",
    "unregister",
    "values",
    "view",
)
# `query` is the connection's.
OF_RELATION = (
    "aggregate",
    "distinct",
    "filter",
    "limit",
    "order",
    "project",
    "write_csv",
    "write_parquet",
)


def of_connection(name: str) -> Callable[..., Any]:
    """The function that is this method of the default connection."""
    method = getattr(Connection, name)

    def function(*arguments: Any, **keywords: Any) -> Any:
        return getattr(default_connection(), name)(*arguments, **keywords)

    return _of_module(function, name, f"`Connection.{name}` of the default connection. ", method)


def of_relation(name: str) -> Callable[..., Any]:
    """The function that is this method of a relation over an object that is a table."""
    method = getattr(Relation, name)

    def function(df: Any, *arguments: Any, **keywords: Any) -> Any:
        return getattr(default_connection().from_df(df), name)(*arguments, **keywords)

    return _of_module(function, name, f"`Relation.{name}` over a DataFrame, or another object that is a table. ", method)


def alias(df: Any, alias: str) -> Relation:
    """A relation over a DataFrame, or another object that is a table, of this name in expressions."""
    return default_connection().from_df(df).set_alias(alias)


def query_df(df: Any, virtual_table_name: str, sql_query: str) -> Relation:
    """Runs SQL in which a DataFrame, or another object that is a table, is a table of that name."""
    return default_connection().from_df(df).query(virtual_table_name, sql_query)


def _of_module(function: Callable[..., Any], name: str, before: str, method: Any) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__wrapped__ = method
    function.__module__ = "grouse"
    function.__doc__ = before + (method.__doc__ or "")
    return function


def functions() -> dict[str, Callable[..., Any]]:
    """All of them, by their names."""
    made = {name: of_connection(name) for name in OF_CONNECTION}
    made |= {name: of_relation(name) for name in OF_RELATION}
    return {**made, "alias": alias, "query_df": query_df}
