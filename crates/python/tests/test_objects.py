"""Variables that are no frames but tables all the same, and what is said of those that are none."""

from __future__ import annotations

import datetime as dt

import numpy
import pandas
import polars
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

import grouse


def test_a_lazy_frame(con, tmp_path):
    path = tmp_path / "x.parquet"
    polars.DataFrame({"k": [1, 2, 3], "s": ["a", "b", "c"]}).write_parquet(path)
    lazy = polars.scan_parquet(path).with_columns(polars.col("k") * 2)
    relation = con.sql("SELECT k, s FROM lazy WHERE k > 2")
    assert sorted(relation.fetchall()) == sorted(relation.fetchall()) == [(4, "b"), (6, "c")]
    con.register("kept", lazy)
    assert con.sql("SELECT sum(k) FROM kept").fetchall() == con.sql("SELECT sum(k) FROM kept").fetchall() == [(12,)]


def test_a_dataset(con, tmp_path):
    for at in range(3):
        pa.parquet.write_table(pa.table({"k": [at, at + 10], "s": [f"s{at}", None]}), tmp_path / f"{at}.parquet")
    data = pyarrow.dataset.dataset(tmp_path)
    relation = con.sql("SELECT s, k FROM data WHERE k >= 10")
    assert sorted(relation.fetchall(), key=repr) == sorted(relation.fetchall(), key=repr)
    assert sorted(row[1] for row in relation.fetchall()) == [10, 11, 12]
    scanner = data.scanner(columns=["k"], filter=pyarrow.dataset.field("k") < 10)  # noqa: F841
    assert con.sql("SELECT count(*), sum(k) FROM scanner").fetchall() == [(3, 3)]


SCANNED = {
    "k": pa.array([1, 2, 3, None], pa.uint8()),
    "s": ["a", "b", None, "d"],
    "x": [0.5, float("nan"), -0.0, None],
    "d": [dt.date(2024, 1, 1), None, dt.date(2024, 1, 3), dt.date(2024, 1, 4)],
    "u": pa.array([2**64 - 1, 0, 1, None], pa.uint64()),
    "c": pa.array(["p", "q", "p", None]).dictionary_encode(),
}


@pytest.fixture(params=["dataset", "lazy"])
def scanned(request, tmp_path, monkeypatch):
    """An object that scans, the same as a table, and what it has been asked."""
    table, asked = pa.table(SCANNED), []
    pa.parquet.write_table(table, tmp_path / "x.parquet")
    made = pyarrow.dataset.dataset(tmp_path) if request.param == "dataset" else polars.scan_parquet(tmp_path / "x.parquet")
    for kind in (grouse._objects.DatasetScan, grouse._objects.LazyScan):
        scan = kind.scan

        def recorded(self, columns, conditions, scan=scan):
            asked.append((list(columns or []), list(conditions)))
            return scan(self, columns, conditions)

        monkeypatch.setattr(kind, "scan", recorded)
    return made, table, asked


@pytest.mark.parametrize(
    ("where", "condition"),
    [
        ("k > 1", (">", "k", 1)),
        ("2 > k", ("<", "k", 2)),
        ("s = 'b'", ("=", "s", "b")),
        ("k <> 2", ("<>", "k", 2)),
        ("s IS NULL", ("is null", "s")),
        ("d < DATE '2024-01-04'", ("<", "d", dt.date(2024, 1, 4))),
        ("u = 18446744073709551615", ("=", "u", 2**64 - 1)),
        ("k = 1 OR s = 'd'", ("or", [("=", "k", 1), ("=", "s", "d")])),
    ],
)
def test_conditions_are_handed_on(con, scanned, where, condition):
    made, table, asked = scanned
    rows = con.sql(f"SELECT k, s FROM made WHERE {where}").fetchall()
    assert sorted(rows, key=repr) == sorted(con.sql(f"SELECT k, s FROM table WHERE {where}".replace("table", '"table"')).fetchall(), key=repr)
    columns, conditions = asked[-1]
    assert condition in conditions, conditions
    assert {"k", "s"} <= set(columns) <= {"k", "s", "d", "u"}


@pytest.mark.parametrize(
    "where",
    ["x > 1", "x = 0", "x <= 0.5", "c > 'p'", "k + 1 > 2", "upper(s) = 'B'", "k IN (1, 3)", "k NOT IN (1, 2)", "NOT (k > 1)",
     "s LIKE 'a%'", "k > 1 AND x > 0", "k IS DISTINCT FROM 2"],
)
def test_conditions_mean_the_same(con, scanned, where):
    made, table, _ = scanned  # noqa: F841
    expected = con.sql(f'SELECT k, s, c FROM "table" WHERE {where}').fetchall()
    assert sorted(con.sql(f"SELECT k, s, c FROM made WHERE {where}").fetchall(), key=repr) == sorted(expected, key=repr)


def test_rows_are_counted_without_columns(con, scanned):
    made, _, asked = scanned
    assert con.sql("SELECT count(*) FROM made").fetchall() == [(4,)]
    assert asked[-1] == (["k"], [])
    assert con.from_df(made).columns == list(SCANNED)
    assert len(asked) == 1, "a schema is known without reading"


def test_a_dict_of_columns(con):
    columns = {  # noqa: F841
        "a": numpy.array([1, 2, 3]),
        "l": ["x", None, "z"],
        "d": [dt.date(2024, 1, 1), None, dt.date(2024, 1, 3)],
        "p": pandas.Series([0.5, None, 1.5]),
        "o": polars.Series(["u", "v", None]),
        "w": pa.array([True, None, False]),
    }
    rows = con.sql("SELECT * FROM columns ORDER BY a").fetchall()
    assert rows[0] == (1, "x", dt.date(2024, 1, 1), 0.5, "u", True)
    assert rows[1][:3] == (2, None, None)
    assert con.from_df({"a": [1, 2]}).fetchall() == [(1,), (2,)]


def test_arrays_of_numpy(con):
    line, matrix = numpy.array([3, 1, 2]), numpy.array([[1, 2, 3], [4, 5, 6]])  # noqa: F841
    records = numpy.array([(1, "x", 0.5), (2, "y", 1.5)], dtype=[("p", "i4"), ("q", "U3"), ("r", "f8")])  # noqa: F841
    foreign = numpy.array([1, 2], dtype=">i8")  # noqa: F841
    stamps = numpy.array(["2024-01-02", "NaT"], dtype="datetime64[us]")  # noqa: F841
    objects = numpy.array(["a", None], dtype=object)  # noqa: F841
    assert con.sql("SELECT sum(column0) FROM line").fetchall() == [(6,)]
    assert con.sql("SELECT column0, column1 FROM matrix ORDER BY 1").fetchall() == [(1, 4), (2, 5), (3, 6)]
    assert con.sql("SELECT * FROM records ORDER BY p").fetchall() == [(1, "x", 0.5), (2, "y", 1.5)]
    assert con.sql("SELECT * FROM foreign").fetchall() == [(1,), (2,)]
    assert con.sql("SELECT * FROM stamps").fetchall() == [(dt.datetime(2024, 1, 2),), (None,)]
    assert con.sql("SELECT * FROM objects").fetchall() == [("a",), (None,)]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"a": [1, 2], "b": [1]}, "the same number of rows, and not 'a' 2, 'b' 1"),
        ({"a": [1, "x"]}, "column 'a' has values of several types"),
        ({"a": numpy.array([1 + 2j])}, "column 'a' of type complex128"),
        ({"a": numpy.array([[1, 2]])}, "column 'a' has 2 dimensions"),
        (numpy.zeros((2, 2, 2)), "one or two dimensions, and not 3"),
    ],
)
def test_what_is_no_table_says_why(con, value, says):
    with pytest.raises(grouse.TypeError, match=says):
        con.sql("SELECT * FROM value")
    with pytest.raises(grouse.TypeError, match=says):
        con.register("v", value)


@pytest.mark.parametrize(("value", "kind"), [(5, "int"), ("text", "str"), ([1], "list"), ({"a": 1}, "dict"), (None, "NoneType")])
def test_the_error_names_the_type(con, value, kind):
    with pytest.raises(grouse.UnknownTableError, match=f"the variable 'value' is of type {kind}, .*LazyFrame") as caught:
        con.sql("SELECT * FROM value")
    assert caught.value.name == "value"
    with pytest.raises(grouse.TypeError, match=f"a {kind} cannot be read"):
        con.register("v", value)


def test_arrays_do_not_change_what_was_kept(con):
    numbers = numpy.arange(10)
    columns = {"n": numbers}  # noqa: F841
    con.sql("CREATE TABLE kept AS SELECT * FROM columns")
    result = con.sql("SELECT n FROM columns").arrow()
    numbers[:] = 7
    assert con.sql("SELECT sum(n) FROM kept").fetchone() == (45,)
    assert sum(result["n"].to_pylist()) == 45
