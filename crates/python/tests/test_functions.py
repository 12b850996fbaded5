"""Functions of Python in SQL. Values that DuckDB gives, too, are compared with DuckDB's."""

from __future__ import annotations

import datetime
import decimal
import random
import subprocess
import sys
import threading
import time
import uuid

import duckdb
import numpy
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import grouse


@pytest.fixture
def duck():
    with duckdb.connect() as connection:
        yield connection


def rows(con, sql: str):
    return con.sql(sql).fetchall()


def test_each_row_is_a_call(con, duck):
    for one in (con, duck):
        one.create_function("plus_one", lambda x: x + 1, ["BIGINT"], "BIGINT")
    sql = "SELECT plus_one(x), plus_one(41) FROM (VALUES (1), (NULL), (3)) AS t(x)"
    assert rows(con, sql) == rows(duck, sql) == [(2, 42), (None, 42), (4, 42)]
    assert rows(con, "SELECT sum(PLUS_ONE(number)) FROM numbers(100000)") == [(5000050000,)]


def test_batches_are_arrays(con, duck):
    for one in (con, duck):
        one.create_function("added", lambda x, y: pc.add(x, y), ["BIGINT", "BIGINT"], "BIGINT", type="arrow")
        one.create_function("loud", lambda s: pc.utf8_upper(s), ["VARCHAR"], "VARCHAR", type="arrow")
    sql = "SELECT added(x, 1), loud(s) FROM (VALUES (1, 'a'), (NULL, NULL), (3, 'c')) AS t(x, s)"
    assert rows(con, sql) == rows(duck, sql) == [(2, "A"), (None, None), (4, "C")]
    assert rows(con, "SELECT sum(added(number, number)) FROM numbers(100000)") == [(9999900000,)]


def test_types_are_read_from_annotations(con):
    def repeated(text: str, times: int = 2) -> str:
        return text * times

    def scaled(values: list[float], by: float | None) -> list[float]:
        return [value * by for value in values]

    con.create_function("repeated", repeated).create_function("scaled", scaled)
    assert rows(con, "SELECT repeated('ab', 3), scaled([1, 2], 1.5)") == [("ababab", [1.5, 3.0])]
    with pytest.raises(grouse.Error, match="repeated"):
        con.sql("SELECT repeated('ab', 1, 2)")


def test_arguments_of_any_type(con):
    con.create_function("first_of", lambda *values: str(values[0]), None, "VARCHAR")
    con.create_function("class_of", lambda value: type(value).__name__, None, "VARCHAR")
    assert rows(con, "SELECT first_of(1, 'a'), first_of('b'), class_of(1.5::DOUBLE), class_of([1])") == [
        ("1", "b", "float", "list")
    ]
    assert rows(con, "SELECT class_of(DATE '2020-01-01'), class_of({'a': 1})") == [("date", "dict")]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("BOOLEAN", True),
        ("TINYINT", -128),
        ("SMALLINT", 7),
        ("INTEGER", 2**31 - 1),
        ("BIGINT", -(2**63)),
        ("UTINYINT", 255),
        ("UBIGINT", 2**64 - 1),
        ("FLOAT", 0.5),
        ("DOUBLE", 1e300),
        ("VARCHAR", "naïve 🦆"),
        ("BLOB", b"\x00\xff"),
        ("DECIMAL(10, 2)", decimal.Decimal("-12345678.90")),
        ("DECIMAL(38, 0)", decimal.Decimal(10**37)),
        ("DATE", datetime.date(1969, 7, 20)),
        ("TIMESTAMP", datetime.datetime(2020, 2, 29, 23, 59, 59, 999999)),
        ("TIMESTAMPTZ", datetime.datetime(2020, 2, 29, 12, tzinfo=datetime.timezone.utc)),
        ("TIME", datetime.time(23, 59, 59, 1)),
        ("INTERVAL", datetime.timedelta(days=3, microseconds=5)),
        ("INTEGER[]", [1, None, 3]),
        ("INTEGER[2]", [1, 2]),
        ("VARCHAR[][]", [["a"], [], ["b", "c"]]),
        ("STRUCT(a INTEGER, b VARCHAR)", {"a": 1, "b": None}),
        ("MAP(VARCHAR, INTEGER)", {"x": 1, "y": 2}),
    ],
)
def test_values_go_there_and_back(con, kind, value):
    seen = []

    def same(x):
        seen.append(x)
        return x

    con.create_function("same", same, [kind], kind, null_handling="special")
    con.create_function("made", lambda: value, [], kind)
    assert rows(con, "SELECT made(), same(made()), same(NULL)") == [(value, value, None)]
    assert rows(con, "SELECT same(CASE WHEN number > 0 THEN made() END) FROM numbers(3) ORDER BY number") == [(None,), (value,), (value,)]
    assert value in seen and all(type(one) in (type(value), type(None)) for one in seen)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("BIGINT", 1.5),
        ("BIGINT", "12"),
        ("BIGINT", True),
        ("BIGINT", 2**63),
        ("TINYINT", 300),
        ("UINTEGER", -1),
        ("DOUBLE", "1.5"),
        ("VARCHAR", 5),
        ("VARCHAR", b"x"),
        ("BLOB", "x"),
        ("BOOLEAN", 1),
        ("DATE", "2020-01-01"),
        ("DATE", datetime.datetime(2020, 1, 1, 12)),
        ("TIMESTAMP", datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)),
        ("TIMESTAMPTZ", datetime.datetime(2020, 1, 1)),
        ("DECIMAL(5, 2)", decimal.Decimal("1.239")),
        ("DECIMAL(5, 2)", decimal.Decimal("1000")),
        ("DECIMAL(5, 2)", 1.5),
        ("INTEGER[]", ["a"]),
        ("VARCHAR[]", "abc"),
        ("INTEGER[2]", [1]),
        ("STRUCT(a INTEGER, b VARCHAR)", {"a": 1}),
        ("STRUCT(a INTEGER)", {"a": 1, "c": 2}),
        ("STRUCT(a INTEGER)", [1]),
    ],
)
def test_results_of_other_types_are_errors(con, kind, value):
    con.create_function("wrong", lambda: value, [], kind)
    with pytest.raises(grouse.ExecutionError, match=r"^function 'wrong' returned .*\) is no ") as caught:
        rows(con, "SELECT wrong() FROM numbers(1)")
    assert type(value).__name__ in str(caught.value) or type(value[0]).__name__ in str(caught.value)


def test_values_of_numpy_are_theirs(con):
    con.create_function("root", lambda x: numpy.sqrt(x), ["DOUBLE"], "DOUBLE")
    con.create_function("small", lambda x: numpy.int32(x), ["BIGINT"], "BIGINT")
    con.create_function("is_even", lambda x: numpy.bool_(x % 2 == 0), ["BIGINT"], "BOOLEAN")
    con.create_function("upto", lambda x: numpy.arange(x), ["BIGINT"], "BIGINT[]")
    assert rows(con, "SELECT root(9), small(5), is_even(4), upto(3)") == [(3.0, 5, True, [0, 1, 2])]
    con.create_function("named", lambda x: uuid.UUID(int=x), ["BIGINT"], "UUID")
    assert rows(con, "SELECT named(1)") == [("00000000-0000-0000-0000-000000000001",)]


def test_null_by_default_is_not_seen(con, duck):
    seen = []

    def noted(x, y):
        seen.append((x, y))
        return x + y

    for one in (con, duck):
        one.create_function("noted", noted, ["BIGINT", "BIGINT"], "BIGINT")
    sql = "SELECT noted(a, b) FROM (VALUES (1, 2), (NULL, 2), (1, NULL), (3, 4)) AS t(a, b)"
    assert rows(con, sql) == [(3,), (None,), (None,), (7,)]
    assert sorted(seen) == [(1, 2), (3, 4)]
    assert rows(duck, sql) == [(3,), (None,), (None,), (7,)]
    for style in ("native", "arrow"):
        con.create_function(f"nothing_{style}", lambda x: None if style == "native" else pa.nulls(len(x), pa.int64()), ["BIGINT"],
                            "BIGINT", type=style)
        with pytest.raises(grouse.ExecutionError, match=f"function 'nothing_{style}' returned NULL"):
            rows(con, f"SELECT nothing_{style}(1)")


def test_null_that_is_seen(con, duck):
    for one in (con, duck):
        one.create_function("or_seven", lambda x: 7 if x is None else None, ["BIGINT"], "BIGINT", null_handling="special")
        one.create_function(
            "or_eight", lambda x: pc.fill_null(x, 8), ["BIGINT"], "BIGINT", type="arrow", null_handling="special"
        )
    sql = "SELECT or_seven(x), or_eight(x) FROM (VALUES (1), (NULL)) AS t(x)"
    assert rows(con, sql) == rows(duck, sql) == [(None, 1), (7, 8)]


@pytest.mark.parametrize("style", ["native", "arrow"])
def test_exceptions_are_errors_with_their_text(con, style):
    def broken(x):
        raise ValueError("no such thing: é")

    con.create_function("broken", broken, ["BIGINT"], "BIGINT", type=style)
    expected = r"^function 'broken' raised ValueError \(line 1, column 8\): no such thing: é \(.*test_functions.py, line \d+\)$"
    with pytest.raises(grouse.ExecutionError, match=expected):
        rows(con, "SELECT broken(number) FROM numbers(10)")
    assert rows(con, "SELECT 1") == [(1,)]
    con.create_function("quiet", broken, ["BIGINT"], "BIGINT", type=style, exception_handling="return_null")
    assert rows(con, "SELECT quiet(number) FROM numbers(2)") == [(None,), (None,)]


def test_exceptions_of_some_rows(con, duck):
    for one in (con, duck):
        one.create_function("inverse", lambda x: 6 // x, ["BIGINT"], "BIGINT", exception_handling="return_null")
    sql = "SELECT inverse(x) FROM (VALUES (0), (1), (2)) AS t(x)"
    assert rows(con, sql) == rows(duck, sql) == [(None,), (6,), (3,)]


def test_arrays_of_other_types_and_lengths_are_errors(con):
    wrong = {
        "short": (lambda x: x.slice(1), r"returned \d+ values for \d+ rows"),
        "narrow": (lambda x: x.cast("int32"), "returned values of type INTEGER, not BIGINT"),
        "listed": (lambda x: x.to_pylist(), "returned a list, which is no array of pyarrow"),
    }
    for name, (function, message) in wrong.items():
        con.create_function(name, function, ["BIGINT"], "BIGINT", type="arrow")
        with pytest.raises(grouse.ExecutionError, match=f"function '{name}' {message}"):
            rows(con, f"SELECT {name}(number) FROM numbers(3)")


def test_text_that_is_none_is_an_error(con):
    def broken(x):
        valid = pa.array(["ab"] * len(x))
        return pa.StringArray.from_buffers(len(x), valid.buffers()[1], pa.py_buffer(b"\xff\xfe" * len(x)))

    con.create_function("broken", broken, ["BIGINT"], "VARCHAR", type="arrow")
    with pytest.raises(grouse.Error, match="UTF-8"):
        rows(con, "SELECT broken(number) FROM numbers(3)")


def test_side_effects(con, duck):
    calls = []

    def count():
        calls.append(1)
        return len(calls)

    con.create_function("each_time", count, [], "BIGINT", side_effects=True)
    assert sorted(rows(con, "SELECT each_time() FROM numbers(3)")) == [(1,), (2,), (3,)]
    assert rows(con, "WITH t AS (SELECT each_time() AS n FROM numbers(5)) SELECT count(*) FROM t a JOIN t b USING (n)") == [(5,)]
    con.create_function("steady", count, [], "BIGINT")
    assert len({*rows(con, "SELECT steady() FROM numbers(3)")}) == 1
    con.create_function("drawn", lambda: random.random(), [], "DOUBLE", side_effects=True)
    assert rows(con, "SELECT count(DISTINCT drawn()) FROM numbers(50000)") == [(50000,)]


def test_names_that_are_taken(con):
    con.create_function("mine", lambda x: x, ["BIGINT"], "BIGINT")
    with pytest.raises(grouse.InvalidError, match="function 'mine' exists; remove it first"):
        con.create_function("MINE", lambda x: x, ["BIGINT"], "BIGINT")
    with pytest.raises(grouse.InvalidError, match="SQL has a function 'upper'"):
        con.create_function("upper", lambda x: x, ["VARCHAR"], "VARCHAR")
    for word in ("case", "Select", "where"):
        with pytest.raises(grouse.InvalidError, match=f"'{word.lower()}' is a word of SQL's grammar"):
            con.create_function(word, lambda x: x, ["BIGINT"], "BIGINT")
    with pytest.raises(grouse.InvalidError, match="no function 'upper' was registered"):
        con.remove_function("upper")
    assert con.remove_function("Mine") is con
    with pytest.raises(grouse.UnknownFunctionError):
        con.sql("SELECT mine(1)")
    con.create_function("mine", lambda x: -x, ["BIGINT"], "BIGINT")
    assert rows(con, "SELECT mine(1)") == [(-1,)]
    with grouse.connect(threads=1) as other, pytest.raises(grouse.UnknownFunctionError):
        other.sql("SELECT mine(1)")


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"function": 5}, "takes something to call"),
        ({"name": 5}, "name of a function is a str"),
        ({"parameters": ["BIGINT", "BIGINT"]}, "parameters has 2 types"),
        ({"parameters": "BIGINT"}, "parameters is a list of types"),
        ({"parameters": ["NOTYPE"]}, "NOTYPE"),
        ({"parameters": [object]}, "is no type"),
        ({"parameters": ["BIGINT, BIGINT"]}, "is not one type"),
        ({"return_type": None}, "needs return_type"),
        ({"type": "foo"}, "there are native, arrow"),
        ({"null_handling": "foo"}, "there are default, special"),
        ({"exception_handling": "foo"}, "there are default, return_null"),
    ],
)
def test_wrong_definitions(con, keywords, message):
    given = {"name": "f", "function": lambda x: x, "parameters": ["BIGINT"], "return_type": "BIGINT", **keywords}
    with pytest.raises(grouse.Error, match=message):
        con.create_function(**given)


def test_calls_of_other_types(con):
    con.create_function("number_of", lambda x: x, ["BIGINT"], "BIGINT")
    assert rows(con, "SELECT number_of(5::TINYINT)") == [(5,)]
    with pytest.raises(grouse.Error, match="number_of"):
        con.sql("SELECT number_of(1, 2)")
    con.create_function("small", lambda x: x, ["TINYINT"], "TINYINT")
    assert rows(con, "SELECT small(number) FROM numbers(3) ORDER BY 1") == [(0,), (1,), (2,)]
    with pytest.raises(grouse.Error, match="300"):
        rows(con, "SELECT small(number) FROM numbers(301) WHERE number = 300")


def test_types_of_pyarrow(con):
    con.create_function("doubled", lambda x: x * 2, [pa.int32()], pa.int64())
    relation = con.sql("SELECT doubled(4) AS d")
    assert relation.types == ["int64"] and relation.fetchall() == [(8,)]


def test_functions_in_groups_conditions_and_joins(con, tmp_path):
    con.create_function("bucket", lambda x: x % 3, ["BIGINT"], "BIGINT")
    con.create_function("is_odd", lambda x: x % 2 == 1, ["BIGINT"], "BOOLEAN")
    sql = "SELECT bucket(number) AS b, count(*) FROM numbers(10) WHERE is_odd(number) GROUP BY b ORDER BY b"
    assert rows(con, sql) == [(0, 2), (1, 2), (2, 1)]
    assert rows(con, "SELECT count(*) FROM numbers(9) a JOIN numbers(3) b ON bucket(a.number) = b.number") == [(9,)]
    con.sql("CREATE TABLE t (x BIGINT)")
    con.sql("INSERT INTO t VALUES (bucket(10)), (bucket(11))")
    assert rows(con, "SELECT x FROM t ORDER BY x") == [(1,), (2,)]
    con.sql(f"COPY (SELECT bucket(number) AS b FROM numbers(6)) TO '{tmp_path / 'b.parquet'}'")
    assert rows(con, f"SELECT sum(b) FROM '{tmp_path / 'b.parquet'}'") == [(6,)]


def test_threads_share_a_function(con):
    con.create_function("squared", lambda x: x * x, ["BIGINT"], "BIGINT")
    found = []

    def work():
        found.append(rows(con, "SELECT sum(squared(number)) FROM numbers(2000)"))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[(2664667000,)]] * 4


def test_a_function_may_ask_another_connection_only(con):
    con.create_function("itself", lambda x: con.sql("SELECT 1").fetchone()[0], ["BIGINT"], "BIGINT")
    with pytest.raises(grouse.ExecutionError, match="raised InvalidError .* take another connection"):
        rows(con, "SELECT itself(number) FROM numbers(3)")
    with grouse.connect(threads=1) as other:
        con.create_function("another", lambda x: other.sql("SELECT ? + 1", [x]).fetchone()[0], ["BIGINT"], "BIGINT")
        assert sorted(rows(con, "SELECT another(number) FROM numbers(3)")) == [(1,), (2,), (3,)]
    assert rows(con, "SELECT 1") == [(1,)]


# Each waited for the other for ever.
def test_functions_of_two_connections_that_call_each_other():
    with grouse.connect(threads=1) as one, grouse.connect(threads=1) as other, grouse.connect(threads=1) as third:
        one.create_function("there", lambda x: other.sql(f"SELECT further(v) FROM (VALUES ({x})) AS t(v)").fetchone()[0], ["BIGINT"], "BIGINT")
        other.create_function("further", lambda x: third.sql(f"SELECT back(v) FROM (VALUES ({x})) AS t(v)").fetchone()[0], ["BIGINT"], "BIGINT")
        third.create_function("back", lambda x: one.sql(f"SELECT {x} + 1").fetchone()[0], ["BIGINT"], "BIGINT")
        for _ in range(2):
            with pytest.raises(grouse.ExecutionError, match="wait for each other; take another connection"):
                rows(one, "SELECT there(v) FROM (VALUES (1)) AS t(v)")
        # Without a circle they go on.
        third.remove_function("back")
        third.create_function("back", lambda x: x + 10, ["BIGINT"], "BIGINT")
        assert rows(one, "SELECT there(v) FROM (VALUES (1), (2)) AS t(v) ORDER BY v") == [(11,), (12,)]


def test_no_rows_are_no_calls(con):
    calls = []
    con.create_function("called", lambda x: calls.append(x) or 1, ["BIGINT"], "BIGINT")
    assert rows(con, "SELECT called(number) FROM numbers(10) WHERE number > 100") == []
    assert rows(con, "SELECT called(NULL)") == [(None,)]
    assert calls == []


def test_the_module_has_them(duck):
    grouse.create_function("of_module", lambda x: x + 1, ["BIGINT"], "BIGINT")
    try:
        assert grouse.sql("SELECT of_module(1)").fetchall() == [(2,)]
    finally:
        grouse.remove_function("of_module")


@pytest.mark.parametrize("end", ["raise", "fetchone", "interrupt", "daemon"])
def test_the_process_ends_while_a_function_runs(tmp_path, end):
    script = f"""
import os, threading, time, grouse
con = grouse.connect(threads=2)
def slow(x):
    if x == 10 and {end == "raise"!r}:
        raise ValueError("ten")
    time.sleep(0.001)
    return x
con.create_function("slow", slow, ["BIGINT"], "BIGINT")
relation = con.sql("SELECT slow(number) FROM numbers(200000)")
if {end == "daemon"!r}:
    threading.Thread(target=relation.fetchall, daemon=True).start()
    time.sleep(0.3)
elif {end == "interrupt"!r}:
    threading.Timer(0.3, con.interrupt).start()
    relation.fetchall()
elif {end == "raise"!r}:
    relation.fetchall()
else:
    relation.fetchone()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 1), (done.returncode, done.stderr)
    assert "panicked" not in done.stderr and "Fatal" not in done.stderr, done.stderr


def test_a_query_that_is_over_calls_no_more(con):
    calls = []

    def slow(x):
        calls.append(x)
        time.sleep(0.002)
        return x

    con.create_function("slow", slow, ["BIGINT"], "BIGINT")
    with pytest.raises(grouse.Error):
        timer = threading.Timer(0.3, con.interrupt)
        timer.start()
        con.sql("SELECT sum(slow(number)) FROM numbers(1000000)").fetchall()
    time.sleep(0.1)
    after = len(calls)
    assert con.sql("SELECT 1").fetchall() == [(1,)]
    time.sleep(0.1)
    assert len(calls) <= after + 4


# A double beyond FLOAT became infinity.
def test_a_float_that_does_not_fit_is_an_error(con):
    con.create_function("far", lambda x: x, ["DOUBLE"], "FLOAT")
    assert rows(con, "SELECT far(v) FROM (VALUES (0.5), (-3.4028234663852886e38)) AS t(v)") == [(0.5,), (-3.4028234663852886e38,)]
    assert rows(con, "SELECT far('-inf'::DOUBLE)") == [(float("-inf"),)]
    for far in ("1e300", "-1e39"):
        with pytest.raises(grouse.ExecutionError, match=r"function 'far' returned .* is no FLOAT"):
            rows(con, f"SELECT far(v) FROM (VALUES ({far}::DOUBLE)) AS t(v)")
