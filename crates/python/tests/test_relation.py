"""Relations: rows, frames, streams, text, and what runs when."""

from __future__ import annotations

import json
import subprocess
import sys

import polars
import pyarrow
import pytest

import grouse


def test_sql_runs_on_a_default_connection():
    assert grouse.sql("SELECT 1 AS one, 'x' AS text").fetchall() == [(1, "x")]


def test_group_by():
    rows = grouse.sql("SELECT number % 3 AS k, count(*) AS n, sum(number) AS s FROM numbers(10) GROUP BY k ORDER BY k")
    assert rows.columns == ["k", "n", "s"]
    assert rows.fetchall() == [(0, 4, 18), (1, 3, 12), (2, 3, 15)]


def test_columns_and_types_are_known_before_it_runs(con):
    relation = con.sql("SELECT number AS a, 'x' AS b, [1.5] AS c FROM numbers(100000000000)")
    assert relation.columns == ["a", "b", "c"]
    assert relation.types == ["uint64", "varchar", "list(double)"]


def test_fetch_methods_share_one_run(con):
    relation = con.sql("SELECT number FROM numbers(10) ORDER BY number")
    assert relation.fetchone() == (0,)
    assert relation.fetchmany(3) == [(1,), (2,), (3,)]
    assert relation.fetchmany() == [(4,)]
    assert relation.fetchall() == [(5,), (6,), (7,), (8,), (9,)]
    assert relation.fetchone() == (0,), "after fetchall the next fetch starts over"


def test_fetch_after_the_last_row(con):
    relation = con.sql("SELECT number FROM numbers(2) ORDER BY number")
    assert [relation.fetchone() for _ in range(4)] == [(0,), (1,), None, None]
    assert relation.fetchmany(5) == []
    assert relation.fetchall() == []
    assert relation.fetchall() == [(0,), (1,)]


def test_fetchmany_over_batches(con):
    relation = con.sql("SELECT number FROM numbers(50000) ORDER BY number")
    rows, sizes = [], []
    while part := relation.fetchmany(7001):
        rows += part
        sizes.append(len(part))
    assert rows == [(n,) for n in range(50000)]
    assert sizes == [7001] * 7 + [993]


def test_iteration_is_a_run_of_its_own(con):
    relation = con.sql("SELECT number FROM numbers(3) ORDER BY number")
    first, second = iter(relation), iter(relation)
    assert [next(first), next(second), next(first)] == [(0,), (0,), (1,)]
    assert list(relation) == [(0,), (1,), (2,)]


def test_to_batches_streams(con):
    # Far more rows than memory: only a stream gives the first batch.
    batches = con.sql("SELECT number FROM numbers(100000000000)").to_batches()
    first = next(batches)
    assert isinstance(first, pyarrow.RecordBatch)
    assert 0 < first.num_rows <= 1 << 20
    batches.close()
    assert list(batches) == []


def test_batches_end_and_cover_all_rows(con):
    with con.sql("SELECT number FROM numbers(100000)").to_batches() as batches:
        rows = [row for batch in batches for row in batch.column(0).to_pylist()]
    assert sorted(rows) == list(range(100000))


def test_c_stream_runs_anew_each_time(con):
    relation = con.sql("SELECT number FROM numbers(1000)")
    for _ in range(2):
        table = pyarrow.table(relation)
        assert table.num_rows == 1000
        assert table.schema.field("number").type == pyarrow.uint64()


def test_c_stream_casts_to_the_requested_schema(con):
    wanted = pyarrow.schema([("number", pyarrow.int32())])
    table = pyarrow.RecordBatchReader.from_stream(con.sql("SELECT number FROM numbers(3)"), schema=wanted).read_all()
    assert table.schema.types == [pyarrow.int32()]


def test_c_schema_does_not_run_the_query(con, endless):
    schema = pyarrow.schema(con.sql(endless))
    assert schema.names == ["n"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 AS x UNION ALL SELECT 2.5",
        "SELECT CAST(1 AS INT) AS x UNION ALL SELECT CAST(3000000000 AS BIGINT)",
        "SELECT NULL AS x UNION ALL SELECT 'text'",
        "SELECT DATE '2024-01-01' AS x UNION ALL SELECT TIMESTAMP '2024-01-02 03:04:05'",
    ],
)
def test_schema_of_a_union_of_unlike_types_is_that_of_its_batches(con, text):
    relation = con.sql(text)
    table = pyarrow.table(relation)  # pyarrow would read garbage if the schema were another than the batches'
    assert table.schema.equals(pyarrow.schema(relation))
    for batch in relation.to_batches():
        assert batch.schema.types == table.schema.types
    table.validate(full=True)
    key = lambda value: str(value)  # noqa: E731
    assert sorted(table.column(0).to_pylist(), key=key) == sorted([row[0] for row in relation], key=key)


def test_arrow_of_an_empty_result_keeps_the_schema(con):
    table = con.sql("SELECT number, 'x' AS t FROM numbers(10) WHERE number > 100").arrow()
    assert table.num_rows == 0
    assert table.schema.names == ["number", "t"]
    assert con.sql("SELECT 1 AS x").to_arrow_table().to_pydict() == {"x": [1]}
    assert isinstance(table, pyarrow.Table)


def test_pl(con):
    frame = con.sql("SELECT number AS n, CAST(number AS VARCHAR) AS t FROM numbers(20000) ORDER BY n").pl()
    assert isinstance(frame, polars.DataFrame)
    assert frame.shape == (20000, 2)
    assert frame.row(12345) == (12345, "12345")


def test_ddl_runs_at_once_and_once(con):
    made = con.sql("CREATE TABLE t AS SELECT number AS n FROM numbers(5)")
    assert con.tables() == ["t"]
    con.sql("INSERT INTO t VALUES (5), (6)")
    assert con.sql("SELECT count(*) FROM t").fetchall() == [(7,)]
    inserted = con.sql("INSERT INTO t VALUES (7)")
    assert inserted.fetchall() == inserted.fetchall() == [(1,)]
    assert made.fetchall() == []
    assert con.sql("SELECT count(*) FROM t").fetchall() == [(8,)]


@pytest.mark.parametrize(
    "change", ["UPDATE t SET n = n + 1", "DELETE FROM t WHERE n = (SELECT min(n) FROM t)", "INSERT INTO t SELECT n + 9 FROM t"]
)
def test_changes_run_once_however_often_they_are_fetched(con, change):
    """UPDATE and DELETE were planned, and so run, again by each fetch but the first."""
    con.sql("CREATE TABLE t AS SELECT number AS n FROM numbers(3)")
    changed = con.sql(change)
    after = con.sql("SELECT n FROM t ORDER BY n").fetchall()
    assert changed.fetchall() == changed.fetchall() == list(changed)
    assert con.sql("SELECT n FROM t ORDER BY n").fetchall() == after
    con.sql(f"PREPARE p AS {change}")
    executed = con.sql("EXECUTE p")
    after = con.sql("SELECT n FROM t ORDER BY n").fetchall()
    assert executed.fetchall() == executed.fetchall()
    assert con.sql("SELECT n FROM t ORDER BY n").fetchall() == after


def test_copy_runs_at_once(con, tmp_path):
    target = tmp_path / "out.parquet"
    con.sql(f"COPY (SELECT number FROM numbers(10)) TO '{target}'")
    assert con.sql(f"SELECT sum(number) FROM '{target}'").fetchall() == [(45,)]


def test_a_script_gives_its_last_result(con):
    assert con.sql("CREATE VIEW v AS SELECT 1 AS x; SET batch_size = 100; SELECT x + 1 FROM v; ").fetchall() == [(2,)]


def test_params(con):
    assert con.sql("SELECT $1 + $2", [1, 2]).fetchall() == [(3,)]
    assert con.sql("SELECT ? || ?", ("a", "b")).fetchall() == [("ab",)]
    assert con.sql("SELECT $a || $b || $a", {"a": "x", "b": "y"}).fetchall() == [("xyx",)]
    assert con.sql("SELECT ? || ?", (None, "x")).fetchall() == [(None,)]
    assert con.sql("SELECT sum(?) FROM numbers(?)", (1.5, 4)).fetchall() == [(6.0,)]
    assert con.sql("SELECT ? || ?", ("a", "b")).columns == ["? || ?"]
    assert "ab" in con.sql("SELECT number || ? AS x FROM numbers(3)", ["ab"]).explain()
    assert con.sql("SELECT count(*) FROM numbers(100) WHERE number < $limit", {"limit": 7}).fetchall() == [(7,)]
    assert grouse.sql("SELECT $1", [True]).fetchall() == [(True,)]


def test_params_are_kept_for_every_run(con):
    relation = con.sql("SELECT number FROM numbers(10) WHERE number = ?", [4])
    assert relation.fetchall() == relation.fetchall() == list(relation) == [(4,)]


def test_explain(con):
    relation = con.sql("SELECT number % 3 AS k, count(*) FROM numbers(100) GROUP BY k")
    assert "numbers" in relation.explain().lower()
    analyzed = relation.explain(analyze=True)
    assert "output_rows=3" in analyzed.replace(" ", "")


def test_repr_is_a_table_of_the_first_rows(con):
    lines = repr(con.sql("SELECT number AS id, 'some text' AS t, NULL AS nothing FROM numbers(3) ORDER BY id")).splitlines()
    assert lines[1].split("│")[1:4] == ["     id ", " t         ", " nothing "]
    assert lines[2].split("│")[1:4] == [" uint64 ", " varchar   ", " null    "]
    assert lines[4].split("│")[1:4] == ["      0 ", " some text ", " NULL    "]
    assert lines[-1] == "3 rows"


def test_repr_of_a_large_result_stops_early(con):
    shown = repr(con.sql("SELECT number FROM numbers(100000000000)"))
    assert shown.splitlines()[-1] == "first 20 rows"


def test_repr_fits_the_width(con, capsys):
    relation = con.sql("SELECT " + ", ".join(f"'{'x' * 50}' AS column_{n}" for n in range(30)))
    relation.show(max_width=80)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert "columns shown" in lines[-1]


def test_show_more_rows(con, capsys):
    con.sql("SELECT number FROM numbers(100) ORDER BY number").show(max_rows=30)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "first 30 rows"
    assert lines[33].strip("│ ") == "29"


def test_html_is_escaped(con):
    html = con.sql("SELECT '<script>alert(1)</script>' AS \"<b>\"")._repr_html_()
    assert "<script>" not in html and "&lt;script&gt;" in html and "&lt;b&gt;" in html


def test_a_relation_closes(con):
    with con.sql("SELECT 1") as relation:
        assert relation.fetchone() == (1,)
    with pytest.raises(grouse.InvalidError, match="closed"):
        relation.fetchall()
    assert repr(relation) == "<grouse.Relation, closed>"


def test_a_connection_closes():
    with grouse.connect(threads=1) as connection:
        relation = connection.sql("SELECT 1")
    for use in (relation.fetchall, lambda: connection.sql("SELECT 1"), connection.tables):
        with pytest.raises(grouse.InvalidError, match="closed"):
            use()
    connection.close()
    assert "closed" in repr(connection)


def test_the_default_connection_survives_its_closing():
    grouse.default_connection().close()
    assert grouse.sql("SELECT 2").fetchall() == [(2,)]


def test_duplicate_and_odd_column_names(con):
    relation = con.sql('SELECT 1 AS "a b", 2 AS "Ä", 3 AS ""')
    assert relation.columns == ["a b", "Ä", ""]
    assert relation.fetchall() == [(1, 2, 3)]


def test_import_needs_no_other_package():
    code = (
        "import sys\n"
        "for name in ('pyarrow', 'pandas', 'polars', 'numpy'): sys.modules[name] = None\n"
        "import grouse\n"
        "relation = grouse.sql('SELECT number AS n, [number] AS l FROM numbers(3) ORDER BY n')\n"
        "assert relation.fetchall() == [(0, [0]), (1, [1]), (2, [2])]\n"
        "batch = next(relation.to_batches())\n"
        "assert type(batch) is grouse.Batch and batch.num_rows == len(batch) == 3 and batch.columns == ['n', 'l'], batch\n"
        "assert batch.rows() == relation.fetchall()\n"
        "print(relation)\n"
        "con = grouse.connect(); con.register('again', relation); con.register('b', batch)\n"
        "assert con.sql('SELECT count(*) FROM again JOIN b USING (n)').fetchall() == [(3,)]\n"
        "for need in ('df', 'pl', 'arrow'):\n"
        "    try: getattr(relation, need)()\n"
        "    except ImportError as error: assert 'pip install' in str(error), error\n"
        "    else: raise AssertionError(need)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=45)


def test_batches_have_the_schema_of_the_result(con, tmp_path):
    """A scan says of a folder's column that it has no NULL where a file's value is none; pyarrow takes one schema."""
    con.sql(f"COPY (SELECT 1 AS a, 2 AS p) TO '{tmp_path}/h' (FORMAT csv, PARTITION_BY (p))").fetchall()
    assert con.sql(f"SELECT a, p FROM '{tmp_path}/h'").arrow().to_pylist() == [{"a": 1, "p": 2}]


def test_a_profile_tells_what_workers_did(con, tmp_path):
    relation = con.sql("SELECT number % 10 AS k, count(*) AS n FROM numbers(100000) GROUP BY k")
    profile = relation.profile()
    assert profile.seconds > 0
    assert "wall time" in profile.summary() and repr(profile) == profile.summary()
    trace = json.loads(profile.json())
    rows = [event["args"]["rows"] for event in trace["traceEvents"] if event["name"] == "scan"]
    assert sum(rows) == 100_000
    profile.save(tmp_path / "p.html")
    assert (tmp_path / "p.html").read_text() == profile.html()
    assert "<iframe" in profile._repr_html_()
    with pytest.raises(grouse.InvalidError, match=r"p\.svg"):
        profile.save(tmp_path / "p.svg")
    with pytest.raises(grouse.Error, match="division by zero"):
        con.sql("SELECT 1 // (x - x) FROM (VALUES (1)) t(x) GROUP BY x").profile()


@pytest.mark.parametrize(
    "statement",
    ["INSERT INTO t VALUES (5)", "UPDATE t SET n = n + 1", "DELETE FROM t WHERE n IN (SELECT 1)", "CREATE TABLE u AS SELECT 1"],
)
def test_what_has_run_is_not_run_again_to_be_looked_at(con, statement):
    con.execute("CREATE TABLE t AS SELECT number AS n FROM numbers(4)")
    changed = con.sql(statement)
    rows = con.sql("SELECT n FROM t ORDER BY n").fetchall()
    for look in (changed.profile, lambda: changed.explain(analyze=True)):
        with pytest.raises(grouse.InvalidError, match="would run it again"):
            look()
    assert con.sql("SELECT n FROM t ORDER BY n").fetchall() == rows
