"""The dialect of SQLAlchemy: `create_engine("grouse://")`.

In: statements that SQLAlchemy makes, names of tables. Out: SQL of ours; what the tables are, from DESCRIBE and information_schema.
Invariant: an engine has one connection, whose tables in memory all of its users see. There are no transactions: each statement is
kept when it has run, so that a rollback takes nothing back, and the isolation level is AUTOCOMMIT.
Not here: cursors (_connection/cursor.py), what SQL means (the engine).
"""

from __future__ import annotations

import datetime
import re
from typing import Any

from sqlalchemy import exc, pool, types
from sqlalchemy.engine import default, reflection
from sqlalchemy.engine.url import URL
from sqlalchemy.sql import compiler, sqltypes, type_api

_SCHEMA = "public"
# Those that a statement or a clause of ours begins with, besides the ones of the standard.
_RESERVED = frozenset(
    "describe exclude ilike index intersect key lateral pivot pivot_longer pivot_wider qualify replace sample show struct summarize "
    "tablesample unnest unpivot".split()
)


class INTERVAL(type_api.NativeForEmulated, sqltypes._AbstractInterval):
    """INTERVAL, whose values are timedelta on both sides: the generic type would store times after 1970."""

    __visit_name__ = "INTERVAL"
    native = True

    @classmethod
    def adapt_emulated_to_native(cls, impl: Any, **kw: Any) -> INTERVAL:
        return cls()

    def as_generic(self, allow_nulltype: bool = False) -> types.Interval:
        return types.Interval(native=True)

    @property
    def python_type(self) -> type[datetime.timedelta]:
        return datetime.timedelta

    def literal_processor(self, dialect: Any) -> Any:
        return lambda value: f"INTERVAL '{value.days} days {value.seconds} seconds {value.microseconds} microseconds'"


_TYPES = {
    "BOOLEAN": types.BOOLEAN,
    "TINYINT": types.SMALLINT,
    "SMALLINT": types.SMALLINT,
    "INTEGER": types.INTEGER,
    "BIGINT": types.BIGINT,
    "UTINYINT": types.SMALLINT,
    "USMALLINT": types.INTEGER,
    "UINTEGER": types.BIGINT,
    "UBIGINT": types.BIGINT,
    "FLOAT": types.REAL,
    "DOUBLE": types.DOUBLE,
    "VARCHAR": types.VARCHAR,
    "BLOB": types.BLOB,
    "DATE": types.DATE,
    "TIME": types.TIME,
    "TIMESTAMP": types.TIMESTAMP,
    "TIMESTAMP_S": types.TIMESTAMP,
    "TIMESTAMP_MS": types.TIMESTAMP,
    "INTERVAL": INTERVAL,
}
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")


def type_of(name: str) -> types.TypeEngine[Any]:
    """SQLAlchemy's type of one that DESCRIBE names; of nested ones NullType, since their values are Python's already."""
    if name == "TIMESTAMP WITH TIME ZONE":
        return types.TIMESTAMP(timezone=True)
    digits = _DECIMAL.fullmatch(name)
    if digits:
        return types.DECIMAL(int(digits[1]), int(digits[2]))
    if name.endswith("[]") and not name.startswith(("STRUCT", "MAP")):
        item = type_of(name.rstrip("[]"))
        return item if isinstance(item, types.NullType) else types.ARRAY(item, dimensions=name.count("[]"))
    found = _TYPES.get(name)
    return types.NullType() if found is None else found()


class GrouseTypeCompiler(compiler.GenericTypeCompiler):
    """Types whose names are other ones here."""

    def visit_DATETIME(self, type_: Any, **kw: Any) -> str:
        return "TIMESTAMP"

    def visit_TIMESTAMP(self, type_: Any, **kw: Any) -> str:
        return "TIMESTAMPTZ" if getattr(type_, "timezone", False) else "TIMESTAMP"

    def visit_datetime(self, type_: Any, **kw: Any) -> str:
        return self.visit_TIMESTAMP(type_, **kw)

    def visit_FLOAT(self, type_: Any, **kw: Any) -> str:
        return "DOUBLE" if type_.precision is None or type_.precision > 24 else "FLOAT"

    def visit_large_binary(self, type_: Any, **kw: Any) -> str:
        return "BLOB"

    def visit_CLOB(self, type_: Any, **kw: Any) -> str:
        return "VARCHAR"

    def visit_JSON(self, type_: Any, **kw: Any) -> str:
        return "VARCHAR"

    def visit_INTERVAL(self, type_: Any, **kw: Any) -> str:
        return "INTERVAL"

    def visit_ARRAY(self, type_: Any, **kw: Any) -> str:
        return self.process(type_.item_type, **kw) + "[]" * (type_.dimensions or 1)


class GrouseCompiler(compiler.SQLCompiler):
    """Statements."""

    def get_cte_preamble(self, recursive: bool) -> str:
        return "WITH RECURSIVE" if recursive else "WITH"

    def limit_clause(self, select: Any, **kw: Any) -> str:
        """OFFSET stands alone: the generic one writes LIMIT -1 before it."""
        limit, offset = select._limit_clause, select._offset_clause
        text = "" if limit is None else f"\n LIMIT {self.process(limit, **kw)}"
        return text if offset is None else f"{text}\n OFFSET {self.process(offset, **kw)}"

    def visit_is_distinct_from_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return f"{self.process(binary.left, **kw)} IS DISTINCT FROM {self.process(binary.right, **kw)}"

    def visit_is_not_distinct_from_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return f"{self.process(binary.left, **kw)} IS NOT DISTINCT FROM {self.process(binary.right, **kw)}"


class GrouseDDLCompiler(compiler.DDLCompiler):
    """CREATE TABLE, without what the engine refuses: foreign keys are not held, so they are not said."""

    def visit_foreign_key_constraint(self, constraint: Any, **kw: Any) -> None:
        return None


class GrouseIdentifierPreparer(compiler.IdentifierPreparer):
    """Names, quoted where they are words of the language."""

    reserved_words = compiler.RESERVED_WORDS | _RESERVED


class GrouseDialect(default.DefaultDialect):
    """grouse, by its database module."""

    name = driver = "grouse"
    default_schema_name = _SCHEMA
    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_multivalues_insert = True
    supports_default_values = True
    supports_empty_insert = False
    supports_sane_multi_rowcount = False
    supports_alter = False
    supports_sequences = False
    supports_comments = False
    postfetch_lastrowid = False
    insert_returning = update_returning = delete_returning = False
    div_is_floordiv = True
    statement_compiler = GrouseCompiler
    ddl_compiler = GrouseDDLCompiler
    type_compiler_cls = GrouseTypeCompiler
    preparer = GrouseIdentifierPreparer
    colspecs = {types.Interval: INTERVAL}

    @classmethod
    def import_dbapi(cls) -> Any:
        import grouse

        return grouse

    @classmethod
    def get_pool_class(cls, url: URL) -> type[pool.Pool]:
        return pool.StaticPool

    def create_connect_args(self, url: URL) -> tuple[list[Any], dict[str, Any]]:
        """The options of `grouse.connect` from an address such as `grouse://?threads=2&memory_limit=1GB`."""
        if url.database or url.host or url.username:
            raise exc.ArgumentError(
                f"{url.render_as_string()}: there is no server and no file of a database; write grouse://, and files in FROM"
            )
        return [], dict(url.query)

    def do_rollback(self, dbapi_connection: Any) -> None:
        """Nothing: SQLAlchemy calls it whenever a connection comes back."""

    def get_isolation_level_values(self, dbapi_connection: Any) -> list[str]:
        return ["AUTOCOMMIT"]

    def get_default_isolation_level(self, dbapi_connection: Any) -> str:
        return "AUTOCOMMIT"

    def get_isolation_level(self, dbapi_connection: Any) -> str:
        return "AUTOCOMMIT"

    def set_isolation_level(self, dbapi_connection: Any, level: str) -> None:
        """There is one."""

    def do_savepoint(self, connection: Any, name: str) -> None:
        raise exc.NotSupportedError("SAVEPOINT", None, Exception("there are no transactions"))

    def _get_default_schema_name(self, connection: Any) -> str:
        return _SCHEMA

    def _get_server_version_info(self, connection: Any) -> tuple[int, ...]:
        said = connection.exec_driver_sql("SELECT version()").scalar()
        return tuple(map(int, re.findall(r"\d+", said)))

    @reflection.cache
    def get_schema_names(self, connection: Any, **kw: Any) -> list[str]:
        text = "SELECT DISTINCT schema_name FROM information_schema.schemata ORDER BY schema_name"
        return list(connection.exec_driver_sql(text).scalars())

    @reflection.cache
    def get_table_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        return self._named(connection, schema, "BASE TABLE")

    @reflection.cache
    def get_view_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        return self._named(connection, schema, "VIEW")

    def _named(self, connection: Any, schema: str | None, kind: str) -> list[str]:
        text = "SELECT table_name FROM information_schema.tables WHERE table_schema = ? AND table_type = ? ORDER BY table_name"
        return list(connection.exec_driver_sql(text, (schema or _SCHEMA, kind)).scalars())

    def has_table(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> bool:
        text = "SELECT count(*) FROM information_schema.tables WHERE table_schema = ? AND table_name = ?"
        return bool(connection.exec_driver_sql(text, (schema or _SCHEMA, table_name)).scalar())

    @reflection.cache
    def get_view_definition(self, connection: Any, view_name: str, schema: str | None = None, **kw: Any) -> str:
        text = "SELECT definition FROM information_schema.views WHERE table_schema = ? AND table_name = ?"
        found = connection.exec_driver_sql(text, (schema or _SCHEMA, view_name)).scalar()
        if found is None:
            raise exc.NoSuchTableError(view_name)
        return found

    def _described(self, connection: Any, table_name: str, schema: str | None) -> list[Any]:
        if not self.has_table(connection, table_name, schema):
            raise exc.NoSuchTableError(table_name)
        quote = self.identifier_preparer.quote_identifier
        return list(connection.exec_driver_sql(f"DESCRIBE {quote(schema or _SCHEMA)}.{quote(table_name)}"))

    @reflection.cache
    def get_columns(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> list[dict[str, Any]]:
        return [
            {"name": name, "type": type_of(kind), "nullable": null == "YES", "default": value, "autoincrement": False}
            for name, kind, null, _, value, _ in self._described(connection, table_name, schema)
        ]

    @reflection.cache
    def get_pk_constraint(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> dict[str, Any]:
        rows = self._described(connection, table_name, schema)
        return {"constrained_columns": [row[0] for row in rows if row[3] == "PRI"], "name": None}

    @reflection.cache
    def get_foreign_keys(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> list[Any]:
        self._described(connection, table_name, schema)
        return []

    @reflection.cache
    def get_indexes(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> list[Any]:
        self._described(connection, table_name, schema)
        return []

    @reflection.cache
    def get_unique_constraints(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> list[Any]:
        """Without their names, which tables do not keep."""
        self._described(connection, table_name, schema)
        text = (
            "SELECT constraint_name, column_name FROM information_schema.key_column_usage WHERE table_schema = ? AND table_name = ? "
            "AND constraint_name IN (SELECT constraint_name FROM information_schema.table_constraints "
            "WHERE table_schema = ? AND table_name = ? AND constraint_type = 'UNIQUE') ORDER BY constraint_name, ordinal_position"
        )
        columns: dict[str, list[str]] = {}
        for name, column in connection.exec_driver_sql(text, (schema or _SCHEMA, table_name) * 2):
            columns.setdefault(name, []).append(column)
        return [{"name": None, "column_names": names} for names in columns.values()]

    @reflection.cache
    def get_check_constraints(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> list[Any]:
        """Without their names, which tables do not keep."""
        self._described(connection, table_name, schema)
        text = (
            "SELECT check_clause FROM information_schema.check_constraints AS c JOIN information_schema.table_constraints AS t "
            "ON c.constraint_schema = t.constraint_schema AND c.constraint_name = t.constraint_name "
            "WHERE t.table_schema = ? AND t.table_name = ? AND t.constraint_type = 'CHECK' ORDER BY c.constraint_name"
        )
        clauses = connection.exec_driver_sql(text, (schema or _SCHEMA, table_name)).scalars()
        return [{"name": None, "sqltext": clause} for clause in clauses]


# What SQLAlchemy asks for by an attribute of the class.
dialect = GrouseDialect
