"""PEP 249: module, connection, cursor; what pandas and Polars do with it."""

from __future__ import annotations

import datetime as dt

import pandas
import polars
import pytest

import grouse


@pytest.fixture
def cursor(con):
    con.sql("CREATE TABLE t AS SELECT * FROM (VALUES (1, 'a', 0.5, DATE '2024-01-02'), (2, NULL, 1.5, NULL)) v(k, s, x, d)")
    with con.cursor() as cursor:
        yield cursor


def test_the_module():
    assert (grouse.apilevel, grouse.threadsafety, grouse.paramstyle) == ("2.0", 2, "qmark")
    assert grouse.Date(2024, 1, 2) == dt.date(2024, 1, 2)
    assert grouse.Timestamp(2024, 1, 2, 3, 4, 5) == dt.datetime(2024, 1, 2, 3, 4, 5)
    assert grouse.DateFromTicks(0) == dt.date.fromtimestamp(0)
    assert grouse.TimeFromTicks(0) == dt.datetime.fromtimestamp(0).time()
    assert grouse.TimestampFromTicks(0) == dt.datetime.fromtimestamp(0)
    assert grouse.Binary(b"x") == b"x"


def test_exceptions(con):
    of_database = ["DataError", "OperationalError", "IntegrityError", "InternalError", "ProgrammingError", "NotSupportedError"]
    for name in of_database:
        assert issubclass(getattr(grouse, name), grouse.DatabaseError)
    assert issubclass(grouse.InterfaceError, grouse.Error) and issubclass(grouse.DatabaseError, grouse.Error)
    assert issubclass(grouse.Warning, Exception) and not issubclass(grouse.Warning, grouse.Error)
    for name in [*of_database, "Error", "Warning", "InterfaceError", "DatabaseError"]:
        assert getattr(con, name) is getattr(grouse, name)
    for text, kind in [
        ("SELEC", grouse.ProgrammingError),
        ("SELECT nope", grouse.ProgrammingError),
        ("SELECT 1 / 0", grouse.DataError),
        ("SELECT CAST('x' AS INT)", grouse.DataError),
        ("SELECT * FROM '/no/such.csv'", grouse.OperationalError),
        ("BEGIN", grouse.NotSupportedError),
    ]:
        with pytest.raises(kind):
            con.cursor().execute(text)


def test_rows(cursor):
    assert cursor.execute("SELECT k, s FROM t WHERE k >= ? ORDER BY k", [1]) is cursor
    assert cursor.fetchone() == (1, "a")
    assert cursor.fetchall() == [(2, None)]
    assert cursor.fetchone() is None and cursor.fetchall() == [] and cursor.fetchmany(5) == []
    cursor.execute("SELECT k FROM t ORDER BY k")
    assert cursor.fetchmany() == [(1,)]
    cursor.arraysize = 5
    assert cursor.fetchmany() == [(2,)]
    assert [row for row in cursor.execute("SELECT k FROM t ORDER BY k")] == [(1,), (2,)]
    assert cursor.execute("SELECT $a + 1", {"a": 1}).fetchall() == [(2,)]
    assert cursor.execute("SELECT ?", (5,)).fetchall() == [(5,)]


def test_description_and_rowcount(cursor):
    assert cursor.description is None and cursor.rowcount == -1
    cursor.execute("SELECT k, s, x, d, 'a'::BLOB AS b FROM t")
    assert [column[0] for column in cursor.description] == ["k", "s", "x", "d", "b"]
    assert all(len(column) == 7 for column in cursor.description)
    kinds = [column[1] for column in cursor.description]
    assert kinds == [grouse.NUMBER, grouse.STRING, grouse.NUMBER, grouse.DATETIME, grouse.BINARY]
    assert kinds[0] != grouse.STRING and kinds[0] != grouse.ROWID
    assert cursor.rowcount == -1
    cursor.execute("INSERT INTO t (k) VALUES (?), (?)", [3, 4])
    assert cursor.rowcount == 2 and cursor.description is None
    cursor.executemany("INSERT INTO t (k) VALUES (?)", [[5], [6], [7]])
    assert cursor.rowcount == 3
    cursor.execute("DELETE FROM t WHERE k > 5")
    assert cursor.rowcount == 2
    cursor.execute("CREATE TABLE other (a INT)")
    assert cursor.rowcount == -1 and cursor.description is None
    cursor.execute("SELECT 5 AS count")
    assert cursor.rowcount == -1 and cursor.fetchall() == [(5,)]


def test_what_has_no_rows_cannot_be_fetched(cursor):
    for fetch in (cursor.fetchone, cursor.fetchmany, cursor.fetchall):
        with pytest.raises(grouse.Error, match="call execute"):
            fetch()
    cursor.execute("INSERT INTO t (k) VALUES (9)")
    for fetch in (cursor.fetchone, cursor.fetchmany, cursor.fetchall):
        with pytest.raises(grouse.Error, match="no rows"):
            fetch()


def test_errors_come_with_execute(cursor):
    with pytest.raises(grouse.DivideByZeroError):
        cursor.execute("SELECT 1 // (k - k) FROM t")


def test_two_cursors_have_results_of_their_own(con, cursor):
    other = con.cursor()
    assert other.connection is con
    cursor.execute("SELECT 1")
    other.execute("SELECT 2")
    con.execute("SELECT 3")
    assert (cursor.fetchone(), other.fetchone(), con.fetchone()) == ((1,), (2,), (3,))


def test_closing(con, cursor):
    cursor.close()
    cursor.close()
    with pytest.raises(grouse.Error, match="closed"):
        cursor.execute("SELECT 1")
    left = con.cursor()
    con.close()
    for call in (con.cursor, con.commit, lambda: con.execute("SELECT 1"), lambda: left.execute("SELECT 1")):
        with pytest.raises(grouse.Error, match="closed"):
            call()


def test_there_are_no_transactions(con):
    assert con.commit() is con
    for call in (con.begin, con.rollback):
        with pytest.raises(grouse.NotSupportedError, match="no transactions"):
            call()


def test_parameters_of_wrong_types(cursor):
    for wrong in ("abc", b"abc", 5):
        with pytest.raises(grouse.TypeError):
            cursor.execute("SELECT ?", wrong)


def test_sizes_are_taken(cursor):
    cursor.setinputsizes([10])
    cursor.setoutputsize(10, 0)


@pytest.mark.filterwarnings("ignore:pandas only supports SQLAlchemy")
def test_pandas_reads(con, cursor):
    frame = pandas.read_sql("SELECT k, s, x FROM t WHERE k >= ? ORDER BY k", con, params=[1])
    assert frame["k"].tolist() == [1, 2] and frame["x"].tolist() == [0.5, 1.5]
    assert frame["s"][0] == "a" and frame["s"].isna().tolist() == [False, True]
    chunks = list(pandas.read_sql_query("SELECT k FROM t ORDER BY k", con, chunksize=1))
    assert [chunk["k"].tolist() for chunk in chunks] == [[1], [2]]


def test_polars_reads(con, cursor):
    frame = polars.read_database("SELECT k, s, x FROM t ORDER BY k", con)
    assert frame.rows() == [(1, "a", 0.5), (2, None, 1.5)]
    frame = polars.read_database("SELECT k FROM t WHERE k > ?", con, execute_options={"parameters": [1]})
    assert frame.rows() == [(2,)]
