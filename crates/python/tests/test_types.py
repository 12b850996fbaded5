"""Every type in both directions: SQL to Python objects, Python parameters to SQL, Arrow libraries there and back."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import sys
import uuid
import zoneinfo

import numpy
import pandas
import polars
import pytest

import grouse

D = decimal.Decimal
UTC = dt.timezone.utc


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("CAST(-1 AS TINYINT)", -1),
        ("CAST(-32768 AS SMALLINT)", -32768),
        ("CAST(7 AS INT)", 7),
        ("-9223372036854775808", -9223372036854775808),
        ("CAST(18446744073709551615 AS BIGINT UNSIGNED)", 18446744073709551615),
        ("CAST(0.5 AS REAL)", 0.5),
        ("CAST(0.1 AS DOUBLE)", 0.1),
        ("CAST('inf' AS DOUBLE)", math.inf),
        ("CAST(-1.50 AS DECIMAL(10, 2))", D("-1.50")),
        ("CAST('12345678901234567890123456789012345.678' AS DECIMAL(38, 3))", D("12345678901234567890123456789012345.678")),
        ("true", True),
        ("NULL", None),
        ("CAST(NULL AS INT)", None),
        ("'naïve 😀'", "naïve 😀"),
        ("''", ""),
        ("X'00ff'", b"\x00\xff"),
        ("DATE '2024-02-29'", dt.date(2024, 2, 29)),
        ("DATE '0001-01-01'", dt.date(1, 1, 1)),
        ("TIME '23:59:59.123456'", dt.time(23, 59, 59, 123456)),
        ("TIMESTAMP '2024-02-29 12:34:56.123456'", dt.datetime(2024, 2, 29, 12, 34, 56, 123456)),
        ("TIMESTAMP '1900-01-01 00:00:00'", dt.datetime(1900, 1, 1)),
        ("arrow_cast('2024-02-29T12:00:00Z', 'Timestamp(Microsecond, Some(\"UTC\"))')", dt.datetime(2024, 2, 29, 12, tzinfo=UTC)),
        (
            "arrow_cast('2024-07-01T12:00:00Z', 'Timestamp(Second, Some(\"Europe/Berlin\"))')",
            dt.datetime(2024, 7, 1, 14, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")),
        ),
        (
            "arrow_cast('2024-07-01T12:00:00Z', 'Timestamp(Second, Some(\"+05:30\"))')",
            dt.datetime(2024, 7, 1, 17, 30, tzinfo=dt.timezone(dt.timedelta(hours=5, minutes=30))),
        ),
        ("arrow_cast(-1500, 'Duration(Millisecond)')", dt.timedelta(seconds=-1.5)),
        ("INTERVAL '1 month 2 days 3 hours'", dt.timedelta(days=32, hours=3)),
        ("INTERVAL '-1 second'", dt.timedelta(seconds=-1)),
        ("[1, NULL, 3]", [1, None, 3]),
        ("[[1], [], [2, 3]]", [[1], [], [2, 3]]),
        ("struct(1, 'x')", {"c0": 1, "c1": "x"}),
        ("named_struct('a', 1, 'b', [1.5])", {"a": 1, "b": [1.5]}),
        ("map(['k', 'l'], [1, 2])", {"k": 1, "l": 2}),
        ("arrow_cast('x', 'Dictionary(Int32, Utf8)')", "x"),
        ("arrow_cast('x', 'LargeUtf8')", "x"),
        ("arrow_cast('x', 'Utf8View')", "x"),
        ("arrow_cast([1, 2], 'FixedSizeList(2, Int64)')", [1, 2]),
        ("arrow_cast([1, 2], 'LargeList(Int64)')", [1, 2]),
    ],
)
def test_sql_to_python(con, expression, expected):
    (value,) = con.sql(f"SELECT {expression}").fetchone()
    assert value == expected
    assert type(value) is type(expected)
    if isinstance(expected, dt.datetime):
        assert value.utcoffset() == expected.utcoffset()


def test_nan(con):
    assert math.isnan(con.sql("SELECT CAST('nan' AS DOUBLE)").fetchone()[0])


def test_nulls_among_values(con):
    rows = con.sql(
        "SELECT CASE WHEN number % 2 = 0 THEN number END, CASE WHEN number % 2 = 1 THEN 'odd' END, "
        "CASE WHEN number > 2 THEN [number] END FROM numbers(4) ORDER BY number"
    ).fetchall()
    assert rows == [(0, None, None), (None, "odd", None), (2, None, None), (None, "odd", [3])]


@pytest.mark.parametrize("text", ["SELECT TIMESTAMP '9999-12-31 00:00:00' + INTERVAL '2 days'", "SELECT DATE '9999-12-31' + 2"])
def test_years_that_python_has_not_are_an_error(con, text):
    with pytest.raises(grouse.Error):
        con.sql(text).fetchall()


def objects(rows, column=0):
    """How many objects the values of a column are."""
    return len({id(row[column]) for row in rows})


def test_equal_values_are_one_object(con):
    rows = con.sql(
        """SELECT 'a text of ' || (number % 100), 'short' || (number % 10), CAST(number % 7 AS DECIMAL(10, 2)),
                  arrow_cast(CAST(number % 5 AS INT), 'Date32'), arrow_cast(number % 3, 'Timestamp(Second, None)'),
                  [(number % 2) || ' of a list'], arrow_cast('blob' || (number % 4), 'Binary'), NULLIF('n' || (number % 2), 'n0')
           FROM numbers(100000)"""
    ).fetchall()
    assert [objects(rows, column) for column in (0, 1, 2, 3, 4, 6, 7)] == [100, 10, 7, 5, 3, 4, 2]
    assert len({id(row[5]) for row in rows}) == len(rows), "lists can be changed: each row has its own"
    assert len({id(row[5][0]) for row in rows}) == 2
    first = ("a text of 0", "short0", D("0.00"), dt.date(1970, 1, 1), dt.datetime(1970, 1, 1), ["0 of a list"], b"blob0", None)
    assert first in rows


def test_fetches_share_objects(con):
    relation = con.sql("SELECT 'text ' || (number % 3) FROM numbers(100000)")
    rows = relation.fetchmany(10) + [relation.fetchone()] + relation.fetchmany(50_000) + relation.fetchall()
    assert (len(rows), objects(rows)) == (100_000, 3)


def test_values_that_do_not_repeat(con):
    """First ever new ones, then repeated ones, then ever new ones; long ones all the time."""
    sql = """SELECT CASE WHEN number BETWEEN 100000 AND 200000 THEN 'again ' || (number % 10) ELSE 'new ' || number END,
                    repeat('x', 300) || (number % 2)
             FROM numbers(300000)"""
    rows = con.sql(sql).fetchall()
    expected = [f"again {at % 10}" if 100_000 <= at <= 200_000 else f"new {at}" for at in range(300_000)]
    assert sorted(row[0] for row in rows) == sorted(expected)
    assert {row[1] for row in rows} == {"x" * 300 + "0", "x" * 300 + "1"}


def test_values_of_a_dictionary_are_one_object_each(con):
    values = ["red", "a much longer value than twelve bytes", None, "green"]
    frame = polars.DataFrame({"v": polars.Series(values * 30_000, dtype=polars.Categorical)})
    rows = con.sql("SELECT v FROM frame").fetchall()
    assert [row[0] for row in rows] == values * 30_000
    assert objects(rows) == 4


def test_keys_of_dictionaries_of_any_type(con):
    arrow = pytest.importorskip("pyarrow")
    values = {
        "truths": arrow.array([True, False, True]),
        "spans": arrow.array([1, 2, 1], arrow.duration("s")),
        "lists": arrow.array([[1], [2, None], [1]]),
        "numbers": arrow.array([1.5, -2.0, 1.5]),
        "texts": arrow.array(["a", "a longer text than a view", "a"]),
    }
    for name, distinct in values.items():
        keys = arrow.DictionaryArray.from_arrays(arrow.array([0, 1, 2, None, 1] * 40, "int8"), distinct)
        coded = arrow.table({"k": keys, "n": list(range(200))})
        found = con.sql("SELECT k, count(*) AS c FROM coded GROUP BY k").arrow()
        found = found.read_all() if hasattr(found, "read_all") else found
        is_coded = arrow.types.is_dictionary(found.schema.field("k").type)
        assert is_coded == (name == "texts"), f"{name}: codes of anything else are as long as it is, and unpacked"
        rows = {str(row["k"]): row["c"] for row in found.to_pylist()}
        one, two = distinct.to_pylist()[:2]
        assert rows == {str(one): 80, str(two): 80, "None": 40}, name


def test_lists_of_a_dictionary_are_a_rows_own(con):
    arrow = pytest.importorskip("pyarrow")
    lists = arrow.DictionaryArray.from_arrays(arrow.array([0, 1, 0, None, 0], "int8"), arrow.array([[1], [2, 3]]))
    coded = arrow.table({"v": lists})
    rows = con.sql("SELECT v FROM coded").fetchall()
    assert sorted(map(str, rows)) == ["(None,)", "([1],)", "([1],)", "([1],)", "([2, 3],)"]
    assert objects(rows) == 5


@pytest.mark.parametrize("codes", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_dictionaries_of_every_batch_are_read_by_their_own_values(con, codes):
    """Other values in each batch, some twice, some in no row, NULL as a value and as a code."""
    arrow = pytest.importorskip("pyarrow")
    batches, expected = [], []
    for values in (["aa", "bb", "aa", None, "unused"], ["bb", "cc"], ["cc", "bb", "d" * 300]):
        picked = [None if row % 7 == 0 else row % min(len(values), 4) for row in range(1000)]
        column = arrow.DictionaryArray.from_arrays(arrow.array(picked, codes), arrow.array(values))
        batches.append(arrow.record_batch([column], names=["v"]))
        expected += [None if code is None else values[code] for code in picked]
    dictionaries = arrow.Table.from_batches(batches)
    rows = con.sql("SELECT v FROM dictionaries").fetchall()
    assert sorted(map(str, (row[0] for row in rows))) == sorted(map(str, expected))
    assert objects([row for row in rows if row[0] and len(row[0]) == 2]) == 3, "aa, bb and cc, whichever dictionary they are of"


@pytest.mark.parametrize(
    "value",
    [
        None, True, False, 0, -1, 2**63 - 1, -(2**63), 2**64 - 1, 1.5, math.inf, "", "it's", "naïve 😀", b"", b"\x00\xff",
        D("1.50"), D("-0.001"), D("1E+3"), D("12345678901234567890123456789012345678"), 10**30,
        dt.date(1969, 12, 31), dt.datetime(2024, 2, 29, 1, 2, 3, 4), dt.datetime(1900, 1, 1), dt.time(1, 2, 3, 4),
        dt.timedelta(days=-1, seconds=5, microseconds=7), [1, 2, None], ["a"], [1.5, 2], {"a": 1, "b": "x"},
    ],
)  # fmt: skip
def test_parameters_come_back(con, value):
    (back,) = con.sql("SELECT $1 AS v", [value]).fetchone()
    assert back == value


def test_parameters_of_other_libraries(con):
    aware = dt.datetime(2024, 1, 1, 12, tzinfo=zoneinfo.ZoneInfo("Asia/Tokyo"))
    assert con.sql("SELECT ?", [aware]).fetchone() == (aware,)
    name = uuid.UUID(int=7)
    assert con.sql("SELECT ?", [name]).fetchone() == (str(name),)
    assert con.sql("SELECT ?, ?", [numpy.int32(5), numpy.float64(0.5)]).fetchone() == (5, 0.5)


def test_parameters_keep_nanoseconds(con):
    numpy, pandas = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    moment = "2024-01-01T00:00:00.123456789"
    for value in (numpy.datetime64(moment), pandas.Timestamp(moment)):
        found = con.sql("SELECT ? = TIMESTAMP '2024-01-01 00:00:00.123456789', arrow_typeof(?)", [value, value])
        assert found.fetchall() == [(True, "Timestamp(ns)")], repr(value)
    for value in (numpy.timedelta64(5, "ns"), pandas.Timedelta(5, "ns")):
        assert con.sql("SELECT ? = INTERVAL '5 nanoseconds'", [value]).fetchall() == [(True,)], repr(value)
    assert con.sql("SELECT ? = INTERVAL '5 months'", [numpy.timedelta64(5, "M")]).fetchall() == [(True,)]
    days = numpy.array(["2024-01-01", "NaT"], dtype="M8[ns]")
    assert con.sql("SELECT arrow_typeof(?)", [days]).fetchall() == [("List(Timestamp(ns))",)]
    for value in (pandas.NaT, pandas.NA, numpy.datetime64("NaT", "ns"), numpy.timedelta64("NaT", "ns")):
        assert con.sql("SELECT ?", [value]).fetchall() == [(None,)], repr(value)
    with pytest.raises(TypeError, match="timedelta64"):
        con.sql("SELECT ?", [numpy.timedelta64(1, "ps")])


@pytest.mark.parametrize("value", [object(), {1, 2}, D("NaN"), 10**77, [1, "x"], dt.time(1, tzinfo=UTC), 1j])
def test_parameters_that_sql_cannot_hold(con, value):
    with pytest.raises(TypeError) as caught:
        con.sql("SELECT $1", [value])
    assert isinstance(caught.value, grouse.TypeError)


def test_params_must_be_a_list_or_dict(con):
    with pytest.raises(grouse.TypeError, match="params"):
        con.sql("SELECT $1", "x")
    with pytest.raises(grouse.InvalidError):
        con.sql("SELECT $1, $2", [1])
    with pytest.raises(grouse.InvalidError):
        con.sql("SELECT 1; SELECT $1", [1])


EVERYTHING = """
    SELECT number AS u, CAST(number AS INT) - 2 AS i, number / 3.0 AS f, number % 2 = 0 AS b, CAST(number AS VARCHAR) AS t,
           CASE WHEN number > 1 THEN number END AS un, CASE WHEN number > 1 THEN number / 2.0 END AS fn,
           CASE WHEN number > 1 THEN number > 2 END AS bn, CASE WHEN number > 1 THEN 'x' END AS tn,
           DATE '2024-01-01' + CAST(number AS INT) AS d, TIMESTAMP '2024-01-01 00:00:00' AS ts,
           CASE WHEN number > 1 THEN TIMESTAMP '2024-01-01 01:02:03' END AS tsn,
           arrow_cast(1704067200000000 + CAST(number AS BIGINT), 'Timestamp(Microsecond, Some("Europe/Berlin"))') AS tz,
           CAST(number AS DECIMAL(10, 2)) AS de, X'0a' AS bi, [number] AS l, arrow_cast(5, 'Duration(Second)') AS du
    FROM numbers(5) ORDER BY u
"""


def test_df(con):
    frame = con.sql(EVERYTHING).df()
    assert frame["u"].tolist() == [0, 1, 2, 3, 4]
    assert frame["un"].isna().tolist() == [True, True, False, False, False]
    assert frame["d"].tolist()[1] == dt.date(2024, 1, 2)
    assert frame["tz"].dt.tz is not None
    assert isinstance(frame, pandas.DataFrame)


def test_df_is_the_same_without_pyarrow(con, monkeypatch):
    with_pyarrow = con.sql(EVERYTHING).df()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    without = con.sql(EVERYTHING).df()
    # Lists come as numpy arrays from pyarrow and as lists without it.
    with_pyarrow["l"] = with_pyarrow["l"].map(list)
    pandas.testing.assert_frame_equal(without, with_pyarrow)
    empty = con.sql("SELECT number, 'x' AS t FROM numbers(5) WHERE number > 10").df()
    assert empty.columns.tolist() == ["number", "t"] and len(empty) == 0


def test_polars_and_pyarrow_agree_with_rows(con):
    text = "SELECT number AS n, number / 7.0 AS f, CAST(number AS VARCHAR) AS t, [number, NULL] AS l FROM numbers(20000) ORDER BY n"
    relation = con.sql(text)
    rows = relation.fetchall()
    assert relation.pl().rows() == rows
    table = relation.arrow()
    assert list(zip(*(column.to_pylist() for column in table.columns), strict=True)) == rows
    assert polars.DataFrame(relation).rows() == rows
