"""The backend of Ibis: `ibis.grouse.connect()`, which ibis finds by its entry point.

In: expressions of Ibis, which its compiler of DuckDB's SQL writes. Out: Arrow, pandas, or a table of Ibis over a file or a frame.
Invariant: statements run on one connection; a frame that an expression holds is a table of it for as long as the expression lives.
Not here: SQL (the engine); options, which are those of `grouse.connect`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import ibis
import ibis.common.exceptions as ibis_errors
import ibis.expr.datatypes as dt
import ibis.expr.operations as ops
import ibis.expr.schema as sch
import ibis.expr.types as ir
import pyarrow
import sqlglot
import sqlglot.expressions as sge
from ibis import util
from ibis.backends import NoUrl
from ibis.backends.sql import SQLBackend
from ibis.backends.sql.compilers import duckdb as duckdb_sql
from ibis.backends.sql.compilers.base import SQLGlotCompiler
from ibis.expr.operations.udf import InputType
from ibis.formats.pyarrow import PyArrowSchema, PyArrowType

import grouse
from grouse._text import quoted


class GrouseCompiler(duckdb_sql.DuckDBCompiler):
    """DuckDB's SQL, but for what is written otherwise here."""

    UNSUPPORTED_OPS = (*SQLGlotCompiler.UNSUPPORTED_OPS, *duckdb_sql.DuckDBCompiler.UNSUPPORTED_OPS, ops.GeoSpatialUnOp, ops.GeoSpatialBinOp)

    def visit_Divide(self, op: ops.Divide, *, left: sge.Expression, right: sge.Expression) -> sge.Expression:
        """`/` of integers is whole in SQL here, and is not in Ibis."""
        return sge.Div(this=self.cast(left, op.dtype), expression=right, typed=True)

    def visit_StringSlice(self, op: ops.StringSlice, *, arg: Any, start: Any, end: Any) -> sge.Expression:
        """`array_slice` takes lists alone."""
        start = sge.convert(0) if start is None else start
        if end is None:
            return self.f.substr(arg, start + 1)
        return self.f.substr(arg, start + 1, self.f.greatest(end - start, 0))

    def visit_TimestampBucket(self, op: ops.TimestampBucket, *, arg: Any, interval: Any, offset: Any) -> sge.Expression:
        """'epoch' is no time here."""
        origin = self.cast("1970-01-01 00:00:00", dt.timestamp)
        return self.f.time_bucket(interval, arg, origin if offset is None else origin + offset)

    def visit_Cast(self, op: ops.Cast, *, arg: Any, to: Any) -> sge.Expression:
        """A timestamp as a number is in the unit of its column in SQL here; Ibis means seconds."""
        if op.arg.dtype.is_timestamp() and to.is_numeric():
            return self.cast(self.f.epoch(arg), to)
        return super().visit_Cast(op, arg=arg, to=to)

    def visit_NonNullLiteral(self, op: ops.Literal, *, value: Any, dtype: Any) -> Any:
        """There is no `make_timestamptz`: a time with a zone is written out."""
        if dtype.is_timestamp() and dtype.timezone is not None:
            return self.cast(value.isoformat(sep=" "), dtype)
        return super().visit_NonNullLiteral(op, value=value, dtype=dtype)


class Backend(SQLBackend, NoUrl):
    """A connection of grouse as Ibis sees one."""

    name = "grouse"
    compiler = GrouseCompiler()
    supports_temporary_tables = False
    supports_python_udfs = True

    @property
    def version(self) -> str:
        return grouse.__version__

    def do_connect(self, *, connection: grouse.Connection | None = None, **options: Any) -> None:
        """Opens a connection with these options of `grouse.connect`, or takes one that is open."""
        self.con = connection or grouse.connect(**options)
        # Tables that hold frames of expressions.
        self._frames: set[str] = set()

    @classmethod
    def from_connection(cls, con: grouse.Connection, /, **_: Any) -> Backend:
        return cls().connect(connection=con)

    def disconnect(self) -> None:
        self.con.close()

    def raw_sql(self, query: str | sge.Expression, **_: Any) -> grouse.Relation:
        text = query if isinstance(query, str) else query.sql(dialect=self.dialect)
        self._log(text)
        return self.con.sql(text)

    @contextlib.contextmanager
    def _safe_raw_sql(self, query: str | sge.Expression, **_: Any) -> Iterator[grouse.Relation]:
        yield self.raw_sql(query)

    def list_tables(self, *, like: str | None = None, database: tuple[str, str] | str | None = None) -> list[str]:
        return self._filter_with_like([name for name in self.con.tables() if name not in self._frames], like)

    def get_schema(self, table_name: str, *, catalog: str | None = None, database: str | None = None) -> sch.Schema:
        if table_name not in self.con.tables():
            raise ibis_errors.TableNotFound(table_name)
        return self._get_schema_using_query(f"SELECT * FROM {quoted(table_name)}")

    def _get_schema_using_query(self, query: str) -> sch.Schema:
        return PyArrowSchema.to_ibis(pyarrow.schema(self.con.sql(query)))

    def to_pyarrow_batches(
        self,
        expr: ir.Expr,
        /,
        *,
        params: Mapping[ir.Scalar, Any] | None = None,
        limit: int | str | None = None,
        chunk_size: int = 1_000_000,
        **options: Any,
    ) -> pyarrow.RecordBatchReader:
        schema = PyArrowSchema.from_ibis(expr.as_table().schema())
        found = self._relation(expr, params=params, limit=limit, **options).to_arrow_reader(chunk_size)
        # A cast may lose what the engine keeps: a decimal is as wide as ibis says.
        tables = (pyarrow.Table.from_batches([batch]).rename_columns(schema.names).cast(schema) for batch in found)
        return pyarrow.RecordBatchReader.from_batches(schema, (batch for table in tables for batch in table.to_batches()))

    def _relation(self, expr: ir.Expr, **options: Any) -> grouse.Relation:
        self._run_pre_execute_hooks(expr)
        return self.con.sql(self.compile(expr.as_table(), **options))

    def to_parquet(self, expr: ir.Expr, /, path: str | Path, *, params: Mapping[ir.Scalar, Any] | None = None, **options: Any) -> None:
        self._relation(expr, params=params).to_parquet(str(path), **options)

    def to_csv(self, expr: ir.Expr, /, path: str | Path, *, params: Mapping[ir.Scalar, Any] | None = None, **options: Any) -> None:
        self._relation(expr, params=params).to_csv(str(path), **options)

    def to_pyarrow(self, expr: ir.Expr, /, **options: Any) -> pyarrow.Table | pyarrow.Array | pyarrow.Scalar:
        return expr.__pyarrow_result__(self.to_pyarrow_batches(expr, **options).read_all())

    def execute(self, expr: ir.Expr, /, **options: Any) -> Any:
        import pandas
        from ibis.formats.pandas import PandasData

        found = self.to_pyarrow_batches(expr, **options).read_all()
        # Integers with NULL stay objects, as in Ibis's other backends of one process.
        columns = {
            name: column.to_pylist() if pyarrow.types.is_nested(column.type) or column.null_count else column.to_pandas()
            for name, column in zip(found.column_names, found.columns, strict=True)
        }
        frame = PandasData.convert_table(pandas.DataFrame(columns), expr.as_table().schema())
        return expr.__pandas_result__(frame)

    def create_table(
        self,
        name: str,
        /,
        obj: Any = None,
        *,
        schema: Any = None,
        database: str | None = None,
        temp: bool = False,
        overwrite: bool = False,
    ) -> ir.Table:
        """Makes a table of an expression, a frame or a schema. Every table ends with the connection."""
        if obj is None and schema is None:
            raise ValueError("create_table() takes an expression, a frame or a schema")
        target = sqlglot.table(name, quoted=True)
        replaced = {"kind": "TABLE", "replace": overwrite}
        if obj is None:
            columns = ibis.schema(schema).to_sqlglot_column_defs(self.dialect)
            self.raw_sql(sge.Create(this=sge.Schema(this=target, expressions=columns), **replaced))
            return self.table(name)
        table = obj if isinstance(obj, ir.Expr) else ibis.memtable(obj, schema=schema)
        if schema is not None and isinstance(obj, ir.Expr):
            table = table.cast(ibis.schema(schema))
        self._run_pre_execute_hooks(table)
        self.raw_sql(sge.Create(this=target, expression=self.compiler.to_sqlglot(table), **replaced))
        return self.table(name)

    def drop_table(self, name: str, /, *, database: tuple[str, str] | str | None = None, force: bool = False) -> None:
        self.raw_sql(f"DROP TABLE {'IF EXISTS ' if force else ''}{quoted(name)}")

    def drop_view(self, name: str, /, *, database: tuple[str, str] | str | None = None, force: bool = False) -> None:
        self.raw_sql(f"DROP VIEW {'IF EXISTS ' if force else ''}{quoted(name)}")

    def read_parquet(self, path: Any, /, *, table_name: str | None = None, **options: Any) -> ir.Table:
        return self._read(self.con.read_parquet(path, **options), "parquet", table_name)

    def read_csv(self, path: Any, /, *, table_name: str | None = None, **options: Any) -> ir.Table:
        return self._read(self.con.read_csv(path, **options), "csv", table_name)

    def read_json(self, path: Any, /, *, table_name: str | None = None, **options: Any) -> ir.Table:
        return self._read(self.con.read_json(path, **options), "json", table_name)

    def _read(self, rows: grouse.Relation, kind: str, table_name: str | None) -> ir.Table:
        """A view over files, which are read when a result is asked for."""
        name = table_name or util.gen_name(f"read_{kind}")
        rows.create_view(name)
        return self.table(name)

    def _register_in_memory_table(self, op: ops.InMemoryTable) -> None:
        self.con.register(op.name, op.data.to_pyarrow(op.schema))
        self._frames.add(op.name)

    def _make_memtable_finalizer(self, name: str) -> Any:
        connection, frames = self.con, self._frames

        def forget() -> None:
            frames.discard(name)
            with contextlib.suppress(grouse.Error):
                connection.unregister(name)

        return forget

    def _register_python_udf(self, udf_node: ops.ScalarUDF) -> None:
        self._register_function(udf_node, {})

    def _register_pyarrow_udf(self, udf_node: ops.ScalarUDF) -> None:
        self._register_function(udf_node, {"type": "arrow"})

    def _register_udfs(self, expr: ir.Expr) -> None:
        makers = {InputType.PYTHON: self._register_python_udf, InputType.PYARROW: self._register_pyarrow_udf}
        for node in expr.op().find(ops.ScalarUDF):
            if (maker := makers.get(node.__input_type__)) is not None:
                maker(node)

    def _register_function(self, node: ops.ScalarUDF, options: dict[str, str]) -> None:
        types = [PyArrowType.from_ibis(argument.dtype) for argument in node.args]
        name = type(node).__name__
        with contextlib.suppress(grouse.Error):
            self.con.remove_function(name)
        self.con.create_function(name, node.__func__, types, PyArrowType.from_ibis(node.dtype), **options, **node.__config__)
