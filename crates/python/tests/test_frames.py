"""What frames hand over: all of their values, nothing else, and nothing that changes later."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid

import numpy
import pandas
import polars
import pyarrow as pa
import pytest

import grouse

COLUMNS = {
    "n": [1, 2],
    "x": [0.5, 1.5],
    "t": pandas.to_datetime(["2024-01-01", "2024-01-02"]),
    "d": pandas.to_timedelta([1, 2], unit="s"),
    "b": [True, False],
    "s": ["a", "b"],
    "c": pandas.Categorical(["u", "v"]),
}


def changed(frame: pandas.DataFrame) -> None:
    """Writes to the frame's memory."""
    for name, value in [("n", 0), ("x", 0.0), ("b", False)]:
        frame.loc[0, name] = value
    frame.loc[0, "t"] = pandas.Timestamp("1999-01-01")
    frame.loc[0, "c"] = "v"


def test_tables_do_not_change_with_the_frame(con):
    frame = pandas.DataFrame(COLUMNS)
    con.sql("CREATE TABLE kept AS SELECT * FROM frame")
    con.register("registered", frame)
    arrow = con.sql("SELECT * FROM frame").arrow()
    polars_frame = con.sql("SELECT * FROM frame").pl()
    batches = list(con.sql("SELECT * FROM frame").to_batches())
    stream = pa.table(con.sql("SELECT * FROM frame"))
    relation = con.sql("SELECT * FROM frame")
    con.sql("CREATE TABLE through AS SELECT * FROM relation")
    outer = con.sql("SELECT * FROM relation").arrow()
    before = con.sql("SELECT * FROM frame").fetchall()
    changed(frame)
    assert frame.loc[0, "n"] == 0
    for name in ["kept", "registered", "through"]:
        assert con.sql(f"SELECT * FROM {name}").fetchall() == before, name
    for result in [arrow, pa.Table.from_batches(batches), stream, outer]:
        assert con.sql("SELECT * FROM result").fetchall() == before
    assert con.sql("SELECT * FROM polars_frame").fetchall() == before


def test_numpy_behind_arrow_is_copied_too(con):
    numbers = numpy.arange(1000)
    given = pa.table({"n": pa.array(numbers)})
    con.sql("CREATE TABLE kept AS SELECT * FROM given")
    result = con.sql("SELECT n FROM given WHERE n >= 0").arrow()
    con.sql("CREATE TABLE more (n BIGINT)")
    con.sql("INSERT INTO more SELECT n FROM given")
    numbers[:] = -1
    assert con.sql("SELECT sum(n) FROM kept").fetchone() == (499500,)
    assert con.sql("SELECT sum(n) FROM more").fetchone() == (499500,)
    assert sum(result["n"].to_pylist()) == 499500


def test_numpy_behind_polars_is_copied_too(con):
    numbers = numpy.arange(10)
    frame = polars.DataFrame({"n": numbers})
    con.sql("CREATE TABLE kept AS SELECT * FROM frame")
    con.register("registered", frame)
    result = con.sql("SELECT n FROM frame").arrow()
    numbers[:] = 7
    assert con.sql("SELECT sum(n) FROM kept").fetchone() == (45,)
    assert con.sql("SELECT sum(n) FROM registered").fetchone() == (45,)
    assert sum(result["n"].to_pylist()) == 45


@pytest.mark.parametrize("index", [[3, 1, 2, 0], list("abcd"), pandas.MultiIndex.from_tuples([(1, 2), (1, 3), (2, 1), (2, 2)])])
def test_an_index_is_no_column(con, index):
    frame = pandas.DataFrame({"k": [1, 1, 2, 2]}, index=index)
    assert con.sql("SELECT DISTINCT * FROM frame ORDER BY k").fetchall() == [(1,), (2,)]
    assert con.sql("SELECT * FROM frame").columns == ["k"]
    con.register("registered", frame)
    assert con.sql("SELECT * FROM registered").columns == ["k"]
    named = frame.rename_axis(["key"] if frame.index.nlevels == 1 else ["key", "other"])
    assert con.sql("SELECT * FROM named").columns == ["k"]
    asked = named.reset_index()
    assert "key" in con.sql("SELECT * FROM asked").columns


def test_polars_columns_without_a_type(con):
    frame = polars.DataFrame({"k": [1, 2], "b": [None, None], "l": [[], []], "s": [{"a": None}, {"a": None}]})
    assert con.sql("SELECT * FROM frame ORDER BY k").fetchall() == [(1, None, [], {"a": None}), (2, None, [], {"a": None})]
    assert con.sql("SELECT b, count(*), count(b), sum(k) FROM frame GROUP BY b").fetchall() == [(None, 2, 0, 3)]
    for empty in [polars.DataFrame({"k": []}), polars.DataFrame({"k": []}, schema={"k": polars.Int64})]:
        assert con.sql("SELECT k, count(*) FROM empty GROUP BY k").fetchall() == []
        assert con.sql("SELECT count(*) FROM empty").fetchall() == [(0,)]


def test_arrow_and_pandas_columns_without_a_type(con):
    given = pa.table({"k": [1, 2], "b": pa.nulls(2)})
    frame = pandas.DataFrame({"k": [1, 2], "b": [None, None]})
    for source in [given, frame]:
        assert con.sql("SELECT b, count(*), max(k) FROM source GROUP BY b").fetchall() == [(None, 2, 2)]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([dt.date(2024, 1, 2), None], [(dt.date(2024, 1, 2),), (None,)]),
        ([dt.date(2024, 1, 2), dt.datetime(2024, 1, 2, 3)], [(dt.datetime(2024, 1, 2),), (dt.datetime(2024, 1, 2, 3),)]),
        ([dt.datetime(2024, 1, 2, 3), dt.date(2024, 1, 2)], [(dt.datetime(2024, 1, 2, 3),), (dt.datetime(2024, 1, 2),)]),
        ([decimal.Decimal("1.5"), decimal.Decimal("2.25")], [(decimal.Decimal("1.50"),), (decimal.Decimal("2.25"),)]),
        ([uuid.UUID(int=1), None], [("00000000-0000-0000-0000-000000000001",), (None,)]),
        ([10**30, 1], [(decimal.Decimal(10**30),), (decimal.Decimal(1),)]),
        ([2**64 - 1, 1], [(2**64 - 1,), (1,)]),
        ([dt.time(1), None], [(dt.time(1),), (None,)]),
        ([b"a", None], [(b"a",), (None,)]),
        ([float("nan"), "x"], [(None,), ("x",)]),
    ],
)
def test_objects_keep_their_values(con, values, expected):
    frame = pandas.DataFrame({"a": pandas.Series(values, dtype=object)})
    assert con.sql("SELECT a FROM frame").fetchall() == expected


@pytest.mark.parametrize(
    "values",
    [
        [1, "a"],
        ["a", 1],
        [b"a", "b"],
        [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)],
        [1 + 2j, 1j],
        [object(), object()],
        [10**90],
    ],
)
def test_objects_of_several_types_are_refused_by_name(con, values):
    frame = pandas.DataFrame({"odd": pandas.Series(values, dtype=object)})
    with pytest.raises(grouse.TypeError, match="odd"):
        con.sql("SELECT * FROM frame")


def test_names_of_a_frame_may_repeat(con):
    frame = pandas.DataFrame([[1, 2, 3]], columns=["a", "a", "a_1"])
    assert con.sql("SELECT * FROM frame").columns == ["a", "a_2", "a_1"]


BAD = pa.array([b"\xff\xfe", b"ok"])


@pytest.mark.parametrize(
    "array",
    [
        BAD.view(pa.string()),
        BAD.cast(pa.large_binary()).view(pa.large_string()),
        BAD.cast(pa.binary_view()).view(pa.string_view()) if hasattr(pa, "string_view") else BAD.view(pa.string()),
        pa.DictionaryArray.from_arrays(pa.array([0, 1]), BAD.view(pa.string())),
        pa.ListArray.from_arrays(pa.array([0, 1, 2]), BAD.view(pa.string())),
        pa.StructArray.from_arrays([BAD.view(pa.string())], ["x"]),
        pa.array([b"\xc3", b"\xa4"]).view(pa.string()),
    ],
    ids=["string", "large", "view", "dictionary", "list", "struct", "cut"],
)
def test_text_that_is_not_utf8_is_refused(con, array):
    given = pa.table({"bad": array})
    with pytest.raises(grouse.TypeError, match="bad"):
        con.sql("SELECT upper(bad) FROM given")
    with pytest.raises(grouse.TypeError, match="UTF-8"):
        con.register("t", given)
    reader = pa.RecordBatchReader.from_batches(given.schema, given.to_batches())
    with pytest.raises(grouse.Error, match="UTF-8"):
        con.sql("SELECT count(*), max(bad) FROM reader").fetchall()


def test_what_stands_under_null_is_nobodys_text(con):
    array = pa.Array.from_buffers(pa.string(), 2, [pa.py_buffer(b"\x02"), BAD.buffers()[1], BAD.buffers()[2]])
    given = pa.table({"s": array})
    assert con.sql("SELECT upper(s), reverse(s) FROM given").fetchall() == [(None, None), ("OK", "ko")]


@pytest.mark.parametrize(
    "array",
    [
        pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["a", "b"])),
        pa.array([[1], [1], [2]], pa.list_view(pa.int64())),
        pa.array([[1], [1], [2]], pa.large_list_view(pa.int64())),
        pa.array([b"a" * 16, b"a" * 16, b"b" * 16], pa.binary(16)).dictionary_encode(),
        pa.array([(0, 1, 0), (0, 1, 0), (1, 0, 0)], pa.month_day_nano_interval()),
        pa.array([[("a", 1)], [("a", 1)], [("b", 1)]], pa.map_(pa.string(), pa.int64())),
        pa.array([dt.timedelta(1), dt.timedelta(1), dt.timedelta(2)]).dictionary_encode(),
    ],
    ids=["ree", "list_view", "large_list_view", "fixed", "interval", "map", "duration"],
)
def test_rare_types_are_keys_and_arguments(con, array):
    given = pa.table({"k": array, "n": [1, 2, 3]})
    assert sorted(con.sql("SELECT count(*), sum(n) FROM given GROUP BY k").fetchall()) == [(1, 3), (2, 3)]
    assert con.sql("SELECT count(k), count(DISTINCT k) FROM given").fetchall() == [(3, 2)]
    low, high = con.sql("SELECT min(k), max(k) FROM given").fetchone()
    plain = con.sql("SELECT k FROM given ORDER BY n").fetchall()
    assert (low, high) == (plain[0][0], plain[2][0])
    assert con.sql("SELECT n FROM given ORDER BY k, n").fetchall() == [(1,), (2,), (3,)]


def test_dictionaries_are_text(con):
    given = pa.table({"d": pa.array(["b", "a", "b"]).dictionary_encode()})
    assert con.sql("SELECT string_agg(DISTINCT d, ',' ORDER BY d) FROM given").fetchall() == [("a,b",)]
    assert sorted(con.sql("SELECT d || 1 FROM given").fetchall()) == [("a1",), ("b1",), ("b1",)]
    assert sorted(con.sql("SELECT 1 || d, d || d FROM given").fetchall()) == [("1a", "aa"), ("1b", "bb"), ("1b", "bb")]


@pytest.mark.parametrize(
    "values",
    [
        [dt.date(2024, 1, 1), 5],
        [dt.time(1), 5],
        [dt.timedelta(1), 5],
        [dt.datetime(2024, 1, 1), numpy.int64(5)],
        [[dt.date(2024, 1, 1), 5]],
        [[dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, 5)]],
        [{"a": [dt.date(2024, 1, 1), 5]}],
    ],
)
def test_numbers_beside_dates_are_no_dates(con, values):
    frame = pandas.DataFrame({"v": pandas.Series(values, dtype=object)})  # noqa: F841
    with pytest.raises(grouse.TypeError, match="column 'v' has values of several types"):
        con.sql("SELECT * FROM frame")


def test_dates_inside_lists_and_structs(con):
    values = [{"a": [dt.date(2024, 1, 1)], "b": 5}, {"a": None, "b": None}, None]
    frame = pandas.DataFrame({"v": pandas.Series(values, dtype=object)})  # noqa: F841
    assert con.sql("SELECT v FROM frame").fetchall() == [(value,) for value in values]


def test_sparse_columns_and_foreign_bytes(con):
    frame = pandas.DataFrame({"s": pandas.arrays.SparseArray([0, 0, 1]), "b": numpy.array([1, 2, 3], dtype=">i8")})
    assert con.sql("SELECT * FROM frame").fetchall() == [(0, 1), (0, 2), (1, 3)]
    rows = frame[[]]  # noqa: F841
    with pytest.raises(grouse.TypeError, match="it has rows, but no columns"):
        con.sql("SELECT count(*) FROM rows")


def test_each_name_once(con):
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], names=["x", "x", "y"])  # noqa: F841
    assert con.sql("SELECT x_1, * FROM twice").fetchall() == [(2, 1, 2, 3)]
    digits = pandas.DataFrame([[1, 2]], columns=[1, "1"])  # noqa: F841
    assert con.sql("SELECT * FROM digits").columns == ["1", "1_1"]


@pytest.mark.parametrize("value", ["INTERVAL '1 month'", "[INTERVAL '1 day']", "named_struct('a', INTERVAL '1 day')"])
def test_polars_has_no_intervals(con, value):
    with pytest.raises(grouse.TypeError, match="column 'i' has intervals, for which Polars has no type"):
        con.sql(f"SELECT {value} AS i").pl()


def test_tables_may_be_called_like_frames(con):
    frame = pandas.DataFrame({"x": [1, 2]})
    con.sql("CREATE TABLE frame AS SELECT max(x) AS m FROM frame")
    assert con.sql("SELECT * FROM frame").fetchall() == [(2,)]
    con.sql("DROP TABLE frame")
    assert con.sql("SELECT count(*) FROM frame").fetchall() == [(len(frame),)]
    con.sql("CREATE TABLE frame (x BIGINT)")
    con.sql("INSERT INTO frame VALUES (7)")
    assert con.sql("SELECT * FROM frame").fetchall() == [(7,)]


@pytest.mark.parametrize("change", ["INSERT INTO frame VALUES (3)", "UPDATE frame SET x = 3", "DELETE FROM frame"])
def test_frames_are_not_written_to(con, change):
    frame = pandas.DataFrame({"x": [1, 2]})  # noqa: F841
    with pytest.raises(grouse.Error, match="'frame' does not exist"):
        con.sql(change)
