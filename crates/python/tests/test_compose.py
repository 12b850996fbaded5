"""Relations made of relations: what they keep, what they refuse, how they are planned."""

from __future__ import annotations

import pandas
import pyarrow as pa
import pytest

import grouse


@pytest.fixture
def t(con):
    con.sql("CREATE TABLE t AS SELECT number AS k, number % 3 AS g, 'x' || number AS s FROM numbers(10)")
    return con.table("t")


def test_parameters_are_kept(con):
    low = con.sql("SELECT number AS n FROM numbers(100) WHERE number >= $low", {"low": 90})
    high = con.sql("SELECT number AS n FROM numbers(100) WHERE number < ?", [95])
    both = low.set_alias("a").join(high.set_alias("b"), "n")
    assert sorted(both.fetchall()) == sorted(both.fetchall()) == [(n,) for n in range(90, 95)]
    assert both.filter("n > 92").count("*").fetchall() == [(2,)]


def test_variables_are_kept(con):
    def made():
        frame = pandas.DataFrame({"a": [1, 2, 3]})
        return con.sql("SELECT a + 1 AS b FROM frame").filter("b > 2")

    relation = made().project("b * 10 AS c")
    assert relation.fetchall() == relation.fetchall() == [(30,), (40,)]


def test_variables_of_the_caller_are_seen_in_expressions(con, t):
    wanted = pa.table({"n": [2, 4]})  # noqa: F841
    assert t.filter("k IN (SELECT n FROM wanted)").project("k").fetchall() == [(2,), (4,)]
    assert [t.filter("k IN (SELECT n FROM wanted)").shape[0] for _ in range(2)] == [2, 2]
    assert con.query("SELECT sum(n) FROM wanted").fetchall() == [(6,)]
    assert con.execute("SELECT sum(n) FROM wanted").fetchall() == [(6,)]


def test_names_inside_expressions_are_the_sessions(t):
    """A relation is called t, but the table of that name is what a subquery reads."""
    assert t.filter("k > 5").filter("k = (SELECT min(k) + 6 FROM t)").project("k").fetchall() == [(6,)]


def test_filters_and_columns_go_down_into_files(con, tmp_path):
    path = tmp_path / "x.parquet"
    con.sql("SELECT number AS k, number % 7 AS g, 'text' AS s FROM numbers(1000)").to_parquet(path)
    plan = con.read_parquet(path).filter("k > 990").project("g").explain()
    scan = next(line for line in plan.splitlines() if "DataSourceExec" in line)
    assert "projection=[k, g]" in scan and "predicate=k@0 > 990" in scan, plan
    assert con.read_parquet(path).filter("k > 990").count("*").fetchall() == [(9,)]


def test_a_relation_of_another_connection(con, t):
    with grouse.connect(threads=1) as other:
        foreign = other.sql("SELECT number AS k, 'y' AS y FROM numbers(3)").set_alias("f")
        assert sorted(t.join(foreign, "k").project("k, y").fetchall()) == [(0, "y"), (1, "y"), (2, "y")]


def test_a_statement_that_has_run_is_a_relation_too(con):
    changed = con.sql("CREATE TABLE c AS SELECT 1 AS x; INSERT INTO c VALUES (2)")
    assert changed.project("count + 1 AS n").fetchall() == [(2,)]


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.filter("true) OR (true"),
        lambda t: t.filter("k > 1; DROP TABLE t"),
        lambda t: t.filter("k > 1 UNION SELECT 1"),
        lambda t: t.filter("'"),
        lambda t: t.filter('"k'),
        lambda t: t.filter("k > 1 /* "),
        lambda t: t.filter(""),
        lambda t: t.filter("-- nothing"),
        lambda t: t.filter("k > 1, g > 1"),
        lambda t: t.project("k FROM t"),
        lambda t: t.project("k, , g"),
        lambda t: t.project("k WHERE k > 1"),
        lambda t: t.order("k) LIMIT (1"),
        lambda t: t.sum("k), max(g"),
        lambda t: t.row_number("ROWS"),
        lambda t: t.row_number("OVER (ORDER BY k), 5"),
        lambda t: t.apply("sum(k), max", "g"),
    ],
)
def test_an_expression_stays_one(con, t, call):
    with pytest.raises(grouse.SyntaxError):
        call(t)
    assert t.shape == (10, 3)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("s = ';'", 0),
        ("s = 'it''s -- not' OR k IN (1, 2)", 2),
        ("k IS DISTINCT FROM 3", 9),
        ("s = $$a ' b$$ OR k < 1", 1),
        ("k > 8 -- a comment ' with a quote", 1),
        ("/* ) */ k > 8", 1),
        ("extract(year FROM DATE '2024-01-01') = 2024", 10),
        ("k IN (SELECT k FROM t WHERE g = 0 UNION SELECT 1)", 5),
    ],
)
def test_expressions_may_hold_anything(t, text, rows):
    assert t.filter(text).shape[0] == rows


def test_names_are_names(con):
    odd = con.sql('SELECT 1 AS "a b", 2 AS "sel""ect", 3 AS "ORDER"')
    assert odd["a b"].fetchall() == [(1,)]
    assert odd.drop("a b").columns == ['sel"ect', "ORDER"]
    assert odd.rename(**{"a b": 'c"d'}).columns == ['c"d', 'sel"ect', "ORDER"]
    assert odd.project("a b", 'sel"ect').fetchall() == [(1, 2)]
    odd.create('a "table"; DROP')
    assert con.table('a "table"; DROP').shape == (1, 3)


def test_wrong_calls_are_told(con, t):
    with pytest.raises(grouse.UnknownColumnError):
        t.filter("nope > 1")
    with pytest.raises(grouse.UnknownColumnError):
        t.rename(nope="x")
    with pytest.raises(grouse.UnknownColumnError):
        t["nope"]
    with pytest.raises(AttributeError, match="nope"):
        t.nope  # noqa: B018
    with pytest.raises(grouse.Error, match="nope"):
        t.drop("nope")
    with pytest.raises(grouse.UnknownTableError):
        con.table("nope")
    with pytest.raises(grouse.InvalidError, match="called 't'"):
        t.join(con.table("t"), "k")
    with pytest.raises(grouse.InvalidError, match="inner, left"):
        t.join(con.sql("SELECT 1 AS k"), "k", how="sideways")
    with pytest.raises(grouse.InvalidError, match="needs a condition"):
        t.join(con.sql("SELECT 1 AS k"))
    with pytest.raises(grouse.InvalidError, match="not -1"):
        t.limit(-1)
    with pytest.raises(grouse.TypeError, match="str"):
        t.filter(5)
    with pytest.raises(grouse.TypeError, match="by the name of a column, not by int"):
        t[0]
    with pytest.raises(grouse.InvalidError, match="PARTITION BY"):
        t.sum("k", groups="g", window_spec="OVER ()")
    with pytest.raises(grouse.InvalidError, match="no column is of type DATE"):
        t.select_types(["DATE"])
    with pytest.raises(grouse.InvalidError, match="connection.table"):
        t.filter("k > 1").insert([1, 2, "x"])
    with pytest.raises(grouse.Error, match="nosuch"):
        con.read_csv("x.csv", nosuch=1)
    with pytest.raises(grouse.TypeError, match="int"):
        con.from_df(5)


def test_joins_keep_both_sides_names(con, t):
    u = con.sql("SELECT 1 AS k, 7 AS g").set_alias("u")
    assert t.join(u, "t.k = u.k", suffix="_u").columns == ["k", "g", "s", "k_u", "g_u"]
    assert t.join(u, "k", suffix="_u").columns == ["k", "g", "s", "g_u"]
    outer = t.filter("k < 2").join(con.sql("SELECT 1 AS k, 7 AS g UNION ALL SELECT 99, 8").set_alias("u"), "k", how="full", suffix="_u")
    assert sorted(row[0] for row in outer.fetchall()) == [0, 1, 99]
    twice = t.join(u, "t.k = u.k")
    assert len(set(twice.columns)) == 5
    assert twice.filter("s = 'x1'").shape == (1, 5)


def test_samples(t):
    assert t.sample(4).shape[0] == 4
    assert t.sample(4, seed=1).fetchall() == t.sample(4, seed=1).fetchall()
    assert t.sample(percent=100.0).shape[0] == 10
    for wrong in [{}, {"n": 1, "percent": 2.0}, {"n": 1, "method": "guess"}]:
        with pytest.raises(grouse.InvalidError):
            t.sample(**wrong)


def test_summarize(t):
    rows = t.summarize()
    assert rows.shape[0] == 3
    assert rows.columns[:2] == ["column_name", "column_type"]


def test_len_runs_a_query_once_where_rows_are_wanted_too(con):
    reader = pa.table({"n": [1, 2, 3]}).to_reader()
    relation = con.sql("SELECT n FROM reader")
    assert list(relation) == [(1,), (2,), (3,)], "list() asks for the length, too"
    assert len(con.sql("SELECT number FROM numbers(1000)")) == 1000
    rows = con.sql("SELECT number FROM numbers(5)")
    iterator = iter(rows)
    assert len(rows) == 5 and len(list(iterator)) == 5
    assert len(con.sql("CREATE TABLE z (a INT)")) == 0


def test_preview_and_dtypes(t):
    assert t.dtypes == t.types
    text = t.preview(3)
    assert text.splitlines()[-1] == "first 3 rows"


def test_torch_wants_numbers(t, monkeypatch):
    import sys
    import types

    fake = types.ModuleType("torch")
    fake.from_numpy = lambda array: ("tensor", array.tolist(), array.flags.writeable)
    monkeypatch.setitem(sys.modules, "torch", fake)
    assert t.project("k").order("k").limit(2).torch() == {"k": ("tensor", [0, 1], True)}
    with pytest.raises(grouse.TypeError, match="column 's'"):
        t.torch()


def test_interrupt_from_another_thread(con, endless):
    import threading

    timer = threading.Timer(0.3, con.interrupt)
    timer.start()
    with pytest.raises(grouse.CancelledError):
        con.sql(endless).fetchall()
    timer.join()
    assert con.sql("SELECT 1").fetchall() == [(1,)], "a query that begins later is not interrupted"


@pytest.mark.parametrize("text", ["g LIMIT 1", "g OFFSET 1", "g ORDER BY g", "g GROUP BY g", "g EXCEPT SELECT 1", "g /* /* */ */"])
def test_an_expression_is_no_clause(t, text):
    for method in (t.project, t.order, t.filter, lambda text: t.aggregate("count(*)", text)):
        with pytest.raises(grouse.SyntaxError):
            method(text)
    assert t.project("* EXCEPT (k)").columns == ["g", "s"]
