"""Tables through Python's driver manager: ingestion, and what the database says of its tables."""

from __future__ import annotations

import pyarrow as pa
import pytest
from adbc_driver_manager import AdbcStatusCode, dbapi

PEOPLE = pa.table({"name": ["Ada", None, "Grace"], "born": pa.array([1815, 1900, 1906], pa.int32())})


def rows(cursor: dbapi.Cursor, sql: str) -> list[tuple]:
    cursor.execute(sql)
    return cursor.fetchall()


def test_create(cur):
    assert cur.adbc_ingest("people", PEOPLE) == 3
    assert rows(cur, "SELECT * FROM people ORDER BY born") == [("Ada", 1815), (None, 1900), ("Grace", 1906)]
    with pytest.raises(dbapi.ProgrammingError, match="already exists") as failure:
        cur.adbc_ingest("people", PEOPLE)
    assert failure.value.status_code == AdbcStatusCode.ALREADY_EXISTS
    assert failure.value.sqlstate == "42P07"
    assert rows(cur, "SELECT count(*) FROM people") == [(3,)]


def test_append_finds_columns_by_name(cur):
    with pytest.raises(dbapi.ProgrammingError, match="people") as failure:
        cur.adbc_ingest("people", PEOPLE, mode="append")
    assert failure.value.status_code == AdbcStatusCode.NOT_FOUND
    cur.adbc_ingest("people", PEOPLE)
    turned = PEOPLE.select(["born", "name"])
    assert cur.adbc_ingest("people", turned, mode="append") == 3
    assert cur.adbc_ingest("people", PEOPLE.select(["born"]), mode="append") == 3
    assert rows(cur, "SELECT count(*), count(name), sum(born) FROM people") == [(9, 4, 3 * 5621)]
    with pytest.raises(dbapi.ProgrammingError, match='no column "age"') as failure:
        cur.adbc_ingest("people", pa.table({"age": [1]}), mode="append")
    assert failure.value.status_code == AdbcStatusCode.ALREADY_EXISTS


def test_replace_and_create_append(cur):
    for mode, expected in [("create_append", 3), ("create_append", 6), ("replace", 3), ("replace", 3)]:
        assert cur.adbc_ingest("people", PEOPLE, mode=mode) == 3
        assert rows(cur, "SELECT count(*) FROM people") == [(expected,)]
    cur.adbc_ingest("people", pa.table({"other": [1.5]}), mode="replace")
    assert rows(cur, "SELECT * FROM people") == [(1.5,)]


def test_names_letter_for_letter(cur):
    odd = pa.table({'a "b"': [1], "Über": [2], "SELECT": [3]})
    assert cur.adbc_ingest('T "1"', odd) == 1
    assert rows(cur, '''SELECT "a ""b""", "Über", "SELECT" FROM "T ""1"""''') == [(1, 2, 3)]
    assert cur.adbc_ingest('T "1"', odd, mode="append") == 1


def test_schema_and_catalog_of_the_target(cur):
    cur.adbc_ingest("t", PEOPLE, db_schema_name="public")
    cur.adbc_ingest("t", PEOPLE, mode="append", catalog_name="datafusion", db_schema_name="public")
    assert rows(cur, "SELECT count(*) FROM t") == [(6,)]
    with pytest.raises(dbapi.NotSupportedError):
        cur.adbc_ingest("t", PEOPLE, temporary=True)


def test_a_stream(cur):
    """It is pulled batch by batch; 4 million rows, each once."""
    schema = pa.schema([("n", pa.int64())])

    def batches():
        for part in range(40):
            yield pa.RecordBatch.from_arrays([pa.array(range(part * 100_000, (part + 1) * 100_000))], schema=schema)

    assert cur.adbc_ingest("numbers_in", pa.RecordBatchReader.from_batches(schema, batches())) == 4_000_000
    assert rows(cur, "SELECT count(DISTINCT n), max(n) FROM numbers_in") == [(4_000_000, 3_999_999)]


def test_a_stream_that_fails_leaves_no_table(cur):
    schema = pa.schema([("n", pa.int64())])

    def batches():
        yield pa.RecordBatch.from_pydict({"n": [1]}, schema)
        raise ValueError("the source is broken")

    with pytest.raises(dbapi.Error, match="the source is broken"):
        cur.adbc_ingest("half", pa.RecordBatchReader.from_batches(schema, batches()))
    with pytest.raises(dbapi.ProgrammingError, match="'half' does not exist"):
        cur.execute("SELECT * FROM half")


def test_a_result_of_the_same_database(con):
    """The rows of one statement go into a table while it runs."""
    with con.cursor() as source, con.cursor() as target:
        source.execute("SELECT number AS n FROM numbers(1000000)")
        assert target.adbc_ingest("copy", source.fetch_record_batch()) == 1_000_000
        assert rows(target, "SELECT sum(n) FROM copy") == [(499_999_500_000,)]


def test_dictionaries_and_nested_values(cur):
    data = pa.table({
        "d": pa.array(["x", None, "y", "x"]).dictionary_encode(),
        "l": [[1, 2], None, [], [3]],
        "s": [{"a": 1}, {"a": 2}, None, {"a": 4}],
    })
    assert cur.adbc_ingest("t", data) == 4
    assert rows(cur, "SELECT d, count(*) FROM t GROUP BY d ORDER BY d NULLS FIRST") == [(None, 1), ("x", 2), ("y", 1)]
    assert rows(cur, "SELECT sum(len(l)), sum(s.a) FROM t") == [(3, 7)]


def test_text_that_is_none_is_refused(cur):
    broken = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])
    with pytest.raises(dbapi.Error, match="not UTF-8"):
        cur.adbc_ingest("t", pa.table({"a": broken}))


@pytest.fixture
def filled(con: dbapi.Connection) -> dbapi.Connection:
    with con.cursor() as cursor:
        cursor.execute("CREATE TABLE orders (id BIGINT PRIMARY KEY, item VARCHAR NOT NULL, price DECIMAL(9, 2))")
        cursor.execute("CREATE TABLE other_orders (id INTEGER)")
        cursor.execute("CREATE VIEW cheap AS SELECT item FROM orders WHERE price < 5")
    return con


def objects(con: dbapi.Connection, **filters) -> list[dict]:
    return con.adbc_get_objects(**filters).read_all().to_pylist()


def tables(con: dbapi.Connection, **filters) -> dict[str, dict]:
    found = objects(con, db_schema_filter="public", **filters)
    return {table["table_name"]: table for schema in found[0]["catalog_db_schemas"] for table in schema["db_schema_tables"]}


def test_depths(filled):
    assert objects(filled, depth="catalogs") == [{"catalog_name": "datafusion", "catalog_db_schemas": None}]
    [catalog] = objects(filled, depth="db_schemas")
    schemas = {schema["db_schema_name"]: schema["db_schema_tables"] for schema in catalog["catalog_db_schemas"]}
    assert schemas["public"] is None
    found = tables(filled, depth="tables")
    assert {name: table["table_type"] for name, table in found.items()} == {
        "cheap": "VIEW", "orders": "BASE TABLE", "other_orders": "BASE TABLE",
    }
    assert found["orders"]["table_columns"] is None


def test_columns(filled):
    orders = tables(filled, table_name_filter="orders")["orders"]
    known = ["column_name", "ordinal_position", "xdbc_type_name", "xdbc_nullable", "xdbc_is_nullable"]
    assert [tuple(column[key] for key in known) for column in orders["table_columns"]] == [
        ("id", 1, "BIGINT", 0, "NO"), ("item", 2, "VARCHAR", 0, "NO"), ("price", 3, "DECIMAL(9,2)", 1, "YES"),
    ]
    [key] = orders["table_constraints"]
    assert (key["constraint_type"], key["constraint_column_names"]) == ("PRIMARY KEY", ["id"])


def test_filters(filled):
    assert set(tables(filled, table_name_filter="%orders")) == {"orders", "other_orders"}
    assert set(tables(filled, table_name_filter="order_")) == {"orders"}
    assert set(tables(filled, table_types_filter=["VIEW"])) == {"cheap"}
    columns = tables(filled, column_name_filter="i%")["orders"]["table_columns"]
    assert [column["column_name"] for column in columns] == ["id", "item"]
    assert objects(filled, catalog_filter="nowhere") == []
    assert objects(filled, db_schema_filter="nowhere")[0]["catalog_db_schemas"] == []


def test_table_schema(filled):
    schema = filled.adbc_get_table_schema("orders")
    assert schema.names == ["id", "item", "price"] and schema.field("price").type == pa.decimal128(9, 2)
    assert filled.adbc_get_table_schema("orders", catalog_filter="datafusion", db_schema_filter="public") == schema
    with pytest.raises(dbapi.ProgrammingError) as failure:
        filled.adbc_get_table_schema("nowhere")
    assert failure.value.status_code == AdbcStatusCode.NOT_FOUND


def test_table_types_and_info(filled):
    assert filled.adbc_get_table_types() == ["BASE TABLE", "VIEW", "LOCAL TEMPORARY"]
    info = filled.adbc_get_info()
    assert info["vendor_name"] == "grouse" and info["driver_name"] == "ADBC driver of grouse"
    assert info["driver_adbc_version"] == 1_001_000
    assert filled.adbc_current_catalog == "datafusion" and filled.adbc_current_db_schema == "public"
