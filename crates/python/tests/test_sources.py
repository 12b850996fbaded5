"""Arrow data from Python as tables: registered, or found among the caller's variables."""

from __future__ import annotations

import threading

import pandas
import polars
import pyarrow as pa
import pyarrow.parquet
import pytest

import grouse


GLOBAL_TABLE = pa.table({"x": [1, 2, 3]})


def some_table(rows: int = 3) -> pa.Table:
    return pa.table({"k": [n % 2 for n in range(rows)], "v": list(range(rows)), "t": [f"t{n}" for n in range(rows)]})


def test_register_and_unregister(con):
    con.register("things", some_table())
    assert con.tables() == ["things"]
    assert con.sql("SELECT k, sum(v) FROM things GROUP BY k ORDER BY k").fetchall() == [(0, 2), (1, 1)]
    con.register("things", pa.table({"y": [9]}))
    assert con.sql("SELECT * FROM things").fetchall() == [(9,)]
    con.unregister("things")
    con.unregister("things")
    with pytest.raises(grouse.UnknownTableError):
        con.sql("SELECT * FROM things")


def test_a_local_variable_is_a_table(con):
    local = some_table()
    assert con.sql("SELECT count(*) FROM local").fetchall() == [(3,)]
    assert grouse.sql("SELECT sum(l.v) FROM local AS l JOIN local AS m ON l.v = m.v").fetchall() == [(3,)]
    assert con.tables() == [], "it is a table of that statement only"


def test_a_global_variable_is_a_table(con):
    assert con.sql("SELECT sum(x) FROM GLOBAL_TABLE").fetchall() == [(6,)]
    assert con.sql('SELECT sum(x) FROM "GLOBAL_TABLE"').fetchall() == [(6,)]


def test_locals_hide_globals_and_tables_hide_variables(con):
    GLOBAL_TABLE = pa.table({"x": [10]})  # noqa: F841, N806
    assert con.sql("SELECT sum(x) FROM global_table").fetchall() == [(10,)]
    con.register("global_table", pa.table({"x": [100]}))
    assert con.sql("SELECT sum(x) FROM global_table").fetchall() == [(100,)]


def test_variables_in_subqueries_ctes_and_comprehensions(con):
    inside = some_table()  # noqa: F841
    text = "WITH c AS (SELECT v FROM inside WHERE v IN (SELECT x FROM GLOBAL_TABLE)) SELECT sum(v) FROM c"
    assert con.sql(text).fetchall() == [(3,)]
    assert [con.sql(f"SELECT {n} + count(*) FROM inside").fetchone()[0] for n in range(2)] == [3, 4]


def test_a_cte_hides_a_variable(con):
    hidden = pa.table({"x": [1]})  # noqa: F841
    assert con.sql("WITH hidden AS (SELECT 5 AS x) SELECT x FROM hidden").fetchall() == [(5,)]


def test_a_variable_that_is_no_table_is_named_in_the_error(con):
    things = {"x": 1}  # noqa: F841
    with pytest.raises(grouse.UnknownTableError, match="the variable 'things' is of type dict") as caught:
        con.sql("SELECT * FROM things")
    assert caught.value.name == "things"


def test_other_objects_are_refused(con):
    for wrong in (1, "x", [1, 2], {"a": 1}, None, pa.Table, object()):
        with pytest.raises(grouse.TypeError):
            con.register("t", wrong)
    with pytest.raises(grouse.TypeError):
        con.register("t", pa.chunked_array([[1, 2]]))


def test_a_result_can_be_read_after_its_variable_is_gone(con):
    def make():
        inner_table = some_table(10)  # noqa: F841
        return con.sql("SELECT sum(v) FROM inner_table")

    relation = make()
    assert relation.fetchall() == relation.fetchall() == [(45,)]


def test_a_relation_is_a_table(con):
    base = con.sql("SELECT number AS n FROM numbers(100)")
    filtered = con.sql("SELECT n FROM base WHERE n % 2 = 0")
    assert con.sql("SELECT count(*), sum(n) FROM filtered").fetchall() == [(50, 2450)]
    assert con.sql("SELECT count(*) FROM filtered a JOIN filtered b ON a.n = b.n").fetchall() == [(50,)]
    con.register("base_view", base)
    assert con.sql("SELECT max(n) FROM base_view").fetchall() == [(99,)]
    con.sql("CREATE TABLE kept AS SELECT * FROM filtered")
    assert con.sql("SELECT count(*) FROM kept").fetchall() == [(50,)]
    del base


def test_a_relation_of_another_connection_is_a_table(con):
    with grouse.connect(threads=1) as other:
        foreign_rows = other.sql("SELECT number AS n FROM numbers(1000) WHERE number % 10 = 0")
        assert foreign_rows.columns == ["n"]
        assert con.sql("SELECT count(*) FROM foreign_rows").fetchall() == [(100,)]


def test_a_stream_is_read_while_the_query_runs(con):
    produced = []

    def batches():
        for n in range(1_000_000):
            produced.append(n)
            yield pa.record_batch({"n": list(range(n * 1000, n * 1000 + 1000))})

    schema = pa.schema([("n", pa.int64())])
    reader = pa.RecordBatchReader.from_batches(schema, batches())
    rows = con.sql("SELECT n FROM reader LIMIT 5").fetchall()
    assert len(rows) == 5
    assert len(produced) < 1000, "a stream is never collected"


def test_columns_with_metadata_of_their_own(con):
    field = pa.field("v", pa.int64(), metadata={"unit": "ms"})
    measured = pa.table([pa.array([1, 1, 2]), pa.array([5, 6, 7])], schema=pa.schema([pa.field("k", pa.int64(), metadata={"a": "b"}), field]))  # noqa: F841
    query = "SELECT k, first_value(v ORDER BY v, k), last_value(k ORDER BY v), median(v), quantile_cont(v, 0.5) FROM measured GROUP BY k ORDER BY k"
    assert con.sql(query).fetchall() == [(1, 5, 1, 5.5, 5.5), (2, 7, 2, 7.0, 7.0)]
    query = "SELECT last_value(k ORDER BY v), last_value(v ORDER BY v) FROM measured"
    assert con.sql(query).fetchall() == [(2, 7)]


def test_a_stream_can_be_read_once(con):
    reader = pa.table({"n": [1, 2]}).to_reader()
    relation = con.sql("SELECT sum(n) FROM reader")
    assert relation.fetchall() == [(3,)]
    with pytest.raises(grouse.Error):
        relation.fetchall()
    with pytest.raises(grouse.Error, match="has been read"):
        con.sql("SELECT count(*) FROM reader").fetchall()
    again = pa.table({"n": [1, 2]}).to_reader()  # noqa: F841
    assert con.sql("SELECT count(*) FROM again").fetchall() == [(2,)]


def test_an_error_in_a_stream_is_an_error_of_the_query(con):
    def batches():
        yield pa.record_batch({"n": [1]})
        raise RuntimeError("the source broke")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("n", pa.int64())]), batches())
    with pytest.raises(grouse.Error, match="the source broke"):
        con.sql("SELECT sum(n) FROM reader").fetchall()


def test_pandas(con):
    frame = pandas.DataFrame({"k": ["a", "b", "a"], "v": [1.5, 2.5, None], "t": pandas.to_datetime(["2024-01-01"] * 3)})
    rows = con.sql("SELECT k, count(v), min(t) FROM frame GROUP BY k ORDER BY k").fetchall()
    assert [row[:2] for row in rows] == [("a", 1), ("b", 1)]
    assert rows[0][2].year == 2024
    back = con.sql("SELECT k, v FROM frame").df()
    pandas.testing.assert_frame_equal(back, frame[["k", "v"]])
    indexed = frame.set_index("k")  # noqa: F841
    assert con.sql("SELECT count(*) FROM indexed").fetchall() == [(3,)]
    assert con.sql("SELECT v FROM indexed").arrow().schema.metadata is None


def test_polars(con):
    frame = polars.DataFrame({"k": ["a", "b", "a"], "v": [1, 2, 3], "c": polars.Series(["x", "y", "x"], dtype=polars.Categorical)})
    assert con.sql("SELECT k, sum(v) FROM frame GROUP BY k ORDER BY k").fetchall() == [("a", 4), ("b", 2)]
    assert con.sql("SELECT c, count(*) AS n FROM frame GROUP BY c ORDER BY n").fetchall() == [("y", 1), ("x", 2)]
    assert con.sql("SELECT * FROM frame WHERE v > 1").pl().rows() == frame.filter(polars.col("v") > 1).rows()


def test_pyarrow_objects_of_all_kinds(con):
    batch = pa.record_batch({"n": [1, 2]})  # noqa: F841
    empty = pa.table({"n": pa.array([], pa.int64())})  # noqa: F841
    chunked = pa.concat_tables([pa.table({"n": [n]}) for n in range(100)])  # noqa: F841
    no_columns = pa.table({})
    assert con.sql("SELECT sum(n) FROM batch").fetchall() == [(3,)]
    assert con.sql("SELECT count(*), sum(n) FROM empty").fetchall() == [(0, None)]
    assert con.sql("SELECT count(*), sum(n) FROM chunked").fetchall() == [(100, 4950)]
    con.register("no_columns", no_columns)
    assert con.sql("SELECT count(*) FROM no_columns").fetchall() == [(0,)]


def test_large_table_goes_to_all_workers(con):
    big = pa.table({"n": pa.array(range(300_000))})  # noqa: F841
    assert con.sql("SELECT count(*), sum(n), count(DISTINCT n) FROM big").fetchall() == [(300_000, 44999850000, 300_000)]


def test_two_threads_with_variables_of_one_name():
    wrong = []

    def work(value: int):
        mine = pa.table({"x": [value] * 10})  # noqa: F841
        for _ in range(20):
            rows = grouse.sql("SELECT min(x), max(x) FROM mine").fetchall()
            if rows != [(value, value)]:
                wrong.append((value, rows))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_damaged_page_index_is_a_warning(con, tmp_path):
    path = tmp_path / "x.parquet"
    pyarrow.parquet.write_table(some_table(), path, write_page_index=True)
    content = bytearray(path.read_bytes())
    end = len(content) - 8
    footer = int.from_bytes(content[end : end + 4], "little")
    content[end - footer - 40 : end - footer] = b"\xff" * 40
    path.write_bytes(content)
    with pytest.warns(UserWarning, match="page index"):
        assert con.sql(f"SELECT count(*) FROM '{path}'").fetchone() == (3,)


def empty_parts() -> dict[str, pa.Array | pa.ChunkedArray]:
    """Columns with an empty slice from the middle of text or bytes, and how many rows they have."""
    text, data = pa.array(["a", "bc", "d", "e", "f"]), pa.array([b"a", b"bc", b"d", b"e", b"f"])
    return {
        "slice": text[3:3],
        "chunks": pa.chunked_array([text[1:3], text[3:3], text[3:5]]),
        "bytes": pa.chunked_array([data[1:3], data[3:3], data[3:5]]),
        "values": pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int8()), text[2:2]),
        "items": pa.ListArray.from_arrays(pa.array([0, 0, 0]), text[1:1]),
        "items of bytes": pa.ListArray.from_arrays(pa.array([0, 0, 0]), data[1:1]),
    }


@pytest.mark.parametrize("name", empty_parts())
def test_empty_slices_are_empty(con, name):
    column = empty_parts()[name]
    sliced = pa.table({"c": column})
    values = con.sql("SELECT c FROM sliced").fetchall()
    assert sorted(values, key=str) == sorted(((value,) for value in column.to_pylist()), key=str)
    con.sql("CREATE TABLE kept AS SELECT * FROM sliced")
    assert con.sql("SELECT count(*), count(c) FROM kept").fetchall() == [(len(column), len(column) - column.null_count)]


INNER = pa.struct([("z", pa.int64())])
SLICES = {
    "struct": pa.array([{"x": {"z": n}} for n in range(20)])[7:],
    "struct of lists": pa.array([{"x": {"z": [n]}} for n in range(20)])[7:],
    "list of fixed length": pa.array([[{"z": n}, {"z": -n}] for n in range(20)], pa.list_(INNER, 2))[7:],
    "items": pa.ListArray.from_arrays(pa.array([0, 1, 3]), pa.array([{"x": {"z": n}} for n in range(20)])[7:]),
    "map": pa.array([[("k", {"x": {"z": n}})] for n in range(20)], pa.map_(pa.string(), pa.struct([("x", INNER)])))[7:],
    "nothing": pa.array([{"x": {"z": n}} for n in range(20)])[3:3],
}


@pytest.mark.parametrize("name", SLICES)
def test_slices_with_structs_inside(con, name):
    column = SLICES[name]
    expected = [dict(value) if name == "map" else value for value in column.to_pylist()]
    sliced = pa.table({"c": column})
    batch = pa.record_batch([column], names=["c"])
    for source in [sliced, batch, sliced.to_reader()]:  # noqa: B007
        assert [row[0] for row in con.sql("SELECT c FROM source").fetchall()] == expected, type(source)


def test_seconds_are_timestamps_in_parquet(con, tmp_path):
    """Other readers saw numbers: Parquet has no unit of seconds."""
    seconds = pa.array([1704067200, None], pa.timestamp("s"))
    zoned = pa.array([0, None], pa.timestamp("s", "UTC"))
    nested = pa.ListArray.from_arrays(pa.array([0, 1, 2]), pa.StructArray.from_arrays([seconds], ["t"]))
    times = pa.table({"n": [1, 2], "t": seconds, "z": zoned, "l": nested})  # noqa: F841
    before = con.sql("SELECT * FROM times ORDER BY n").fetchall()
    con.sql(f"COPY (SELECT * FROM times ORDER BY n) TO '{tmp_path}/t.parquet'")
    con.sql(f"COPY times TO '{tmp_path}/parts' (FORMAT parquet, PARTITION_BY (n))")
    for path in [f"{tmp_path}/t.parquet", f"{tmp_path}/parts/*/*.parquet"]:
        assert con.sql(f"SELECT n, t, z, l FROM '{path}' ORDER BY n").fetchall() == before
    columns = pyarrow.parquet.ParquetFile(tmp_path / "t.parquet").schema
    logical = [str(columns.column(at).logical_type) for at in range(1, 4)]
    assert all("timeUnit=milliseconds" in kind for kind in logical), logical
