"""SQLAlchemy's dialect: engines, statements, what tables are, the ORM, pandas."""

from __future__ import annotations

import datetime
import decimal

import pandas
import pytest
import sqlalchemy as sa
from sqlalchemy import orm

import grouse


@pytest.fixture
def engine():
    engine = sa.create_engine("grouse://?threads=2")
    yield engine
    engine.dispose()


@pytest.fixture
def orders(engine):
    metadata = sa.MetaData()
    table = sa.Table(
        "orders",
        metadata,
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("Customer name", sa.String(20), nullable=False),
        sa.Column("amount", sa.Numeric(10, 2)),
        sa.Column("weight", sa.Float),
        sa.Column("at", sa.DateTime),
        sa.Column("paid", sa.Boolean),
        sa.Column("blob", sa.LargeBinary),
        sa.Column("note", sa.Text),
        sa.Column("tags", sa.ARRAY(sa.String)),
    )
    metadata.create_all(engine)
    rows = [
        {"id": 1, "Customer name": "ann", "amount": decimal.Decimal("12.50"), "weight": 0.1, "paid": True, "tags": ["a", "b"]},
        {"id": 2, "Customer name": "it's", "amount": decimal.Decimal("80.00"), "weight": 2.5, "paid": None, "tags": []},
        {"id": 3, "Customer name": "ann", "amount": None, "weight": None, "paid": False, "tags": None},
    ]
    with engine.begin() as connection:
        connection.execute(table.insert(), rows)
        connection.execute(
            table.insert().values(id=4, **{"Customer name": "dia"}, at=datetime.datetime(2024, 2, 29, 12, 30), blob=b"\x00x", note="n")
        )
    return table


def test_the_entry_point_is_there():
    assert type(sa.create_engine("grouse://").dialect).__name__ == "GrouseDialect"


def test_select(engine, orders):
    name, amount = orders.c["Customer name"], orders.c.amount
    query = sa.select(name, sa.func.sum(amount).label("total"), sa.func.count()).where(orders.c.id < 4).group_by(name).order_by(name)
    with engine.connect() as connection:
        assert connection.execute(query).all() == [("ann", decimal.Decimal("12.50"), 2), ("it's", decimal.Decimal("80.00"), 1)]
        assert connection.execute(sa.select(orders.c.id).order_by(orders.c.id).limit(2).offset(1)).scalars().all() == [2, 3]
        assert connection.execute(sa.select(orders.c.id).where(name == "it's")).scalar_one() == 2
        assert connection.execute(sa.select(orders.c.id).where(orders.c.id.in_([1, 3, 9])).order_by("id")).scalars().all() == [1, 3]
        assert connection.execute(sa.select(orders.c.id).where(orders.c.id.in_([]))).all() == []
        row = connection.execute(sa.select(orders).where(orders.c.id == 4)).one()
        assert (row.at, row.blob, row.note, row.tags) == (datetime.datetime(2024, 2, 29, 12, 30), b"\x00x", "n", None)
        assert connection.execute(sa.select(orders.c.tags).where(orders.c.id == 1)).scalar_one() == ["a", "b"]
        assert connection.execute(sa.text("SELECT :x + 1"), {"x": 4}).scalar_one() == 5


def test_more_of_select(engine, orders):
    other = orders.alias("o2")
    name = orders.c["Customer name"]
    pairs = sa.select(orders.c.id, other.c.id).join(other, sa.and_(name == other.c["Customer name"], orders.c.id < other.c.id))
    large = sa.select(orders.c.id).where(orders.c.amount > 50).cte("large")
    ranked = sa.select(orders.c.id, sa.func.row_number().over(partition_by=name, order_by=orders.c.id.desc()).label("r")).subquery()
    counted = sa.select(sa.literal(1).label("n")).cte("counted", recursive=True)
    counted = counted.union_all(sa.select(counted.c.n + 1).where(counted.c.n < 4))
    with engine.connect() as connection:
        assert connection.execute(pairs).all() == [(1, 3)]
        assert connection.execute(sa.select(large.c.id)).scalars().all() == [2]
        assert connection.execute(sa.select(ranked.c.id).where(ranked.c.r == 1).order_by("id")).scalars().all() == [2, 3, 4]
        assert connection.execute(sa.select(sa.func.sum(counted.c.n))).scalar_one() == 10
        kind = sa.case((orders.c.amount > 50, "large"), else_="small")
        assert sorted(connection.execute(sa.select(kind)).scalars()) == ["large", "small", "small", "small"]
        both = sa.union(sa.select(orders.c.id).where(orders.c.id < 2), sa.select(orders.c.id).where(orders.c.id > 3)).order_by("id")
        assert connection.execute(both).scalars().all() == [1, 4]
        assert connection.execute(sa.select(sa.cast(orders.c.id, sa.String)).where(orders.c.id == 2)).scalar_one() == "2"
        assert connection.execute(sa.select(orders.c.id / 2).where(orders.c.id == 1)).scalar_one() == decimal.Decimal("0.5")
        assert connection.execute(sa.select(orders.c.id // 2).where(orders.c.id == 3)).scalar_one() == 1
        assert connection.execute(sa.select(sa.func.count()).where(orders.c.paid.is_distinct_from(True)).select_from(orders)).scalar_one() == 3


def test_changes(engine, orders):
    with engine.begin() as connection:
        assert connection.execute(orders.update().where(orders.c.id < 3).values(note="low")).rowcount == 2
        assert connection.execute(orders.delete().where(orders.c.id == 3)).rowcount == 1
    with engine.connect() as connection:
        assert connection.execute(sa.select(orders.c.id, orders.c.note).order_by(orders.c.id)).all() == [(1, "low"), (2, "low"), (4, "n")]


def test_constraints_of_tables(engine):
    metadata = sa.MetaData()
    sa.Table(
        "kept",
        metadata,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("code", sa.String, unique=True),
        sa.Column("a", sa.Integer),
        sa.Column("b", sa.Integer),
        sa.UniqueConstraint("b", "a"),
        sa.CheckConstraint("a > 1"),
    )
    metadata.create_all(engine)
    inspector = sa.inspect(engine)
    unique = sorted(one["column_names"] for one in inspector.get_unique_constraints("kept"))
    assert unique == [["b", "a"], ["code"]]
    assert [one["sqltext"] for one in inspector.get_check_constraints("kept")] == ["a > 1"]
    reflected = sa.Table("kept", sa.MetaData(), autoload_with=engine)
    found = {type(one).__name__ for one in reflected.constraints}
    assert found == {"PrimaryKeyConstraint", "UniqueConstraint", "CheckConstraint"}
    metadata.drop_all(engine)


def test_what_tables_are(engine, orders):
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE VIEW cheap AS SELECT id FROM orders WHERE amount < 50"))
    inspector = sa.inspect(engine)
    assert inspector.get_table_names() == ["orders"] and inspector.get_view_names() == ["cheap"]
    assert inspector.has_table("orders") and not inspector.has_table("ORDERS ")
    columns = {column["name"]: column for column in inspector.get_columns("orders")}
    kinds = {name: str(column["type"]) for name, column in columns.items()}
    assert kinds == {
        "id": "INTEGER",
        "Customer name": "VARCHAR",
        "amount": "DECIMAL(10, 2)",
        "weight": "DOUBLE",
        "at": "TIMESTAMP",
        "paid": "BOOLEAN",
        "blob": "BLOB",
        "note": "VARCHAR",
        "tags": "ARRAY",
    }
    assert [name for name, column in columns.items() if not column["nullable"]] == ["id", "Customer name"]
    assert inspector.get_pk_constraint("orders")["constrained_columns"] == ["id"]
    assert inspector.get_foreign_keys("orders") == inspector.get_indexes("orders") == []
    assert inspector.get_unique_constraints("orders") == inspector.get_check_constraints("orders") == []
    assert "amount < 50" in inspector.get_view_definition("cheap")
    assert inspector.default_schema_name == "public" and inspector.get_schema_names() == ["public"]
    with pytest.raises(sa.exc.NoSuchTableError):
        inspector.get_columns("missing")
    with pytest.raises(sa.exc.NoSuchTableError):
        inspector.get_unique_constraints("missing")
    reflected = sa.Table("orders", sa.MetaData(), autoload_with=engine)
    with engine.connect() as connection:
        assert connection.execute(sa.select(sa.func.max(reflected.c.amount))).scalar_one() == decimal.Decimal("80.00")
    orders.metadata.drop_all(engine)
    assert sa.inspect(engine).get_table_names() == []


def test_mapped_classes(engine):
    class Base(orm.DeclarativeBase):
        pass

    class Person(Base):
        __tablename__ = "people"
        id: orm.Mapped[int] = orm.mapped_column(primary_key=True, autoincrement=False)
        name: orm.Mapped[str]
        score: orm.Mapped[float | None]

    Base.metadata.create_all(engine)
    with orm.Session(engine) as session:
        session.add_all([Person(id=1, name="ann", score=1.5), Person(id=2, name="bob")])
        session.commit()
        ann = session.scalars(sa.select(Person).where(Person.name == "ann")).one()
        ann.score = 2.5
        session.commit()
        assert session.scalars(sa.select(Person.score).order_by(Person.id)).all() == [2.5, None]
        session.delete(ann)
        session.commit()
        assert session.scalar(sa.select(sa.func.count()).select_from(Person)) == 1


def test_pandas(engine, orders, tmp_path):
    frame = pandas.read_sql("SELECT id, amount FROM orders WHERE id < 3 ORDER BY id", engine)
    assert frame["id"].tolist() == [1, 2]
    assert pandas.read_sql(sa.select(orders.c.id).order_by(orders.c.id), engine)["id"].tolist() == [1, 2, 3, 4]
    assert pandas.read_sql_table("orders", engine, columns=["id"]).shape == (4, 1)
    pandas.DataFrame({"a": [1, 2], "s": ["x", None], "d": [0.5, 1.5]}).to_sql("made", engine, index=False)
    assert pandas.read_sql("SELECT sum(a) AS a, sum(d) AS d, count(s) AS s FROM made", engine).iloc[0].tolist() == [3, 2, 1]
    (tmp_path / "x.csv").write_text("k,v\na,1\nb,2\n")
    assert pandas.read_sql(f"SELECT k FROM '{tmp_path / 'x.csv'}' ORDER BY v DESC", engine)["k"].tolist() == ["b", "a"]


def test_errors_are_those_of_the_module(engine):
    with engine.connect() as connection:
        with pytest.raises(sa.exc.ProgrammingError) as caught:
            connection.execute(sa.text("SELECT missing FROM numbers(1)"))
        assert isinstance(caught.value.orig, grouse.UnknownColumnError)
        assert connection.execute(sa.text("SELECT 1")).scalar_one() == 1
    with pytest.raises(sa.exc.ArgumentError, match="no file of a database"):
        sa.create_engine("grouse:///x.db").connect()


def test_a_rollback_takes_nothing_back(engine, orders):
    assert engine.connect().get_isolation_level() == "AUTOCOMMIT"
    with engine.connect() as connection:
        connection.execute(orders.delete())
        connection.rollback()
        assert connection.execute(sa.select(sa.func.count()).select_from(orders)).scalar_one() == 0
        with pytest.raises(sa.exc.NotSupportedError):
            connection.begin_nested()


def test_offset_alone(engine, orders):
    ids = sa.select(orders.c.id).order_by(orders.c.id)
    with engine.connect() as connection:
        assert connection.execute(ids.offset(1)).scalars().all() == [2, 3, 4]
        assert connection.execute(ids.limit(3)).scalars().all() == [1, 2, 3]
        assert connection.execute(ids.limit(1).offset(2)).scalars().all() == [3]
        assert connection.execute(sa.select(sa.func.count()).select_from(ids.offset(3).subquery())).scalar_one() == 1


def test_intervals(engine):
    span = datetime.timedelta(days=-2, seconds=5, microseconds=7)
    made = sa.Table("spans", sa.MetaData(), sa.Column("id", sa.Integer), sa.Column("span", sa.Interval))
    made.metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(made.insert(), [{"id": 1, "span": span}, {"id": 2, "span": None}])
        table = sa.Table("spans", sa.MetaData(), autoload_with=connection)
        assert str(table.c.span.type) == "INTERVAL" and table.c.span.type.python_type is datetime.timedelta
        assert isinstance(table.c.span.type.as_generic(), sa.Interval)
        connection.execute(table.insert().values(id=3, span=datetime.timedelta(hours=1)))
        assert connection.execute(sa.select(table.c.span).order_by(table.c.id)).scalars().all() == [span, None, datetime.timedelta(hours=1)]
        assert connection.execute(sa.select(table.c.id).where(table.c.span == span)).scalars().all() == [1]
        assert connection.execute(sa.text("SELECT id FROM spans WHERE span = INTERVAL '1 hour'")).scalars().all() == [3]
        assert connection.execute(sa.select(sa.literal(span, literal_execute=True))).scalar_one() == span
        day = sa.literal(datetime.datetime(2024, 1, 2))
        assert connection.execute(sa.select(day - sa.literal(datetime.datetime(2024, 1, 1)))).scalar_one() == datetime.timedelta(days=1)


WORDS = ["key", "pivot", "unpivot", "lateral", "struct", "describe", "summarize", "qualify", "index", "unnest", "desc", "unique"]


@pytest.mark.parametrize("word", WORDS)
def test_words_of_the_language_are_names(engine, word):
    table = sa.Table(word, sa.MetaData(), sa.Column(word, sa.Integer), sa.Column("other", sa.Integer))
    table.metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(table.insert(), [{word: 1, "other": 2}, {word: 3, "other": 4}])
        column = table.c[word]
        assert connection.execute(sa.select(column.label(word)).where(column > 1).group_by(column).order_by(column)).all() == [(3,)]
        assert connection.execute(sa.select(sa.Table(word, sa.MetaData(), autoload_with=connection)).order_by("other")).all() == [(1, 2), (3, 4)]


def test_schemas(engine):
    with engine.begin() as connection:
        connection.execute(sa.schema.CreateSchema("sales"))
        connection.execute(sa.text("CREATE TABLE sales.items AS SELECT 1 AS a"))
    inspector = sa.inspect(engine)
    assert inspector.get_schema_names() == ["public", "sales"]
    assert inspector.get_table_names("sales") == ["items"] and inspector.get_table_names() == []
    assert [column["name"] for column in inspector.get_columns("items", "sales")] == ["a"]
