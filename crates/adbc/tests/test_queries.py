"""Queries through Python's driver manager: values and types, parameters, streams, schemas."""

from __future__ import annotations

import datetime
import decimal

import pyarrow as pa
import pytest
from adbc_driver_manager import dbapi


def rows(cursor: dbapi.Cursor, sql: str, parameters=None) -> list[tuple]:
    cursor.execute(sql, parameters)
    return cursor.fetchall()


def test_select(cur):
    assert rows(cur, "SELECT 1 AS a, 'x' AS b, NULL AS c") == [(1, "x", None)]
    assert [column[0] for column in cur.description] == ["a", "b", "c"]


def test_group_by(cur):
    cur.execute("SELECT number % 3 AS k, sum(number) AS s FROM numbers(10) GROUP BY k ORDER BY k")
    assert cur.fetch_arrow_table().to_pydict() == {"k": [0, 1, 2], "s": [18, 12, 15]}


def test_a_file(cur, tmp_path):
    path = tmp_path / "orders.csv"
    path.write_text("id,price\n1,2.5\n2,3.5\n")
    assert rows(cur, f"SELECT sum(price) FROM '{path}'") == [(6.0,)]


def test_types(cur):
    sql = """SELECT true AS b, 1::TINYINT AS i8, 2::BIGINT AS i64, 1.5::DOUBLE AS f, 1.25::DECIMAL(9, 2) AS d,
             DATE '2024-02-29' AS day, TIMESTAMP '2024-02-29 12:30:00.5' AS t, 'é' AS s, '\\x01'::BYTEA AS y, [1, NULL] AS l"""
    values = rows(cur, sql.replace("'\\x01'::BYTEA", "unhex('01')"))[0]
    assert values[:5] == (True, 1, 2, 1.5, decimal.Decimal("1.25"))
    assert values[5] == datetime.date(2024, 2, 29)
    assert values[6] == datetime.datetime(2024, 2, 29, 12, 30, 0, 500000)
    assert values[7:] == ("é", b"\x01", [1, None])


def test_several_statements(cur):
    sql = "CREATE TABLE t AS SELECT 1 AS a; INSERT INTO t VALUES (2); SELECT a FROM t ORDER BY a"
    assert rows(cur, sql) == [(1,), (2,)]


def test_positional_parameters(cur):
    assert rows(cur, "SELECT ? + 1, $2", (41, "x")) == [(42, "x")]
    assert rows(cur, "SELECT ? IS NULL", (None,)) == [(True,)]


def test_named_parameters(cur):
    assert rows(cur, "SELECT $a - $b", {"b": 1, "a": 43}) == [(42,)]
    batch = pa.RecordBatch.from_pydict({"b": [1], "a": [43]})
    assert rows(cur, "SELECT $a - $b", batch) == [(42,)]


def test_a_query_for_each_row_of_parameters(cur):
    """One result, of all rows of parameters in their order."""
    batch = pa.RecordBatch.from_pydict({"a": pa.array([3, None, 5], pa.int64())})
    assert rows(cur, "SELECT ? * 2 AS b", batch) == [(6,), (None,), (10,)]
    none = batch.slice(0, 0)
    cur.execute("SELECT ? * 2 AS b", none)
    table = cur.fetch_arrow_table()
    assert (table.column_names, table.num_rows, table.schema.field("b").type) == (["b"], 0, pa.int64())


def test_a_stream_of_parameters(cur):
    schema = pa.schema([("a", pa.int64())])
    batches = (pa.RecordBatch.from_pydict({"a": [n, n + 1]}, schema) for n in (0, 2))
    reader = pa.RecordBatchReader.from_batches(schema, batches)
    assert rows(cur, "SELECT ? + 10", reader) == [(10,), (11,), (12,), (13,)]


def test_executemany_counts_rows(cur):
    cur.execute("CREATE TABLE t (a BIGINT, b VARCHAR)")
    cur.executemany("INSERT INTO t VALUES (?, ?)", [(1, "x"), (2, None), (3, "z")])
    assert cur.rowcount == 3
    assert rows(cur, "SELECT * FROM t ORDER BY a") == [(1, "x"), (2, None), (3, "z")]
    cur.executemany("UPDATE t SET b = $2 WHERE a >= $1", [(2, "u"), (3, "v")])
    assert cur.rowcount == 3
    assert rows(cur, "SELECT b FROM t ORDER BY a") == [("x",), ("u",), ("v",)]
    cur.executemany("DELETE FROM t WHERE a = $key", [{"key": 1}, {"key": 9}])
    assert cur.rowcount == 1


def test_executemany_without_rows_runs_nothing(cur):
    cur.execute("CREATE TABLE t (a BIGINT)")
    empty = pa.RecordBatch.from_pydict({"a": pa.array([], pa.int64())})
    cur.executemany("INSERT INTO t VALUES (?)", empty)
    assert rows(cur, "SELECT count(*) FROM t") == [(0,)]


def test_statements_with_effects_run_when_executed(cur, tmp_path):
    """Their result need not be read."""
    cur.execute("CREATE TABLE t (a BIGINT)")
    cur.execute("INSERT INTO t VALUES (1), (2)")
    cur.execute(f"COPY t TO '{tmp_path / 't.csv'}'")
    assert (tmp_path / "t.csv").read_text() == "a\n1\n2\n"
    assert rows(cur, "SELECT count(*) FROM t") == [(2,)]
    assert rows(cur, "INSERT INTO t VALUES (3) RETURNING a * 10") == [(30,)]


def test_execute_schema_runs_nothing(cur):
    schema = cur.adbc_execute_schema("SELECT 1::INTEGER AS a, 'x' AS b")
    assert schema.names == ["a", "b"] and schema.field("a").type == pa.int32()
    assert cur.adbc_execute_schema("CREATE TABLE t (a BIGINT)").names == []
    with pytest.raises(dbapi.ProgrammingError, match="'t' does not exist"):
        cur.execute("SELECT * FROM t")


def test_parameter_schema(cur):
    cur.execute("CREATE TABLE t (a BIGINT, b VARCHAR)")
    schema = cur.adbc_prepare("SELECT a FROM t WHERE a = ? AND b = ?")
    assert schema.names == ["", ""] and schema.field(0).type == pa.int64()
    assert cur.adbc_prepare("SELECT $one, $one, $two").names == ["one", "two"]
    assert cur.adbc_prepare("SELECT 1").names == []


def test_prepared_statements_run_again(con):
    with con.cursor() as cursor:
        for number in range(3):
            assert rows(cursor, "SELECT ? * 2", (number,)) == [(number * 2,)]


def test_connections_of_a_database_share_its_tables(con):
    with con.cursor() as cursor:
        cursor.execute("CREATE TABLE t AS SELECT 7 AS a")
    with pytest.warns(dbapi.Warning, match="autocommit"):
        other = con.adbc_clone()
    with other, other.cursor() as cursor:
        assert rows(cursor, "SELECT a FROM t") == [(7,)]


def test_databases_are_apart(connect):
    with connect().cursor() as one, connect().cursor() as other:
        one.execute("CREATE TABLE t AS SELECT 1 AS a")
        with pytest.raises(dbapi.ProgrammingError):
            other.execute("SELECT * FROM t")


def test_a_result_larger_than_the_memory_limit(connect):
    """It is read as it is made: 800 MB of rows under a limit of 64 MB."""
    with connect(memory_limit="64MB").cursor() as cursor:
        cursor.execute("SELECT number AS n FROM numbers(100000000)")
        count = total = 0
        for batch in cursor.fetch_record_batch():
            count += batch.num_rows
            total += batch.column(0)[0].as_py() >= 0
        assert (count, total > 1) == (100_000_000, True)


def test_a_result_that_is_not_read_to_its_end(con):
    with con.cursor() as cursor:
        cursor.execute("SELECT number FROM numbers(100000000000)")
        assert cursor.fetchone() is not None
        assert rows(cursor, "SELECT 1") == [(1,)]
