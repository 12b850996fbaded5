"""Statements on a cluster of child processes: the same rows as in one process, and a plan that says where they come from."""

from __future__ import annotations

import math
import re
import subprocess
from pathlib import Path

import pytest
from cluster_processes import explained

import grouse

P, C = "FROM '{tables}/rows.*.parquet'", "FROM '{tables}/rows.csv'"
GROUPED = [
    f"SELECT few, count(*) AS n {P} GROUP BY few",
    f"SELECT few, count(name) AS n, sum(each) AS s, avg(x) AS a, min(name) AS lo, max(day) AS hi {P} GROUP BY few",
    f"SELECT many, count(*) AS n, sum(x) AS s {P} GROUP BY many",
    f"SELECT name, count(*) AS n {P} GROUP BY name",
    f"SELECT name, few, max(each) AS hi {P} GROUP BY name, few",
    f"SELECT day, sum(d) AS s, avg(d) AS a {P} GROUP BY day",
    f"SELECT count(*) AS n, sum(each) AS s, min(x) AS lo {P}",
    f"SELECT count(*) AS n, sum(each) AS s, min(x) AS lo {P} WHERE each < 0",
    f"SELECT few, count(*) AS n {P} WHERE name LIKE '%1%' GROUP BY few",
    f"SELECT few, count(DISTINCT many) AS n {P} GROUP BY few",
    f"SELECT few, count(DISTINCT name) AS n, sum(x) AS s {P} GROUP BY few",
    f"SELECT count(DISTINCT many) AS n {P}",
    f"SELECT few, stddev(x) AS s, var_pop(x) AS v {P} GROUP BY few",
    f"SELECT few, median(x) AS m {P} GROUP BY few",
    f"SELECT few, min_by(name, each) AS lo, max_by(name, each) AS hi {P} GROUP BY few",
    f"SELECT few, bool_and(each >= 0) AS yes, bool_or(name IS NULL) AS some {P} GROUP BY few",
    f"SELECT few, array_agg(each ORDER BY each)[1:3] AS first {P} GROUP BY few",
    f"SELECT many, count(*) AS n {P} GROUP BY many HAVING count(*) > 16",
    f"SELECT many, count(*) AS n {P} GROUP BY many ORDER BY n DESC, many LIMIT 10",
    f"SELECT name, sum(x) AS s {P} GROUP BY name ORDER BY s DESC, name LIMIT 5",
    f"SELECT few, day, count(*) AS n {P} GROUP BY ROLLUP (few, day)",
    f"SELECT few, day, sum(x) AS s {P} GROUP BY GROUPING SETS ((few), (day), ())",
    f"SELECT DISTINCT name, few {P}",
    f"SELECT few % 2 AS odd, sum(each * 2) AS s {P} GROUP BY 1",
    f"SELECT n, count(*) AS c FROM (SELECT many, count(*) AS n {P} GROUP BY many) GROUP BY n",
    f"SELECT kind, count(*) AS n {P} JOIN '{{tables}}/names.parquet' USING (few) GROUP BY kind",
    f"SELECT few, count(*) AS n FROM (SELECT few {P} UNION ALL SELECT few {C}) GROUP BY few",
    f"SELECT few, count(*) AS n, sum(each) AS s {C} GROUP BY few",
    f"SELECT name, avg(x) AS a {C} GROUP BY name",
    f"SELECT few, sum(each) FILTER (WHERE name IS NOT NULL) AS s {P} GROUP BY few",
]
# Joins, windows and limits: what several tasks have to give once, or what has to see all rows.
N = "FROM '{tables}/names.parquet'"
OTHERS = [
    f"SELECT kind, count(*) AS n, count(each) AS m FROM (SELECT * {N}) a LEFT JOIN (SELECT each {P}) b ON b.each < a.few GROUP BY kind",
    f"SELECT count(*) AS n FROM (SELECT * {N}) a WHERE NOT EXISTS (SELECT 1 FROM (SELECT each {P}) b WHERE b.each < a.few)",
    f"SELECT count(*) AS n FROM (SELECT * {N}) a WHERE EXISTS (SELECT 1 FROM (SELECT each {P}) b WHERE b.each < a.few)",
    f"SELECT count(*) AS n, count(kind) AS k FROM (SELECT * {N}) a FULL JOIN (SELECT few AS f {P} WHERE few > 2 AND each < 1000) b ON a.few = b.f",
    f"SELECT kind, count(b.few) AS n FROM (SELECT * {N}) a LEFT JOIN (SELECT few, each {P} WHERE few > 2) b ON a.few = b.few GROUP BY kind",
    f"SELECT count(*) AS n {P} WHERE few NOT IN (SELECT few {N})",
    f"SELECT few, count(*) AS n FROM (SELECT few {N}) a WHERE few NOT IN (SELECT few {P} WHERE few > 2 AND each % 7 > 2) GROUP BY few",
    f"SELECT few, count(*) AS n FROM (SELECT few {N}) a WHERE few NOT IN (SELECT CASE WHEN each > 700000 THEN NULL ELSE 9 END {P}) GROUP BY few",
    f"SELECT count(*) AS n {P} WHERE few IN (SELECT few {N})",
    f"SELECT count(*) AS n FROM (SELECT each {P} WHERE each % 3 = 1) a CROSS JOIN (SELECT few {N}) b",
    f"SELECT count(*) AS n {P} HAVING count(*) > 0",
    f"SELECT count(*) AS n, max(each) AS hi {P} WHERE each > (SELECT avg(each) {P})",
    f"SELECT few, max(r) AS r FROM (SELECT few, row_number() OVER (PARTITION BY few, day ORDER BY each) AS r {P}) GROUP BY few",
    f"SELECT few, sum(each) AS s FROM (SELECT few, each, row_number() OVER (PARTITION BY few ORDER BY each) AS r {P}) WHERE r <= 3 GROUP BY few",
    f"SELECT max(r) AS r, count(*) AS n FROM (SELECT row_number() OVER (ORDER BY each) AS r {P})",
    f"SELECT count(*) AS n FROM (SELECT each {P} LIMIT 12345)",
    f"SELECT count(*) AS n, min(each) AS lo FROM (SELECT each {P} ORDER BY each LIMIT 100 OFFSET 1000)",
    f"SELECT n.number, count(*) AS c {P} AS p JOIN numbers(3, 20) AS n ON p.few = n.number GROUP BY n.number",
    f"SELECT few, count(*) AS c FROM (SELECT few {P} UNION ALL SELECT number % 9 FROM numbers(100000)) GROUP BY few",
    "SELECT number % 5 AS k, count(*) AS c, min(number) AS lo, max(number) AS hi, sum(number) AS s FROM numbers(12000000) GROUP BY k",
    f"SELECT each, name {P} WHERE each % 99991 = 0",
    f"SELECT each AS n {P} ORDER BY n DESC LIMIT 7",
    f"SELECT few AS n, each AS s {P} ORDER BY n, s LIMIT 1000",
    f"SELECT few, count(*) AS n {P} GROUP BY few EXCEPT SELECT few, 1 {N}",
    f"SELECT a.few, a.n + b.n AS n FROM (SELECT few, count(*) AS n {P} GROUP BY few) a JOIN (SELECT few, count(*) AS n {C} GROUP BY few) b USING (few)",
    f"WITH t AS (SELECT few, count(*) AS n {P} GROUP BY few) SELECT few, n, n * 100.0 / (SELECT sum(n) FROM t) AS share FROM t",
]


def row_key(row: tuple) -> list:
    return [(value is None, str(value) if not isinstance(value, float) else f"{value:.6g}") for value in row]


def is_equal(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9) or (math.isnan(one) and math.isnan(other))
    return one == other


def assert_same(one: list[tuple], other: list[tuple], ordered: bool) -> None:
    if not ordered:
        one, other = sorted(one, key=row_key), sorted(other, key=row_key)
    assert len(one) == len(other)
    for left, right in zip(one, other, strict=True):
        assert all(map(is_equal, left, right)), (left, right)


def turns(statements: list[str]) -> pytest.MarkDecorator:
    """Each statement on two of the clusters."""
    clusters = ["cluster", "wide", "narrow"]
    pairs = [(clusters[(at + turn) % 3], sql) for at, sql in enumerate(statements) for turn in range(2)]
    # Those of one cluster follow one another.
    return pytest.mark.parametrize(("each_remote", "sql"), sorted(pairs, key=lambda pair: clusters.index(pair[0])), indirect=["each_remote"])


@turns(GROUPED)
def test_a_grouping_is_the_same_as_in_one_process(each_remote, here, tables, sql):
    sql = sql.format(tables=tables)
    plan = explained(each_remote, sql)
    assert "ClusterExec: address=df://" in plan, plan
    assert "stage=" in plan, plan
    assert_same(each_remote.sql(sql).fetchall(), here.sql(sql).fetchall(), "ORDER BY n" in sql or "ORDER BY s" in sql)


@turns(OTHERS)
def test_a_statement_is_the_same_as_in_one_process(each_remote, here, tables, sql):
    sql = sql.format(tables=tables)
    plan = explained(each_remote, sql)
    assert "ClusterExec: address=df://" in plan, plan
    assert_same(each_remote.sql(sql).fetchall(), here.sql(sql).fetchall(), "ORDER BY n" in sql)


def test_what_reads_no_file_runs_here_and_says_so(remote):
    plan = explained(remote, "SELECT a, count(*) FROM (VALUES (1), (2), (1)) AS t(a) GROUP BY a")
    assert "runs here: " in plan and "ClusterExec" not in plan
    assert remote.sql("SELECT sum(a) FROM (VALUES (1), (2)) AS t(a)").fetchall() == [(3,)]


def test_what_goes_nowhere_says_why(remote, tables):
    remote.sql("CREATE SEQUENCE numbers")
    sql = f"SELECT nextval('numbers') {P.format(tables=tables)}"
    assert "runs nowhere: " in explained(remote, sql)
    with pytest.raises(grouse.UnsupportedError, match="cannot be distributed because of the function nextval; SET cluster = ''"):
        remote.sql(sql).fetchall()


def test_a_session_leaves_its_cluster(remote, tables):
    sql = f"SELECT few, count(*) FROM '{tables}/rows.*.parquet' GROUP BY few"
    assert "ClusterExec" in explained(remote, sql)
    remote.sql("SET cluster = ''")
    assert "Cluster" not in explained(remote, sql)


def test_results_are_written_by_the_client(remote, tables, tmp_path):
    remote.sql(f"COPY (SELECT few, count(*) AS n FROM '{tables}/rows.*.parquet' GROUP BY few) TO '{tmp_path}/out.parquet'")
    assert len(remote.sql(f"SELECT * FROM '{tmp_path}/out.parquet'").fetchall()) == 7


def test_analyze_shows_what_the_stages_did(remote, tables):
    rows = remote.sql(f"EXPLAIN ANALYZE SELECT few, count(*) FROM '{tables}/rows.*.parquet' GROUP BY few").fetchall()
    text = "\n".join(str(row[-1]) for row in rows)
    assert "stage1_output_rows=" in text and "stages=2, stages_over=2" in text, text


def stage_figures(con, sql: str) -> dict[str, list[float]]:
    """The rows and the bytes of each stage."""
    text = "\n".join(str(row[-1]) for row in con.sql(f"EXPLAIN ANALYZE {sql}").fetchall())
    found = re.findall(r"stage\d+_output_(rows|bytes)=([\d.]+)(?: ([KMG])\b)?", text)
    scale = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9}
    return {of: [float(figure) * scale[unit] for what, figure, unit in found if what == of] for of in ("rows", "bytes")}


def test_a_join_with_few_groups_hands_on_these_alone(remote, here, tables):
    groups = f"SELECT few, count(*) AS n FROM '{tables}/names.parquet' GROUP BY few"
    sql = f"SELECT g.few, g.n, count(*) AS c, max(r.each) AS hi FROM ({groups}) g JOIN '{tables}/rows.*.parquet' r ON r.few = g.few GROUP BY g.few, g.n"
    assert max(stage_figures(remote, sql)["rows"]) < 100
    assert_same(remote.sql(sql).fetchall(), here.sql(sql).fetchall(), ordered=False)


def test_the_bytes_of_a_stage_are_those_on_disk(remote, tables):
    """Numbers that follow each other and counts that are all 1 take less on disk than in memory."""
    figures = stage_figures(remote, f"SELECT each, count(*) FROM '{tables}/rows.*.parquet' GROUP BY each")
    assert figures["rows"][0] == 800_000
    assert 0 < figures["bytes"][0] < 0.7 * 16 * 800_000, figures


def test_errors_come_back_as_they_are_here(remote, here, tables, tmp_path):
    for sql in [
        f"SELECT few, sum(1 / (each - each)) FROM '{tables}/rows.*.parquet' GROUP BY few",
        f"SELECT few, sum(CAST(name AS INTEGER)) FROM '{tables}/rows.*.parquet' GROUP BY few",
    ]:
        with pytest.raises(grouse.Error) as expected:
            here.sql(sql).fetchall()
        with pytest.raises(type(expected.value)) as found:
            remote.sql(sql).fetchall()
        assert "Execution(" not in str(found.value)


def test_an_address_that_is_none_is_refused(here):
    with pytest.raises(grouse.InvalidError, match="df://host:50050"):
        grouse.connect("localhost:50050")
    with pytest.raises(grouse.InvalidError, match="df://host:50050"):
        here.sql("SET cluster = 'nowhere'")
    with grouse.connect("df://127.0.0.1:9", threads=1) as con, pytest.raises(grouse.IoError, match="no scheduler"):
        con.sql("SELECT 1").fetchall()


def test_the_shell_reaches_the_cluster(cluster, tables):
    shell = Path(grouse.__file__).parents[0]
    binary = next((path for path in [Path("target/release/grouse"), shell / "grouse"] if path.exists()), None)
    if binary is None:
        pytest.fail("target/release/grouse is not there: make build")
    sql = f"SELECT few, count(*) AS n FROM '{tables}/rows.*.parquet' GROUP BY few ORDER BY few LIMIT 1"
    command = [str(binary), "--no-init", "--cluster", cluster.address, "--format", "csv", sql]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stdout.splitlines()) == (0, ["few,n", "0,114286"]), done.stderr


def test_nothing_is_left_of_jobs(remote, cluster, tables):
    remote.sql(f"SELECT many, count(*) FROM '{tables}/rows.*.parquet' GROUP BY many").fetchall()
    assert cluster.is_clean_within(), cluster.left()
