"""Ibis on grouse beside Ibis on DuckDB: the same expressions, the same rows."""

from __future__ import annotations

import decimal
import random

import ibis
import ibis.common.exceptions
import pandas
import polars
import pyarrow
import pyarrow.compute
import pyarrow.parquet
import pytest
from ibis import _

import grouse

FRAME = pandas.DataFrame(
    {
        "k": [1, 2, 3, 4, 5, 6],
        "s": ["a", "b", "a", None, "c", "b"],
        "x": [1.5, 2.0, None, 4.0, 5.5, 6.0],
        "t": pandas.date_range("2026-01-01", periods=6, freq="D"),
        "b": [True, False, True, None, True, False],
    }
)
NAMES = pandas.DataFrame({"s": ["a", "b", "z"], "name": ["ann", "bob", "zed"]})
t, names = ibis.memtable(pyarrow.Table.from_pandas(FRAME)), ibis.memtable(pyarrow.Table.from_pandas(NAMES))

# Ibis asks pandas for an option that pandas will take away.
pytestmark = pytest.mark.filterwarnings("ignore:.*infer_string")

EXPRESSIONS = {
    "aggregates": lambda: t.group_by("s").agg(n=_.count(), x=_.x.sum(), k=_.k.max(), d=_.k.nunique(), m=_.x.mean(), md=_.x.median()),
    "more aggregates": lambda: t.agg(
        q=_.x.quantile(0.25), s=_.x.std(), v=_.x.var(how="pop"), f=_.k.first(order_by=_.k), a=_.s.argmax(_.k),
        g=_.s.group_concat("-", order_by=_.k), any=_.b.any(), all=_.b.all()
    ),
    "filter": lambda: t.filter(_.k > 2, _.s.notnull()).select("k", "s"),
    "quotients": lambda: t.select(q=_.k / 2, f=_.k // 2, m=_.k % 2),
    "join": lambda: t.join(names, "s", how="left").select("k", "s", "name"),
    "semi join": lambda: t.semi_join(names, "s").select("k"),
    "anti join": lambda: t.anti_join(names, "s").select("k"),
    "asof join": lambda: t.select("t", "k").asof_join(t.select("t", v=_.k), on="t").select("k", "v"),
    "windows": lambda: t.mutate(r=ibis.row_number().over(order_by=_.k), c=_.x.cumsum(order_by=_.k), l=_.k.lag(1).over(order_by=_.k)),
    "frames": lambda: t.mutate(m=_.x.mean().over(ibis.window(preceding=1, following=1, order_by="k"))).select("k", "m"),
    "text": lambda: t.select(
        "k", u=_.s.upper(), l=_.s.length(), c=_.s.contains("a"), r=_.s.replace("a", "zz"), f=_.s.substr(0, 1), p=_.s + "!",
        w=_.s.like("a%"), e=_.s.re_search("a|b"), i=_.s[0:1], o=_.s[1:],
    ),
    "times": lambda: t.select(
        "k", y=_.t.year(), m=_.t.truncate("M"), w=_.t.day_of_week.index(), n=_.t.day_of_week.full_name(), e=_.t.epoch_seconds(),
        f=_.t.strftime("%Y/%m/%d"), d=_.t.date(), p=_.t + ibis.interval(days=3), z=ibis.timestamp("2026-01-01 10:00:00", timezone="UTC"),
    ),
    "buckets": lambda: t.group_by(b=_.t.bucket(days=2), o=_.t.bucket(days=2, offset=ibis.interval(days=1))).agg(n=_.count()),
    "cases": lambda: t.select("k", z=ibis.cases((_.k < 3, "low"), (_.k < 5, "mid"), else_="high"), c=_.x.fill_null(0.0)),
    "casts": lambda: t.select("k", a=_.k.cast("string"), b=_.x.cast("int64"), d=_.k.cast("decimal(10,2)"), i=_.k.cast("int8")),
    "sets": lambda: t.select("k").union(t.select(k=_.k + 1), distinct=True).difference(t.select(k=_.k + 4)),
    "lists": lambda: t.group_by("s").agg(l=_.k.collect(order_by=_.k)).mutate(n=_.l.length(), f=_.l[0], m=_.l.map(lambda x: x * 2)),
    "rows of lists": lambda: t.group_by("s").agg(l=_.k.collect(order_by=_.k)).select("s", v=_.l.unnest()),
    "structs": lambda: t.select("k", st=ibis.struct({"a": _.k, "b": _.s})).mutate(a=_.st.a),
    "maps": lambda: t.select("k", m=ibis.map(ibis.array(["a", "b"]), ibis.array([1, 2]))).mutate(v=_.m["a"]),
    "json": lambda: t.select("k", j=ibis.literal('{"a":{"b":1}}').cast("json")).select("k", v=_.j["a"]["b"].int),
    "numbers": lambda: t.select("k", r=(_.x / 3).round(2), a=(-_.k).abs(), c=_.x.ceil(), p=_.k**2, l=_.k.clip(2, 4)),
    "subquery": lambda: t.filter(_.x > t.x.mean()).select("k"),
    "columns of values": lambda: t.filter(_.s.notnull()).pivot_wider(id_cols="t", names_from="s", values_from="k", values_agg="sum"),
    "describe": lambda: t.describe().select("name", "count", "nulls"),
}


@pytest.fixture
def backend():
    backend = ibis.grouse.connect(threads=2)
    yield backend
    backend.disconnect()


@pytest.fixture(scope="module")
def duck():
    backend = ibis.duckdb.connect()
    yield backend
    backend.disconnect()


def rows(table: pyarrow.Table) -> list[str]:
    return sorted(str(row) for row in table.to_pylist())


@pytest.mark.parametrize("make", EXPRESSIONS.values(), ids=EXPRESSIONS.keys())
def test_as_on_duckdb(backend, duck, make):
    expression = make()
    found, expected = backend.to_pyarrow(expression), duck.to_pyarrow(expression)
    assert found.schema == expected.schema
    assert rows(found) == rows(expected)


def test_results(backend):
    total = t.x.sum()
    assert backend.to_pyarrow(total).as_py() == 19.0 and backend.execute(total) == 19.0
    frame = backend.execute(t.order_by("k").select("k", "s"))
    assert frame["k"].tolist() == FRAME["k"].tolist() and pandas.isna(frame["s"][3])
    assert backend.execute(t.order_by("k").k).tolist() == FRAME["k"].tolist()
    assert isinstance(backend.to_polars(t.select("k")), polars.DataFrame)
    batches = backend.to_pyarrow_batches(ibis.range(0, 1000).unnest().name("n").as_table(), chunk_size=100)
    assert [batch.num_rows for batch in batches] == [100] * 10
    decimals = backend.to_pyarrow(backend.sql("SELECT 1.25::DECIMAL(5, 2) AS d")).to_pylist()
    assert decimals == [{"d": decimal.Decimal("1.25")}]


def test_tables(backend, tmp_path):
    made = backend.create_table("made", t.filter(_.k > 3).select("k"))
    assert backend.list_tables() == ["made"] and made.count().execute() == 3
    backend.insert("made", ibis.memtable({"k": [9]}))
    assert backend.table("made").k.max().execute() == 9
    backend.create_table("made", FRAME, overwrite=True)
    assert backend.table("made").schema() == t.schema()
    backend.create_view("seen", backend.table("made").select("k"))
    assert backend.table("seen").count().execute() == 6
    assert backend.create_table("empty", schema={"a": "int64", "b": "string"}).count().execute() == 0
    backend.drop_view("seen")
    backend.drop_table("made")
    backend.drop_table("made", force=True)
    with pytest.raises(ibis.common.exceptions.TableNotFound):
        backend.table("made")
    with pytest.raises(grouse.UnknownTableError):
        backend.drop_table("made")


def test_times_as_numbers_are_seconds(backend):
    when = ibis.timestamp("2026-01-01 00:00:01")
    assert backend.execute(when.cast("int64")) == 1767225601
    assert backend.execute(t.order_by("k").t.cast("int64").name("s")).tolist()[0] == 1767225600


def test_files(backend, tmp_path):
    FRAME.drop(columns="b").to_csv(tmp_path / "f.csv", index=False)
    FRAME.to_parquet(tmp_path / "f.parquet")
    assert backend.read_csv(tmp_path / "f.csv").k.sum().execute() == 21
    assert backend.read_parquet(tmp_path / "f.parquet", table_name="f").filter(_.k > 4).count().execute() == 2
    backend.to_parquet(t.select("k"), tmp_path / "out.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "out.parquet").num_rows == 6


def test_functions_of_python(backend):
    @ibis.udf.scalar.python
    def plus_two(x: int) -> int:
        return x + 2

    @ibis.udf.scalar.pyarrow
    def shout(s: str) -> str:
        return pyarrow.compute.utf8_upper(s)

    @ibis.udf.scalar.python(side_effects=True)
    def anything() -> float:
        return random.random()

    assert backend.execute(t.select(a=anything()).a.nunique()) == 6
    assert sorted(backend.execute(plus_two(t.k))) == [3, 4, 5, 6, 7, 8]
    assert set(backend.execute(shout(t.s.fill_null("q")))) == {"A", "B", "C", "Q"}


def test_a_connection_that_is_open():
    with grouse.connect(threads=1) as con:
        con.sql("CREATE TABLE mine AS SELECT 7 AS seven")
        backend = ibis.grouse.from_connection(con)
        assert backend.table("mine").seven.execute().tolist() == [7]
        assert backend.sql("SELECT seven + 1 AS eight FROM mine").execute()["eight"].tolist() == [8]
