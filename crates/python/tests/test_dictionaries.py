"""Dictionaries as pyarrow, pandas and Polars hand them over, in queries made by chance, held against DuckDB over plain values.

Batches have dictionaries of their own; these hold values twice, values that no row has, and NULL. Rows have NULL besides.
"""

from __future__ import annotations

import datetime
import random

import duckdb
import pandas
import polars
import pyarrow as pa
import pytest

ROWS = 600
CODES = ["int8", "uint8", "int16", "int32", "int64"]
VALUES = {
    "s": ["red", "green", "", "grün", "a string of more than twelve bytes", "GREEN", None],
    "n": [0, 1, -5, 2**40, 7, 7, None],
    "f": [0.5, -1.25, 1e300, 0.0, 3.0, 3.0, None],
    "b": [b"x", b"", b"longer than twelve bytes", b"y", b"x", b"z", None],
}
TYPES = {"s": pa.string(), "n": pa.int64(), "f": pa.float64(), "b": pa.binary()}

KEYS = ["s", "n", "f", "b", "upper(s)", "n % 3", "s IS NULL", "coalesce(s, 'none')", "CASE WHEN n > 0 THEN s END", "length(s)"]
AGGREGATES = ["count(*)", "count(s)", "count(DISTINCT s)", "count(DISTINCT b)", "min(s)", "max(s)", "min(f)", "max(n)", "sum(n)"]
AGGREGATES += ["sum(DISTINCT n)", "avg(f) < 1", "count(*) FILTER (WHERE s = 'red')", "max(id)", "min(b)", "count(DISTINCT n % 3)"]
AGGREGATES += ["string_agg(s, ',' ORDER BY id)", "first(s ORDER BY id)", "max_by(s, id)", "sum(length(s))"]
CONDITIONS = ["s <> 'red'", "s LIKE '%e%'", "n IN (1, 7)", "s IS NOT NULL", "f < 1 OR n IS NULL", "b = 'x'::BLOB", "id % 2 = 0"]


def drawn(chance: random.Random, name: str, rows: int) -> pa.DictionaryArray:
    """A column of some of the values, in an order of its own, some of them twice."""
    values = [chance.choice(VALUES[name]) for _ in range(1 + chance.randrange(12))]
    codes = [None if chance.random() < 0.1 else chance.randrange(len(values)) for _ in range(rows)]
    return pa.DictionaryArray.from_arrays(pa.array(codes, chance.choice(CODES)), pa.array(values, TYPES[name]))


def of_batches(chance: random.Random) -> pa.Table:
    """A table whose batches have dictionaries of their own, with codes of one width per column."""
    cuts = sorted(chance.sample(range(1, ROWS), chance.randrange(4)))
    sizes = [end - start for start, end in zip([0, *cuts], [*cuts, ROWS])]
    columns = {"id": pa.chunked_array([pa.array(range(ROWS))])}
    for name in VALUES:
        chunks = [drawn(chance, name, size) for size in sizes]
        columns[name] = pa.chunked_array([chunk.cast(pa.dictionary(pa.int64(), TYPES[name])) for chunk in chunks])
        if chance.random() < 0.5:
            columns[name] = drawn(chance, name, ROWS)
    return pa.table(columns)


def plain(table: pa.Table) -> pa.Table:
    return pa.table({name: pa.array(column.to_pylist(), TYPES.get(name, pa.int64())) for name, column in zip(table.column_names, table.columns)})


def query(chance: random.Random) -> str:
    keys = chance.sample(KEYS, chance.randrange(4))
    aggregates = chance.sample(AGGREGATES, 1 + chance.randrange(4))
    columns = [f"{text} AS c{at}" for at, text in enumerate([*keys, *aggregates])]
    condition = f" WHERE {chance.choice(CONDITIONS)}" if chance.random() < 0.4 else ""
    groups = f" GROUP BY {', '.join(str(at + 1) for at in range(len(keys)))}" if keys else ""
    return f"SELECT {', '.join(columns)} FROM t{condition}{groups}"


def rows_of(found: list[tuple]) -> list[str]:
    return sorted(map(repr, found))


@pytest.mark.parametrize("seed", range(12))
def test_dictionaries_of_any_kind_are_their_values(con, seed):
    chance = random.Random(seed)
    table = of_batches(chance)
    values = plain(table)
    judge = duckdb.connect()
    judge.register("t", values)
    frames = {"pyarrow": table, "slice": pa.concat_tables([table.slice(0, 211), table.slice(211)])}
    if seed % 3 == 0:
        strings = values.select(["id", "s", "n", "f", "b"]).to_pandas()
        strings["s"] = pandas.Categorical(strings["s"], categories=["never", "red", "green", "", "grün", "GREEN", VALUES["s"][4]])
        strings["n"] = strings["n"].astype("Int64")
        frames["pandas"] = strings
        frames["polars"] = polars.from_arrow(values).with_columns(polars.col("s").cast(polars.Categorical))
    for name, frame in frames.items():
        con.register("t", frame)
        for _ in range(12):
            sql = query(chance)
            assert rows_of(con.sql(sql).fetchall()) == rows_of(judge.sql(sql).fetchall()), f"{name}: {sql}"


def test_null_among_a_dictionarys_values_is_null(con, tmp_path):
    """Arrow's cast of codes to views of strings gave it an empty text."""
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None]), pa.array(["x", None, ""]))
    coded = pa.table({"c": codes, "l": pa.ListArray.from_arrays(pa.array([0, 1, 2, 3, 4]), codes)})
    with pa.OSFile(str(tmp_path / "coded.arrow"), "wb") as file, pa.ipc.new_file(file, coded.schema) as writer:
        writer.write_table(coded)
    for source in ["coded", f"'{tmp_path}/coded.arrow'"]:
        groups = con.sql(f"SELECT c::VARCHAR, count(*) FROM {source} GROUP BY 1").fetchall()
        assert sorted(groups, key=str) == [("", 1), ("x", 1), (None, 2)], source
        assert con.sql(f"SELECT count(c::VARCHAR), count(*) FILTER (WHERE c::VARCHAR = '') FROM {source}").fetchall() == [(2, 1)]
        assert con.sql(f"SELECT count(l[1]::VARCHAR) FROM {source}").fetchall() == [(2,)]
    con.sql(f"COPY (SELECT c FROM coded) TO '{tmp_path}/coded.json'")
    assert con.sql(f"SELECT count(c), count(*) FROM '{tmp_path}/coded.json'").fetchall() == [(2, 4)]


def test_windows_over_many_rows_of_small_codes(con):
    frame = pandas.DataFrame({"c": pandas.Categorical(["a", "b", "c", None] * 100), "r": range(400)})
    con.register("d", frame)
    for function, expected in [
        ("lag(c)", [(None, 1), ("a", 100), ("b", 100), ("c", 100), (None, 99)]),
        ("lead(c, 4)", [("a", 99), ("b", 99), ("c", 99), (None, 99), (None, 4)]),
        ("lag(c, 400, 'none')", [("none", 400)]),
        ("nth_value(c, 2)", [(None, 1), ("b", 399)]),
        ("first_value(c)", [("a", 400)]),
        ("last_value(c)", [("a", 100), ("b", 100), ("c", 100), (None, 100)]),
    ]:
        counts: dict[str | None, int] = {}
        for value, count in expected:
            counts[value] = counts.get(value, 0) + count
        query = f"SELECT v, count(*) FROM (SELECT {function} OVER (ORDER BY r) AS v FROM d) GROUP BY v"
        assert dict(con.sql(query).fetchall()) == counts, function


def test_lists_of_different_small_codes_have_an_order(con):
    frame = pandas.DataFrame({"c": pandas.Categorical(["b", "a", "c", None] * 100)})
    con.register("d", frame)
    assert con.sql("SELECT array_agg(DISTINCT c ORDER BY c) FROM d").fetchall() == [(["a", "b", "c", None],)]
    query = "SELECT array_agg(DISTINCT c ORDER BY c DESC) FILTER (WHERE c IS NOT NULL) FROM d"
    assert con.sql(query).fetchall() == [(["c", "b", "a"],)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT sum(c::INT) FROM d WHERE c <> 'a'", 3),
        ("SELECT sum(c::INT) FILTER (WHERE c <> 'a') FROM d", 3),
        ("SELECT sum(CASE WHEN c <> 'a' THEN c::INT END) FROM d", 3),
        ("SELECT count(*) FROM d WHERE c <> 'a' AND c::INT > 1", 1),
        ("SELECT sum(TRY_CAST(c AS INT)) FROM d", 3),
        ("SELECT max(c::DOUBLE) FROM d WHERE c <> 'a'", 2.0),
    ],
)
def test_values_that_no_row_has_are_not_cast(con, query, expected):
    frame = pandas.DataFrame({"c": pandas.Categorical(["1", "a", "2"])})
    con.register("d", frame)
    assert con.sql(query).fetchall() == [(expected,)]


def test_codes_are_cast_as_their_values(con):
    frame = pandas.DataFrame({"c": pandas.Categorical(["[1, 2]", None]), "d": pandas.Categorical(["2024-1-2", None])})  # noqa: F841
    assert con.sql("SELECT c::INT[], d::DATE FROM frame").fetchall() == [([1, 2], datetime.date(2024, 1, 2)), (None, None)]
