"""Rows that nothing groups, joins or sorts come in the order of their files and tables, whatever the number of threads."""

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import grouse

ROWS = 400_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("order")
    numbers = pa.array(range(ROWS), pa.int64())
    text = pa.array([f"row number {n:07d}, of some length" for n in range(ROWS)])
    table = pa.table({"n": numbers, "s": text})
    pq.write_table(table, folder / "groups.parquet", row_group_size=30_000)
    pq.write_table(table, folder / "pages.parquet", write_page_index=True, data_page_size=20_000)
    pyarrow.csv.write_csv(table, folder / "table.csv")
    pyarrow.feather.write_feather(table, folder / "table.arrow", compression="uncompressed", chunksize=10_000)
    with open(folder / "table.ndjson", "w") as lines:
        lines.writelines(f'{{"n":{n},"s":"row number {n:07d}, of some length"}}\n' for n in range(ROWS))
    (folder / "many").mkdir()
    for file in range(25):
        pq.write_table(table.slice(file * ROWS // 25, ROWS // 25), folder / "many" / f"{file:02}.parquet", row_group_size=5_000)
    return folder


FILES = ["groups.parquet", "pages.parquet", "table.csv", "table.arrow", "table.ndjson", "many/*.parquet"]


@pytest.fixture(params=[1, 2, 8])
def con(request):
    return grouse.connect(threads=request.param)


def column(con, sql):
    return con.sql(sql).fetchnumpy()["n"].tolist()


@pytest.mark.parametrize("file", FILES)
def test_rows_of_files_come_in_their_order(con, folder, file):
    source = f"'{folder / file}'"
    assert column(con, f"SELECT n FROM {source}") == list(range(ROWS))
    assert column(con, f"SELECT n FROM {source} WHERE s LIKE '%7,%'") == list(range(7, ROWS, 10))
    assert column(con, f"SELECT n FROM {source} LIMIT 5") == [0, 1, 2, 3, 4]
    assert column(con, f"SELECT n FROM {source} WHERE n > 150000 LIMIT 3 OFFSET 2") == [150003, 150004, 150005]
    assert column(con, f"SELECT n, row_number() OVER () - 1 AS r FROM {source} QUALIFY n = r") == list(range(ROWS))


@pytest.mark.parametrize("file", FILES)
def test_limits_within_keep_the_order(con, folder, file):
    source = f"'{folder / file}'"
    both = f"SELECT n FROM {source} UNION ALL SELECT -n FROM {source}"
    assert column(con, f"{both} LIMIT 3") == [0, 1, 2]
    assert column(con, f"{both} LIMIT 3 OFFSET {ROWS - 1}") == [ROWS - 1, 0, -1]
    limited = f"SELECT n FROM {source} LIMIT 300000 OFFSET 50000"
    assert column(con, f"SELECT n FROM ({limited}) WHERE n % 3 = 0 LIMIT 2 OFFSET 40000") == [170001, 170004]
    assert column(con, f"SELECT unnest([n, n + 1]) AS n FROM {source} LIMIT 4") == [0, 1, 1, 2]


def test_rows_of_tables_come_in_their_order(con):
    sizes = [1, 20_000, 3, 0, 50_000, 7, 100_000, 2]
    chunks, start = [], 0
    for size in sizes:
        chunks.append(pa.array(range(start, start + size), pa.int64()))
        start += size
    held = pa.table({"n": pa.chunked_array(chunks)})
    con.register("held", held)
    assert column(con, "SELECT n FROM held") == list(range(start))
    con.execute("CREATE TABLE kept AS SELECT n FROM held WHERE n % 3 <> 0")
    con.execute("INSERT INTO kept SELECT n FROM held WHERE n % 3 = 0")
    expected = [n for n in range(start) if n % 3] + list(range(0, start, 3))
    assert column(con, "SELECT n FROM kept") == expected
    assert column(con, "SELECT n FROM kept WHERE n % 7 = 0 LIMIT 4") == [n for n in expected if n % 7 == 0][:4]
    assert column(con, "SELECT n FROM kept UNION ALL SELECT n FROM held") == expected + list(range(start))
    limited = "SELECT n FROM kept WHERE n % 7 = 0 LIMIT 4"
    assert len(column(con, f"({limited}) UNION ALL ({limited})")) == 8
    assert column(con, f"SELECT n FROM ({limited}) WHERE n > 0") == [n for n in expected if n % 7 == 0][:4]
    assert column(con, "SELECT number::BIGINT AS n FROM numbers(1000000)") == list(range(1_000_000))


def test_files_are_written_in_the_order_of_their_rows(con, folder, tmp_path):
    con.sql(f"COPY (SELECT n FROM '{folder / 'groups.parquet'}') TO '{tmp_path / 'copy.parquet'}'").fetchall()
    assert pq.read_table(tmp_path / "copy.parquet")["n"].to_pylist() == list(range(ROWS))


def test_an_error_comes_after_the_rows_before_it(con, folder):
    rows = con.sql(f"SELECT 10 // (n - 200000) AS q FROM '{folder / 'groups.parquet'}'").fetch_record_batch()
    read = 0
    with pytest.raises((grouse.Error, pa.ArrowInvalid), match="zero"):
        for batch in rows:
            read += batch.num_rows
    assert read <= 200_000


def test_rows_wait_within_the_memory_limit(folder):
    con = grouse.connect(threads=4, memory_limit="80MB")
    reader = con.sql(f"SELECT n, repeat(s, 30) AS s FROM '{folder / 'groups.parquet'}'").fetch_record_batch()
    start = 0
    for batch in reader:
        assert batch["n"][0].as_py() == start
        start += batch.num_rows
    assert start == ROWS


def test_the_order_may_be_given_up(folder):
    con = grouse.connect(threads=4)
    query = f"SELECT n FROM '{folder / 'groups.parquet'}'"
    assert "OrderedCoalesceExec" in con.sql(query).explain()
    con.execute("SET preserve_insertion_order = 'off'")
    assert "OrderedCoalesceExec" not in con.sql(query).explain()
    assert sorted(column(con, query)) == list(range(ROWS))
    con.execute("RESET preserve_insertion_order")
    assert "OrderedCoalesceExec" in con.sql(query).explain()
