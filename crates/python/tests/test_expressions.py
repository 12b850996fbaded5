"""Expressions as objects, beside DuckDB's own of the same names: the same columns and rows."""

from __future__ import annotations

import datetime
import decimal

import duckdb
import numpy
import pytest

import grouse

TABLE = """CREATE TABLE t AS SELECT * FROM (VALUES
    (1, 2, 'u', [1, 2], 1.5::DOUBLE, DATE '2020-01-01'),
    (3, NULL, 'v', [], -2.25::DOUBLE, DATE '2021-06-30'),
    (NULL, 5, 'it''s', NULL, NULL, NULL),
    (7, 2, NULL, [9], 0.0::DOUBLE, DATE '1969-07-20')) AS v(a, b, s, l, d, "Day one")"""


@pytest.fixture
def both(con):
    with duckdb.connect() as duck:
        duck.sql(TABLE)
        con.sql(TABLE)
        yield (grouse, con.table("t")), (duckdb, duck.table("t"))


class Names:
    """The constructors of one of the libraries."""

    def __init__(self, library) -> None:
        self.col, self.val, self.fn = library.ColumnExpression, library.ConstantExpression, library.FunctionExpression
        self.case, self.star, self.lam = library.CaseExpression, library.StarExpression, library.LambdaExpression
        self.sql, self.coalesce = library.SQLExpression, library.CoalesceOperator


ALONE = {
    "sum of two": lambda e: e.col("a") + e.col("b"),
    "value before": lambda e: 10 - e.col("a"),
    "brackets": lambda e: (e.col("a") + 1) * (e.col("b") - 2) - (e.col("a") - (e.col("b") - 1)),
    "quotient": lambda e: e.col("a") / e.col("b"),
    "whole quotient": lambda e: 7 // e.col("a"),
    "modulo": lambda e: e.col("a") % 4 + 9 % e.col("b"),
    "power": lambda e: e.col("a") ** 2 + 2 ** e.col("b"),
    "negative": lambda e: -e.col("a") - -5,
    "negative constant": lambda e: e.col("a") - e.val(-5),
    "double": lambda e: e.col("d") * 2.5,
    "decimal": lambda e: e.col("a") + decimal.Decimal("1.25"),
    "equal": lambda e: e.col("a") == 1,
    "not equal": lambda e: e.col("s") != "u",
    "quote": lambda e: e.col("s") == "it's",
    "text is no name": lambda e: e.col("s") == "u",
    "none": lambda e: e.col("a") == None,  # noqa: E711
    "less": lambda e: 1 < e.col("a"),
    "and": lambda e: (e.col("a") == 1) & (e.col("b") > 1),
    "or": lambda e: (e.col("a") == 1) | ~(e.col("b") > 1),
    "not of and": lambda e: ~((e.col("a") == 1) & (e.col("b") == 2)),
    "and of or": lambda e: ((e.col("a") == 1) | (e.col("a") == 7)) & (e.col("b") == 2),
    "in": lambda e: e.col("a").isin(1, 7, e.col("b")),
    "not in": lambda e: e.col("a").isnotin(1, 2),
    "null": lambda e: e.col("b").isnull(),
    "not null": lambda e: e.col("b").isnotnull(),
    "between": lambda e: e.col("a").between(2, e.col("b") + 5),
    "like": lambda e: e.col("s").like("%t%") | e.col("s").ilike("U"),
    "concat": lambda e: e.col("s").concat("-", e.col("s")),
    "cast": lambda e: e.col("a").cast("VARCHAR"),
    "cast to a class": lambda e: e.col("d").cast(str),
    "cast of a sum": lambda e: (e.col("a") + 0.5).cast("DECIMAL(5, 1)"),
    "try": lambda e: e.col("s").try_cast(int),
    "date": lambda e: e.col("Day one") > datetime.date(2000, 1, 1),
    "time": lambda e: e.col("Day one").cast("TIMESTAMP") + datetime.timedelta(days=1, seconds=1),
    "datetime": lambda e: e.col("Day one").cast("TIMESTAMP") < datetime.datetime(2020, 1, 1, 12, 30),
    "function": lambda e: e.fn("upper", e.col("s")),
    "text of a function": lambda e: e.fn("concat", e.col("s"), "?"),
    "case": lambda e: e.case(e.col("a") == 1, "one"),
    "branches": lambda e: e.case(e.col("a") == 1, "one").when(e.col("a") == 3, e.col("s")).otherwise("many"),
    "sum of cases": lambda e: e.case(e.col("a") == 1, 1).otherwise(2) + 1,
    "coalesce": lambda e: e.coalesce(e.col("a"), e.col("b"), 0),
    "lambda": lambda e: e.fn("list_transform", e.col("l"), e.lam("x", e.col("x") * 2 + e.col("b"))),
    "lambda of two": lambda e: e.fn("list_reduce", e.val([1, 2, 3]), e.lam(("x", "y"), e.col("x") + e.col("y"))),
    "item": lambda e: e.col("l")[1],
    "sql": lambda e: e.sql("a + 1 -- more"),
    "sql in brackets": lambda e: e.sql("a + 1") * 2,
    "list": lambda e: e.val([1, None, 3]),
    "dict": lambda e: e.val({"x": 1, "y": "z"}),
    "bytes": lambda e: e.val(b"\x00\xffa"),
    "numpy": lambda e: e.col("a") + numpy.int64(2),
    "window": lambda e: e.col("a").sum().over(partition_by=e.col("b"), order_by=e.col("a")),
    "frame": lambda e: e.col("a").sum().over(order_by=e.col("a").desc().nulls_last(), rows=(-1, 0)),
    "rank": lambda e: e.fn("row_number").over(order_by=[e.col("b").nulls_first(), e.col("a").desc().nulls_first()]),
}


def plain(rows):
    return sorted(rows, key=repr)


@pytest.mark.parametrize("make", ALONE.values(), ids=ALONE.keys())
def test_as_duckdb(both, make):
    found = []
    for library, relation in both:
        e = Names(library)
        found.append(plain(relation.select(e.col("a").alias("key"), make(e).alias("value")).fetchall()))
    assert found[0] == found[1]


# DuckDB's short names, those of both libraries.
SHORT = {
    "column": lambda d: d.col("a") + d.lit(1),
    "any function": lambda d: d.fn("round", d.col("d"), 1),
    "case": lambda d: d.when(d.col("a") == 1).then("one").when(d.col("a") == 3).then("three").otherwise("many"),
    "case of columns": lambda d: d.when(d.col("b").isnull()).then(d.col("a")).otherwise(d.col("b")),
    "coalesce": lambda d: d.coalesce(d.col("a"), d.col("b"), 0),
    "sql": lambda d: d.sql_expr("a * 2"),
    "number of the row": lambda d: d.row_number().over(order_by=d.col("a").asc().nulls_last()),
    "rank": lambda d: d.rank().over(order_by=d.col("b").asc().nulls_last()),
    "before": lambda d: d.lag(d.col("a"), 1, 0).over(order_by=d.col("a").asc().nulls_last()),
    "last": lambda d: d.first_value(d.col("a")).over(order_by=d.col("a").asc().nulls_last()),
    "rows": lambda d: d.count_all().over(partition_by=d.col("b")),
    "text": lambda d: d.col("s").str().upper().str().length(),
    "text, chained": lambda d: d.col("s").str().upper().replace("T", "-").lpad(5, "*"),
    "text behind": lambda d: d.col("s").str().concat_ws("-", "x"),
    "date": lambda d: d.col("Day one").dt().year() + d.col("Day one").dt().month(),
    "part": lambda d: d.col("Day one").dt().trunc("year").cast("DATE"),
    "difference": lambda d: d.col("Day one").dt().diff("day", datetime.date(2020, 1, 1)),
    "list": lambda d: d.col("l").list().append(3).contains(3),
    "list's greatest": lambda d: d.col("l").list().max(),
    "list of lambdas": lambda d: d.col("l").list().transform(lambda x: x * 2).filter(lambda x: x > 2).sum(),
    "before a list": lambda d: d.col("l").list().prepend(0),
    "json": lambda d: d.lit('{"x": {"y": 7}}').json().extract_string("$.x.y"),
}


@pytest.mark.parametrize("make", SHORT.values(), ids=SHORT.keys())
def test_short_names_as_duckdb(both, make):
    found = []
    for library, relation in both:
        found.append(plain(relation.select(library.col("a").alias("key"), make(library).alias("value")).fetchall()))
    assert found[0] == found[1]


def test_stars_as_duckdb(both):
    found = []
    for library, relation in both:
        stars = [relation.select(library.star(exclude="l")), relation.select(library.star(["l", "d"], rename={"a": "A a"}))]
        found.append([(star.columns, plain(star.fetchall())) for star in stars])
    assert found[0] == found[1]


def test_aggregates_behind_functions(con):
    """The greatest of a column of lengths is an aggregate; that of a list is not."""
    rows = con.sql("SELECT * FROM (VALUES ('a', [1, 5]), ('bcd', [2])) t(s, l)")
    col = grouse.col
    assert rows.aggregate([col("s").str().length().max(), col("l").list().max().max()]).fetchall() == [(3, 5)]
    with pytest.raises(grouse.Error, match="frobnicate"):
        rows.select(col("s").str().frobnicate()).fetchall()


RELATIONS = {
    "filter": lambda r, e: r.filter((e.col("a") > 1) & e.col("s").isnotnull()),
    "columns": lambda r, e: r.select(e.col("a"), e.col("Day one"), (e.col("b") + 1).alias("b")),
    "a name and an expression": lambda r, e: r.select("a", e.col("b")),
    "alias that is no word": lambda r, e: r.select(e.col("a").alias('x "y" z')),
    "star": lambda r, e: r.select(e.star()),
    "star without": lambda r, e: r.select(e.star(exclude=["l", e.col("s")])),
    "names of results": lambda r, e: r.select(e.col("b") + 1, e.fn("upper", e.col("s")), e.val("x"), e.col("t", "a")),
    "names of aggregates": lambda r, e: r.aggregate([e.col("a").sum(), e.col("b").max()]),
    "alias of sql": lambda r, e: r.select(e.sql("a * 2 AS twice"), e.sql('b AS "B b"')),
    "groups": lambda r, e: r.aggregate([e.col("b"), e.col("a").sum().alias("n")], "b"),
    "groups by themselves": lambda r, e: r.aggregate([e.col("b"), e.col("a").count().alias("n")]),
    "all aggregates": lambda r, e: r.aggregate(
        [
            e.col("a").avg().alias("avg"),
            e.col("a").median().alias("median"),
            e.col("a").std().alias("std"),
            e.col("b").n_unique().alias("different"),
            e.col("a").quantile(0.5).alias("q"),
            e.col("a").max().where(e.col("b") == 2).alias("of_two"),
            e.col("s").arg_max(e.col("a")).alias("last_s"),
            e.fn("count").alias("n"),
        ]
    ),
    "order": lambda r, e: r.order(e.col("a").desc().nulls_first()),
    "sort": lambda r, e: r.sort(e.col("b").nulls_last(), e.col("a").desc()),
    "sort by sql too": lambda r, e: r.sort(e.col("b").asc().nulls_first(), "a DESC NULLS LAST"),
    "join": lambda r, e: r.set_alias("x").join(r.set_alias("y"), e.col("x", "a") == e.col("y", "b") + 1).project("x.a, y.b"),
}


@pytest.mark.parametrize("make", RELATIONS.values(), ids=RELATIONS.keys())
def test_relations_as_duckdb(both, make, request):
    (_, own), (_, theirs) = both
    own, theirs = make(own, Names(grouse)), make(theirs, Names(duckdb))
    assert own.columns == theirs.columns
    is_ordered = "order" in request.node.name or "sort" in request.node.name
    rows = [own.fetchall(), theirs.fetchall()]
    assert rows[0] == rows[1] if is_ordered else plain(rows[0]) == plain(rows[1])


def test_methods_that_take_text_take_expressions(both):
    (_, t), _ = both
    e = Names(grouse)
    assert t.sum(e.col("a") * 2).fetchall() == [(22,)]
    assert sorted(t.max(e.col("a"), groups=e.col("b"), projected_columns=e.col("b").alias("k")).fetchall(), key=repr) == [
        (2, 7),
        (5, None),
        (None, 3),
    ]
    assert t.filter(e.col("a").isnotnull()).distinct(e.col("b")).shape[0] == 2
    assert sorted(t.group_by(e.col("b") % 2).agg(e.col("a").count().alias("n")).project("n").fetchall()) == [(0,), (1,), (2,)]
    assert t.with_columns(twice=e.col("a") * 2).project("twice").order("twice").limit(1).fetchall() == [(2,)]
    assert t.project(e.col("a"), groups=e.col("a")).shape[0] == 4
    t.update({"a": e.col("b") + 100, "s": "text"}, condition=e.col("a") == 1)
    assert t.filter(e.col("s") == "text").project("a").fetchall() == [(102,)]


def test_expressions_do_not_change(both):
    (_, t), _ = both
    a = grouse.ColumnExpression("a")
    named, falling = a.alias("n"), a.desc()
    case = grouse.CaseExpression(a == 1, 1)
    more = case.when(a == 3, 3)
    assert (str(a), a.get_name(), named.get_name(), (named + 1).get_name()) == ('"a"', "a", "n", "(a + 1)")
    assert named.alias("").get_name() == "a"
    assert (a.as_order(), falling.as_order(), falling.nulls_last().as_order()) == ('"a"', '"a" DESC', '"a" DESC NULLS LAST')
    assert str(case) != str(more) and "3" not in str(case)
    assert more.alias("x").otherwise(0).get_name() != "x"
    assert t.select(more.alias("x")).columns == ["x"]
    assert len({a, named, a}) == 2


def test_names_are_quoted(con):
    con.sql('CREATE TABLE odd ("a.b" INTEGER, "select" INTEGER, "x""y" INTEGER, "A" INTEGER)')
    con.sql("INSERT INTO odd VALUES (1, 2, 3, 4)")
    col = grouse.ColumnExpression
    relation = con.table("odd").select(col("a.b"), col("select"), col('x"y') + 1, col("odd", "A"))
    assert relation.columns == ["a.b", "select", '(x"y + 1)', "A"] and relation.fetchall() == [(1, 2, 4, 4)]
    with pytest.raises(grouse.UnknownColumnError):
        con.table("odd").filter(col('1 = 1 OR "a.b"'))
    with pytest.raises(grouse.TypeError):
        con.table("odd").filter(col("a.b") == "1'; DROP TABLE odd; --").fetchall()


def test_what_an_expression_is_not(both):
    (_, t), _ = both
    a = grouse.ColumnExpression("a")
    with pytest.raises(grouse.TypeError, match="write & for and"):
        bool(a == 1)
    with pytest.raises(grouse.TypeError, match="write & for and"):
        1 < a < 3  # noqa: B015
    with pytest.raises(grouse.TypeError, match="no items"):
        list(a)
    with pytest.raises(grouse.TypeError, match="one value at least"):
        a.isin()
    with pytest.raises(grouse.TypeError, match="goes with CaseExpression"):
        a.otherwise(1)
    with pytest.raises(grouse.TypeError, match="has no literal"):
        a == object()  # noqa: B015
    for text in ("a, b", "a +; DROP TABLE t", "(a", "a FROM t"):
        with pytest.raises(grouse.SyntaxError):
            grouse.SQLExpression(text)
    with pytest.raises(grouse.SyntaxError):
        t.select(grouse.SQLExpression("a +"))
    with pytest.raises(grouse.TypeError, match="str, or an Expression"):
        t.filter(5)
