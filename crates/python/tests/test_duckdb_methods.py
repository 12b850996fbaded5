"""Methods of relations and connections that DuckDB has too: each gives what DuckDB's gives.

In: two connections with the same tables. Out: the same rows, the same names of columns where DuckDB's are given and not made up.
Not here: what is ours alone (test_relation.py), PEP 249 (test_dbapi.py).
"""

from __future__ import annotations

import datetime as dt
import decimal
import inspect
import math
from collections.abc import Callable
from typing import Any

import duckdb
import numpy
import pandas
import polars
import pyarrow as pa
import pytest

import grouse

TABLES = [
    "CREATE TABLE t AS SELECT * FROM (VALUES (1, 'a', 1.5::DOUBLE, true), (2, 'b', 2.5::DOUBLE, false), "
    "(2, 'b', 2.5::DOUBLE, false), (3, NULL, NULL, NULL), (5, 'c', 0.25::DOUBLE, true)) v(k, s, x, b)",
    "CREATE TABLE u AS SELECT * FROM (VALUES (1, 'p'), (2, 'q'), (7, 'r')) v(k, w)",
    "CREATE TABLE l AS SELECT * FROM (VALUES (1, [10, 20]), (2, [30])) v(k, items)",
    "CREATE TABLE d AS SELECT * FROM (VALUES (DATE '2024-01-02', TIMESTAMP '2024-01-02 03:04:05', 7.25::DECIMAL(6, 2)), "
    "(DATE '2023-05-06', NULL, 1.00::DECIMAL(6, 2))) v(day, moment, price)",
]


@pytest.fixture(scope="module")
def both():
    """grouse's connection and DuckDB's, with the same tables."""
    with grouse.connect(threads=2) as ours:
        theirs = duckdb.connect()
        for text in TABLES:
            ours.sql(text)
            theirs.execute(text)
        yield ours, theirs
        theirs.close()


def plain(value: Any) -> Any:
    """A value that compares: numbers as numbers, NaN as a word."""
    if isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, float):
        return "nan" if math.isnan(value) else round(value, 9)
    if isinstance(value, numpy.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    return value


def rows_of(result: Any) -> list[list[Any]]:
    return [plain(row) for row in result.fetchall()]


def unordered(rows: list[list[Any]]) -> list[list[Any]]:
    return sorted(rows, key=repr)


def t(con: Any) -> Any:
    return con.table("t")


def u(con: Any) -> Any:
    return con.table("u")


def itself(con: Any) -> Any:
    left, right = t(con).project("k, s").set_alias("a"), t(con).project("k AS kk, x").set_alias("b")
    return left.join(right, "a.k = b.kk AND b.x > 2", how="left")


# Each gives a relation; rows may come in any order.
RELATIONS: dict[str, Callable[[Any], Any]] = {
    "filter": lambda con: t(con).filter("k > 1 AND s IS NOT NULL"),
    "filter by the alias": lambda con: t(con).filter("t.k > 1").filter("t.x < 2.5 OR t.x IS NULL"),
    "filter with a comment": lambda con: t(con).filter("k > 1 -- more than one"),
    "filter with a subquery": lambda con: t(con).filter("k > 1").filter("k IN (SELECT min(k) + 1 FROM t)"),
    "project": lambda con: t(con).project("k, x + 1 AS y, s"),
    "project columns": lambda con: t(con).project("s", "k"),
    "project groups": lambda con: t(con).project("sum(k) AS q", groups="s"),
    "select": lambda con: t(con).select("k * 2 AS kk"),
    "aggregate": lambda con: t(con).aggregate("s, sum(k) AS q"),
    "aggregate by": lambda con: t(con).aggregate("sum(k) AS q, count(*) AS n", "s"),
    "aggregate all": lambda con: t(con).aggregate("sum(k) AS q, count(x) AS n"),
    "group_by": lambda con: t(con).group_by("s").agg("sum(k) AS q"),
    "limit": lambda con: t(con).order("k").limit(2, offset=1),
    "offset": lambda con: t(con).order("k").offset(3),
    "head": lambda con: t(con).order("k").head(2),
    "join using": lambda con: t(con).join(u(con), "k"),
    "join list": lambda con: t(con).join(u(con), ["k"]),
    "join left": lambda con: t(con).join(u(con), "k", how="left"),
    "join right": lambda con: t(con).join(u(con), "k", how="right"),
    "join outer": lambda con: t(con).join(u(con), "k", how="outer"),
    "join semi": lambda con: t(con).join(u(con), "k", how="semi"),
    "join anti": lambda con: t(con).join(u(con), "k", how="anti"),
    "join suffix": lambda con: t(con).join(u(con), "t.k = u.k", suffix="_r"),
    "join on": lambda con: t(con).project("k AS a").set_alias("l").join(u(con), "l.a < u.k"),
    "join itself": lambda con: itself(con),
    "cross": lambda con: t(con).project("s").cross(u(con)),
    "distinct": lambda con: t(con).distinct(),
    "distinct on": lambda con: t(con).project("k, s").distinct("k"),
    "unique": lambda con: t(con).unique("s, k"),
    "union": lambda con: t(con).union(t(con).filter("k = 2")),
    "union_by_name": lambda con: t(con).union_by_name(u(con)),
    "union_by_name once": lambda con: t(con).union_by_name(u(con), all=False),
    "except_": lambda con: t(con).except_(t(con).filter("k = 2").limit(1)),
    "intersect": lambda con: t(con).intersect(t(con)),
    "describe": lambda con: t(con).project("k, s, x").describe(),
    "value_counts": lambda con: t(con).value_counts("s"),
    "drop": lambda con: t(con).drop("x", "b"),
    "rename": lambda con: t(con).rename(k="key", s="text"),
    "unnest": lambda con: con.table("l").unnest("items"),
    "unpivot": lambda con: t(con).project("k, x, x * 2 AS y").unpivot("x", "y", name="n", value="v"),
    "pivot": lambda con: t(con).project("k, s").pivot("s", ["a", "b"], "sum(k)"),
    "select_types": lambda con: t(con).select_types(["VARCHAR", "BOOLEAN"]),
    "select_dtypes": lambda con: t(con).select_dtypes(["DOUBLE"]),
    "query": lambda con: t(con).query("v", "SELECT count(*) AS n, max(k) AS m FROM v"),
    "materialize": lambda con: t(con).filter("k > 1").materialize(),
    "map": lambda con: t(con).project("k").map(lambda frame: frame + 1),
    "set_alias": lambda con: t(con).set_alias("z").filter("z.k > 1"),
    "a column": lambda con: t(con)["s"],
    "a column as an attribute": lambda con: t(con).s,
    "any_value": lambda con: t(con).any_value("s", groups="k"),
    "arg_max": lambda con: t(con).arg_max("s", "k"),
    "arg_min": lambda con: t(con).arg_min("s", "x", groups="b"),
    "avg": lambda con: t(con).avg("x", groups="b", projected_columns="b"),
    "mean": lambda con: t(con).mean("k"),
    "bit_and": lambda con: t(con).bit_and("k", groups="b"),
    "bit_or": lambda con: t(con).bit_or("k"),
    "bit_xor": lambda con: t(con).bit_xor("k"),
    "bool_and": lambda con: t(con).bool_and("b"),
    "bool_or": lambda con: t(con).bool_or("b", groups="s", projected_columns="s"),
    "count": lambda con: t(con).count("x"),
    "count rows": lambda con: t(con).count("*", groups="k", projected_columns="k"),
    "favg": lambda con: t(con).favg("x"),
    "fsum": lambda con: t(con).fsum("x", groups="b"),
    "first": lambda con: t(con).project("k, s").first("s", groups="k", projected_columns="k"),
    "last": lambda con: t(con).project("k, s").last("s", groups="k"),
    "geomean": lambda con: t(con).geomean("x"),
    "histogram": lambda con: t(con).histogram("k"),
    "list": lambda con: t(con).list("k", groups="s", projected_columns="s"),
    "max": lambda con: t(con).max("x", groups="s, k"),
    "median": lambda con: t(con).median("k"),
    "min": lambda con: t(con).min("s"),
    "mode": lambda con: t(con).mode("k"),
    "product": lambda con: t(con).product("k"),
    "quantile": lambda con: t(con).quantile("x", 0.5),
    "quantile_cont": lambda con: t(con).quantile_cont("x", [0.25, 0.5]),
    "quantile_disc": lambda con: t(con).quantile_disc("k", 0.75, groups="b"),
    "std": lambda con: t(con).std("k"),
    "stddev": lambda con: t(con).stddev("k"),
    "stddev_pop": lambda con: t(con).stddev_pop("k"),
    "stddev_samp": lambda con: t(con).stddev_samp("k"),
    "string_agg": lambda con: t(con).filter("k = 2").string_agg("s", sep="-"),
    "sum": lambda con: t(con).sum("k", groups="s"),
    "sum of several": lambda con: t(con).sum("k, x"),
    "sum over": lambda con: t(con).sum("k", window_spec="OVER (PARTITION BY s ORDER BY k)", projected_columns="s, k"),
    "var": lambda con: t(con).var("k"),
    "var_pop": lambda con: t(con).var_pop("k"),
    "var_samp": lambda con: t(con).var_samp("k"),
    "variance": lambda con: t(con).variance("x"),
    "apply": lambda con: t(con).apply("sum", "k", group_expr="s", projected_columns="s"),
    "apply with a parameter": lambda con: t(con).apply("quantile_cont", "k, x", function_parameter="0.5"),
    "row_number": lambda con: t(con).row_number("OVER (ORDER BY k, x)", "k"),
    "rank": lambda con: t(con).rank("OVER (ORDER BY k)", "k"),
    "dense_rank": lambda con: t(con).dense_rank("OVER (ORDER BY k)", "k"),
    "rank_dense": lambda con: t(con).rank_dense("OVER (ORDER BY k)"),
    "percent_rank": lambda con: t(con).percent_rank("OVER (ORDER BY k)"),
    "cume_dist": lambda con: t(con).cume_dist("OVER (PARTITION BY b ORDER BY k)", "b, k"),
    "n_tile": lambda con: t(con).n_tile("OVER (ORDER BY k)", 2, "k"),
    "lag": lambda con: t(con).lag("k", "OVER (ORDER BY k)", 1, "-1", False, "k"),
    "lag without NULL": lambda con: t(con).lag("s", "OVER (ORDER BY k)", ignore_nulls=True, projected_columns="k"),
    "lead": lambda con: t(con).lead("k", "OVER (ORDER BY k)", offset=2, projected_columns="k"),
    "first_value": lambda con: t(con).first_value("k", "OVER (PARTITION BY b ORDER BY k)", "b"),
    "last_value": lambda con: t(con).last_value("k", "OVER (PARTITION BY b ORDER BY k)", "b"),
    "nth_value": lambda con: t(con).nth_value("k", "OVER (ORDER BY k)", 2, projected_columns="k"),
    "con.view": lambda con: con.view("u"),
    "con.values": lambda con: con.values([1, "a", 2.5]),
    "con.values of rows": lambda con: con.values((1, "a"), (2, "b")),
    "con.table_function": lambda con: con.table_function("range", [3]),
    "con.query": lambda con: con.query("SELECT 41 + 1 AS x"),
    "con.query with parameters": lambda con: con.query("SELECT $1 + 1 AS x", params=[41]),
    "con.from_query": lambda con: con.from_query("SELECT 41 + 1 AS x"),
    "con.from_df": lambda con: con.from_df(pandas.DataFrame({"a": [1, 2], "b": ["x", None]})),
    "con.from_arrow": lambda con: con.from_arrow(pa.table({"a": [1, None], "b": [b"x", b"y"]})),
}


@pytest.mark.parametrize("name", RELATIONS)
def test_rows(both, name):
    ours, theirs = (RELATIONS[name](con) for con in both)
    assert unordered(rows_of(ours)) == unordered(rows_of(theirs))
    assert len(ours.columns) == len(theirs.columns)
    given = [mine for mine, other in zip(ours.columns, theirs.columns) if "(" not in other]
    assert given == [other for other in theirs.columns if "(" not in other]


ORDERED: dict[str, Callable[[Any], Any]] = {
    "order": lambda con: t(con).order("k DESC, x"),
    "sort": lambda con: t(con).sort("s DESC NULLS LAST", "k"),
    "order, then columns": lambda con: t(con).order("k DESC").project("k").filter("k < 5"),
    "order, then rows": lambda con: t(con).order("k DESC").filter("k < 5").project("k * 2 AS y").limit(2),
    "order, then first": lambda con: t(con).order("k DESC").list("k"),
}


@pytest.mark.parametrize("name", ORDERED)
def test_rows_in_order(both, name):
    ours, theirs = (ORDERED[name](con) for con in both)
    assert rows_of(ours) == rows_of(theirs)


# Each gives a value.
VALUES: dict[str, Callable[[Any], Any]] = {
    "alias": lambda con: (t(con).alias, t(con).filter("k > 1").alias, t(con).set_alias("z").alias),
    "type": lambda con: (t(con).type, t(con).filter("true").type, con.sql("SELECT 1").type),
    "columns": lambda con: t(con).columns,
    "shape": lambda con: t(con).shape,
    "len": lambda con: len(t(con).filter("k > 1")),
    "in": lambda con: ("k" in t(con), "zz" in t(con)),
    "description": lambda con: [one[0] for one in t(con).description],
    "to_dicts": lambda con: plain(t(con).to_dicts()),
    "iter_rows": lambda con: plain(list(t(con).iter_rows())),
    "fetchall": lambda con: plain(t(con).fetchall()),
    "df": lambda con: t(con).df().to_csv(),
    "fetchdf": lambda con: t(con).fetchdf().to_csv(),
    "to_df": lambda con: t(con).to_df().to_csv(),
    "pl": lambda con: t(con).pl().rows(),
    "to_arrow_table": lambda con: t(con).to_arrow_table().to_pylist(),
    "fetch_arrow_table": lambda con: t(con).to_arrow_table().to_pylist(),
    "to_arrow_reader": lambda con: t(con).to_arrow_reader(2).read_all().to_pylist(),
    "con.execute": lambda con: con.execute("SELECT ? + ?, ?", [1, 2, "x"]).fetchall(),
    "con.execute by name": lambda con: con.execute("SELECT $a || $b", {"a": "x", "b": "y"}).fetchone(),
    "con.fetchmany": lambda con: con.execute("SELECT k FROM t ORDER BY k").fetchmany(2),
    "con.fetchone": lambda con: [con.execute("SELECT 1").fetchone(), con.fetchone(), con.fetchone()],
    "con.fetchall": lambda con: [con.execute("SELECT 1").fetchall(), con.fetchall(), con.fetchone()],
    "con.df": lambda con: con.execute("SELECT * FROM t").df().to_csv(),
    "con.fetchdf": lambda con: con.execute("SELECT * FROM t").fetchdf().to_csv(),
    "con.fetch_df": lambda con: con.execute("SELECT * FROM t").fetch_df().to_csv(),
    "con.pl": lambda con: con.sql("SELECT * FROM t").pl().rows(),
    "con.to_arrow_table": lambda con: con.execute("SELECT * FROM t").to_arrow_table().to_pylist(),
    "con.to_arrow_reader": lambda con: con.execute("SELECT * FROM t").to_arrow_reader().read_all().to_pylist(),
    "con.description": lambda con: [one[0] for one in con.execute("SELECT 1 AS a, 'x' AS b").description],
    "con.rowcount": lambda con: con.execute("SELECT 1").rowcount,
    "con.cursor": lambda con: con.cursor().execute("SELECT 1 UNION ALL SELECT 1").fetchall(),
}


@pytest.mark.filterwarnings("ignore:Arrow output on a DB-API result")  # DuckDB's
@pytest.mark.parametrize("name", VALUES)
def test_values(both, name):
    ours, theirs = both
    # A connection of DuckDB's that has not given its last row does nothing else.
    with theirs.cursor() as cursor:
        assert VALUES[name](ours) == VALUES[name](cursor)


# Each changes something under a name of its own, and gives what there is then.
CHANGES: dict[str, Callable[[Any], Any]] = {
    "create": lambda con: (t(con).filter("k > 1").create("made"), rows_of(con.table("made")))[1],
    "to_table": lambda con: (t(con).to_table("made too"), rows_of(con.table("made too")))[1],
    "create_view": lambda con: (t(con).filter("k > 1").create_view("seen"), rows_of(con.view("seen")))[1],
    "create_view gives": lambda con: rows_of(t(con).filter("k > 2").create_view("seen", replace=True)),
    "to_view": lambda con: rows_of(t(con).filter("k > 2").to_view("seen too")),
    "insert_into": lambda con: (u(con).create("more"), u(con).insert_into("more"), rows_of(con.table("more")))[2],
    "insert": lambda con: (u(con).create("one"), con.table("one").insert([9, "it's"]), rows_of(con.table("one")))[2],
    "append": lambda con: (
        u(con).create("grown"),
        con.append("grown", pandas.DataFrame({"k": [8], "w": ["y"]})),
        rows_of(con.table("grown")),
    )[2],
    "append by name": lambda con: (
        u(con).create("named"),
        con.append("named", pandas.DataFrame({"w": ["y"], "k": [8]}), by_name=True),
        rows_of(con.table("named")),
    )[2],
    "executemany": lambda con: (
        u(con).create("many"),
        con.executemany("INSERT INTO many VALUES (?, ?)", [(8, "x"), (9, "y")]),
        rows_of(con.table("many")),
    )[2],
    "register": lambda con: (con.register("seen frame", pandas.DataFrame({"a": [1]})), rows_of(con.table("seen frame")))[1],
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes(both, name):
    ours, theirs = (CHANGES[name](con) for con in both)
    assert unordered(ours) == unordered(theirs)


def test_update(both):
    ours, theirs = both
    for con in both:
        u(con).create("changed")
    ours.table("changed").update({"k": 70, "w": "new"}, condition="k = 7")
    theirs.table("changed").update({"k": 70, "w": duckdb.lit("new")}, condition="k = 7")
    assert unordered(rows_of(ours.table("changed"))) == unordered(rows_of(theirs.table("changed")))


def test_with_columns(both):
    ours, theirs = both
    mine = t(ours).with_columns(y="k + 1", s="upper(s)")
    other = t(theirs).with_columns(y=duckdb.sql_expr("k + 1"), s=duckdb.sql_expr("upper(s)"))
    assert mine.columns == other.columns
    assert unordered(rows_of(mine)) == unordered(rows_of(other))


def test_unregister(both):
    for con in both:
        con.register("gone", pandas.DataFrame({"a": [1]}))
        con.unregister("gone")
        with pytest.raises(Exception, match="gone"):
            con.table("gone").fetchall()


def test_sql_query_means_the_relation(both):
    ours, _ = both
    made = t(ours).filter("k > 1").join(u(ours).set_alias("o"), "k").project("s, w").order("s, w").limit(3)
    assert rows_of(ours.sql(made.sql_query())) == rows_of(made)


def test_fetchnumpy(both):
    for text in ["SELECT k, s, x, b FROM t", "SELECT day, moment FROM d", "SELECT * FROM l"]:
        ours, theirs = (con.sql(text).fetchnumpy() for con in both)
        assert list(ours) == list(theirs)
        for name, column in theirs.items():
            assert isinstance(ours[name], numpy.ma.MaskedArray) == isinstance(column, numpy.ma.MaskedArray), name
            if column.dtype.kind == "M":  # a date is one here, and midnight there
                assert (ours[name].astype(column.dtype) == column).all(), name
                continue
            assert plain(ours[name].tolist()) == plain(column.tolist()), name


@pytest.mark.parametrize("method", ["to_csv", "write_csv", "to_parquet", "write_parquet"])
def test_files(both, tmp_path, method):
    results = []
    for at, con in enumerate(both):
        path = str(tmp_path / f"{at} it's.file")
        getattr(t(con), method)(path)
        read = con.read_csv if method.endswith("csv") else con.read_parquet
        results.append(unordered(rows_of(read(path))))
    assert results[0] == results[1]


def test_options_of_csv(both, tmp_path):
    written = []
    for at, con in enumerate(both):
        path = tmp_path / f"{at}.csv"
        t(con).order("k, x").project("k, s, x").to_csv(str(path), sep=";", na_rep="nothing", header=False, quoting="force")
        written.append(path.read_text())
        read = con.read_csv(str(path), header=False, sep=";", names=["k", "s", "x"])
        written.append(rows_of(read.aggregate("count(*)")))
    assert written[0] == written[2]
    assert written[1] == written[3]


def test_partitions(both, tmp_path):
    results = []
    for at, con in enumerate(both):
        folder = tmp_path / str(at)
        t(con).to_parquet(str(folder), partition_by=["k"])
        results.append(unordered(rows_of(con.read_parquet(f"{folder}/*/*.parquet", hive_partitioning=True).project("k, s"))))
    assert results[0] == results[1]


def test_read_json(both, tmp_path):
    path = tmp_path / "x.json"
    path.write_text('{"a": 1, "b": "x"}\n{"a": 2, "b": null}\n')
    ours, theirs = (con.read_json(str(path)) for con in both)
    assert unordered(rows_of(ours)) == unordered(rows_of(theirs))


def test_lists_of_files(both, tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text(f"x\n{name}\n")
    paths = [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]
    ours, theirs = (con.read_csv(paths, filename=False) for con in both)
    assert unordered(rows_of(ours)) == unordered(rows_of(theirs)) == [["a"], ["b"]]


# The module's functions, of the default connection.
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sql": lambda module: rows_of(module.sql("SELECT 1")),
    "query": lambda module: rows_of(module.query("SELECT 1")),
    "execute": lambda module: module.execute("SELECT ?", [5]).fetchall(),
    "fetchall": lambda module: (module.execute("SELECT 5"), module.fetchall())[1],
    "fetchone": lambda module: (module.execute("SELECT 5"), module.fetchone())[1],
    "values": lambda module: rows_of(module.values([1, 2])),
    "from_df": lambda module: rows_of(module.from_df(FRAME)),
    "filter": lambda module: rows_of(module.filter(FRAME, "a > 1")),
    "project": lambda module: rows_of(module.project(FRAME, "a + 1 AS y")),
    "aggregate": lambda module: rows_of(module.aggregate(FRAME, "sum(a)")),
    "distinct": lambda module: unordered(rows_of(module.distinct(FRAME))),
    "limit": lambda module: len(module.limit(FRAME, 2)),
    "order": lambda module: rows_of(module.order(FRAME, "a DESC")),
    "alias": lambda module: module.alias(FRAME, "f").alias,
    "query_df": lambda module: rows_of(module.query_df(FRAME, "f", "SELECT count(*) FROM f")),
    "cursor": lambda module: module.cursor().execute("SELECT 1").fetchall(),
    "apilevel": lambda module: (module.apilevel, module.paramstyle),
}
FRAME = pandas.DataFrame({"a": [1, 2, 2]})


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    expected = FUNCTIONS[name](duckdb)
    duckdb.abort()
    assert FUNCTIONS[name](grouse) == expected


def test_how_many_there_are():
    """What a user of DuckDB finds again, each of them in a table above."""
    of_relation = {name for name in dir(duckdb.DuckDBPyRelation) if not name.startswith("_")} & set(dir(grouse.Relation))
    of_connection = {name for name in dir(duckdb.DuckDBPyConnection) if not name.startswith("_")} & set(dir(grouse.Connection))
    assert len(of_relation) >= 100, sorted(of_relation)
    assert len(of_connection) >= 35, sorted(of_connection)


def test_replacement_scans_of_objects_that_duckdb_reads_too(both):
    lazy = polars.LazyFrame({"a": [1, 2, 3]})  # noqa: F841
    columns = {"a": numpy.array([1, 2]), "b": numpy.array([1.5, 2.5])}  # noqa: F841
    matrix = numpy.array([[1, 2, 3], [4, 5, 6]])  # noqa: F841
    line = numpy.array([1, 2, 3])  # noqa: F841
    for name in ["lazy", "columns", "matrix", "line"]:
        # DuckDB does not see these variables in a generator.
        ours, theirs = both[0].sql(f"SELECT * FROM {name}"), both[1].sql(f"SELECT * FROM {name}")
        assert ours.columns == theirs.columns
        assert unordered(rows_of(ours)) == unordered(rows_of(theirs))


def test_days_are_days(both):
    ours, theirs = (con.sql("SELECT day, moment FROM d ORDER BY day").fetchall() for con in both)
    assert ours == theirs and ours[0][0] == dt.date(2023, 5, 6)


# Parameters of DuckDB's that are not here.
ABSENT = {
    "batch_size",  # batches come in the engine's size
    "date_as_object",
    "lazy",
    "type",
    "format",
    "max_col_width",
    "null_value",
    "render_mode",
    "field_ids",
    "binary_as_string",  # an option like others
    "args",  # rows
    "view_name",
    "python_object",
    "df",
    "parameters",
    "types",
}


def test_parameters_have_duckdbs_names():
    ours, theirs = grouse.Relation, duckdb.DuckDBPyRelation
    for name in {name for name in dir(theirs) if not name.startswith("_")} & set(vars(ours)):
        mine, other = getattr(ours, name), getattr(theirs, name)
        if callable(other) and not isinstance(other, property):
            missing = set(inspect.signature(other).parameters) - set(inspect.signature(mine).parameters) - ABSENT
            assert not missing, f"{name} has no {missing}"
