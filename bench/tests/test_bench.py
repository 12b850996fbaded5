"""The benchmark itself: its files fit together, its judge is strict, and its small sizes have the right answers.

In: the query files, the Python package of this environment, the binaries of this build. The peers' environment is not needed:
those that the tests ask are in this one.
"""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(BENCH))

import queries  # noqa: E402  (it lies beside this folder)
import report  # noqa: E402
from compare import difference  # noqa: E402

RELEASE = Path(os.environ.get("CARGO_TARGET_DIR", BENCH.parent / "target")) / "release"


def recorded(script: str, folder: Path, *flags: str, label: str = "", seconds: int = 50) -> list[dict[str, str]]:
    """Rows of the record that a script of the benchmark writes into the folder, under its own name where no label is given."""
    command = [sys.executable, str(BENCH / script), *flags, "--host", "test"]
    command += ["--record", str(folder), "--python-grouse", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    (record,) = folder.glob(f"test/{label or Path(script).stem}.csv")
    with record.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("set_name", queries.SIZES)
def test_every_query_has_expected_rows(set_name):
    found = queries.load(set_name)
    names = [query.name for query in found]
    assert len(set(names)) == len(names)
    assert all(query.sql.upper().startswith("SELECT") for query in found)
    assert all(bool(query.columns) == bool(queries.SIZES[set_name]["small"].files) for query in found)
    for size in ("default", "small"):
        assert set(queries.expected(set_name, queries.SIZES[set_name][size].rows)) == set(names), size


def test_hits_has_at_least_thirty_queries():
    assert len(queries.load("hits")) >= 30
    assert len(queries.load("g1")) == 24


def test_variants_are_told_apart():
    query = queries.parse("q\n-- columns: a, b\nSELECT 1; -- why\n-- only: chdb  (because)\nSELECT 2;\n")
    assert (query.columns, query.text("duckdb"), query.text("chdb")) == (["a", "b"], "SELECT 1", "SELECT 2")


@pytest.mark.parametrize(
    ("found", "right", "equal"),
    [
        ([[1, "a"]], [[1, "a"]], True),
        ([[1, "a"]], [[1, "b"]], False),
        ([[1]], [[1], [2]], False),
        ([[2**53]], [[2**53 + 1]], False),
        ([[1.0]], [[1.0 + 1e-10]], True),
        ([[1.0]], [[1.0 + 1e-8]], False),
        ([[None]], [[0]], False),
        ([[None]], [[None]], True),
        ([[float("nan")]], [[1.0]], False),
        ([[{"decimal": "25.522005"}]], [[25.5220058]], True),
        ([[{"decimal": "25.522004"}]], [[25.5220058]], False),
        ([[{"decimal": "25.52"}]], [[25.53]], False),
    ],
)
def test_the_judge(found, right, equal):
    assert (difference(found, right, queries.ROUNDING) is None) == equal


def test_wrong_answers_have_no_time():
    result = report.Result("s", 1, "q", "grouse", status="wrong", samples_s=[0.1])
    assert result.best_s is None
    assert report.csv_row(result)[5] == ""


@pytest.mark.parametrize("set_name", queries.SIZES)
def test_small_sizes_have_the_right_answers(set_name, tmp_path):
    pytest.importorskip("grouse", reason="the package is not installed")
    flags = ["--set", set_name, "--size", "small", "--rounds", "1", "--engines", "grouse,datafusion", "--touch-gb", "0",
             "--timeout", "60", "--data", str(tmp_path), "--bin", str(RELEASE), "--python-peers", sys.executable,
             "--no-picture"]
    rows = recorded("run.py", tmp_path, *flags, label="all")
    assert len(rows) == 2 * len(queries.load(set_name))
    assert {row["status"] for row in rows} == {"ok"}


def test_a_limit_is_kept_and_changes_no_answer(tmp_path):
    pytest.importorskip("grouse", reason="the package is not installed")
    flags = ["--set", "tpch", "--size", "small", "--rounds", "1", "--engines", "grouse", "--limits", "none,20MB", "--data",
             str(tmp_path), "--bin", str(RELEASE), "--no-picture"]
    rows = recorded("limits.py", tmp_path, *flags)
    assert {row["limit"] for row in rows} == {"none", "20MB"}
    assert {row["status"] for row in rows} == {"ok"} and all(int(row["peak_mb"]) > 0 for row in rows)


def test_rows_are_the_same_from_every_engine(tmp_path):
    pytest.importorskip("grouse", reason="the package is not installed")
    flags = ["--rows", "20000", "--rounds", "1", "--data", str(tmp_path)]
    objects = {row["engine"]: int(row["string_objects"]) for row in recorded("rows.py", tmp_path, *flags)}
    assert set(objects) == {"ready", "grouse", "duckdb", "polars", "pyarrow"}
    assert objects["grouse"] == objects["ready"] == 100


def test_short_queries_are_timed_beside_long_ones(tmp_path):
    pytest.importorskip("grouse", reason="the package is not installed")
    rows = recorded("together.py", tmp_path, "--rows", "40000", "--rounds", "2", "--data", str(tmp_path))
    assert [(row["engine"], row["long"]) for row in rows] == [(engine, long) for engine in ("grouse", "duckdb") for long in "012"]
    assert all(0 < float(row["median_ms"]) <= float(row["worst_ms"]) for row in rows)


def test_tables_of_other_writers_have_the_same_answers(tmp_path):
    pytest.importorskip("grouse", reason="the package is not installed")
    flags = ["--rows", "20000", "--rounds", "1", "--engines", "grouse,duckdb", "--touch-gb", "0", "--data", str(tmp_path)]
    flags += ["--bin", str(RELEASE), "--python-peers", sys.executable, "--queries", "^(long_string_key|date_and_region)$"]
    recorded("variants.py", tmp_path, *flags, "--tables", "shuffled,Zipf")
    rows = recorded("variants.py", tmp_path, *flags, "--tables", "64 files")
    assert {row["table"] for row in rows} == {"shuffled", "Zipf keys", "64 files"} and len(rows) == 3 * 2 * 2
    assert {row["status"] for row in rows} == {"ok"}


def test_the_serial_share_is_that_of_all_groupings(tmp_path):
    pytest.importorskip("grouse", reason="the package is not installed")
    import serial

    text = "GroupByExec: x, metrics=[cut_time=1.5ms]\n  GroupByExec: y, metrics=[cut_time=500.00µs]\n  cut_time=9s"
    assert serial.milliseconds(text, "cut_time") == 2.0
    flags = ["--set", "g1", "--size", "small", "--rounds", "1", "--data", str(tmp_path), "--bin", str(RELEASE)]
    shares = {row["query"]: float(row["serial_percent"]) for row in recorded("serial.py", tmp_path, *flags)}
    assert len(shares) == 5 and all(0 <= share <= 100 for share in shares.values())


def test_keys_of_two_widths_are_timed_in_pairs(tmp_path):
    pytest.importorskip("grouse", reason="the package is not installed")
    rows = recorded("pairs.py", tmp_path, "--rows", "100000", "--rounds", "3")
    assert len(rows) == 5 and all(len(row["pairs_ms"].split()) == 3 and float(row["ratio"]) > 0 for row in rows)


def test_decisions_are_held_against_both_choices(tmp_path):
    flags = ["--rows", "60000", "--rounds", "1", "--groups", "50,30000", "--workers", "1,3", "--widths", "8,40"]
    rows = recorded("policy.py", tmp_path, *flags, "--order", "random", "--states", "sum", "--bin", str(RELEASE), "--no-picture")
    assert {(row["groups"], row["workers"], row["width"]) for row in rows} == {
        (groups, workers, width) for groups in ("50", "30000") for workers in "13" for width in ("8", "40")
    }
    for row in rows:
        better = min(float(row["look_up_ns"]), float(row["go_by_ns"]))
        assert abs(float(row["measured_ns"]) / better - float(row["ratio"])) < 0.001, row


def test_the_cost_of_workers_is_recorded(tmp_path):
    pytest.importorskip("grouse", reason="the package is not installed")
    flags = ["--rows", "20000", "--rounds", "1", "--at", "3", "--inputs", "one row,NDJSON,registered", "--data", str(tmp_path)]
    rows = recorded("workers.py", tmp_path, *flags, seconds=90)
    assert len(rows) == 3 * 3 * 2 and {row["workers"] for row in rows} == {"2", "3"}
    assert all(float(row["cpu_ms"]) > 0 for row in rows)


def test_a_cluster_gives_the_right_answers_and_counts_what_it_hands_on(tmp_path):
    pytest.importorskip("grouse", reason="the package is not installed")
    flags = ["--set", "hits", "--size", "small", "--rounds", "1", "--queries", "^(low_string_key|medium_key_two_distincts)$", "--data",
             str(tmp_path), "--bin", str(RELEASE), "--memory", "512MB"]
    rows = recorded("cluster.py", tmp_path, *flags)
    assert len(rows) == 2 * 3
    for row in rows:
        is_cluster = row["layout"].startswith("cluster")
        assert (int(row["stages"]) > 1) == (int(row["shuffle_rows"]) > 0) == (int(row["shuffle_bytes"]) > 0) == is_cluster, row
        assert float(row["best_ms"]) > 0 and int(row["peak_mb"]) > 0


def test_layouts_of_a_cluster_give_one_answer(tmp_path):
    pytest.importorskip("grouse", reason="the package is not installed")
    flags = ["--set", "hits,tpch", "--size", "small", "--rounds", "1", "--data", str(tmp_path), "--bin", str(RELEASE), "--memory", "300MB"]
    rows = recorded("cluster.py", tmp_path, *flags, "--queries", "^(medium_key|t18_large_orders)$", seconds=120)
    assert [(row["query"], row["layout"].partition(",")[0]) for row in rows] == [
        (query, layout) for query in ("medium_key", "t18_large_orders") for layout in ("one process", "cluster", "cluster")
    ]
    for row in rows:
        assert (int(row["shuffle_bytes"]) > 0) == (row["layout"] != "one process") == (int(row["stages"]) > 1), row
