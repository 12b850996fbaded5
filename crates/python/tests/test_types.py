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


def test_values_of_a_dictionary_are_one_object_each(con):
    rows = con.sql("SELECT arrow_cast(CAST(number % 3 AS VARCHAR) || ' and more', 'Dictionary(Int32, Utf8)') FROM numbers(300)").fetchall()
    assert len(rows) == 300
    assert len({id(value) for (value,) in rows}) <= 3 * 2, "three values a batch, at most a few batches"


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
