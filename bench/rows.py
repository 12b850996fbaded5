"""Rows as Python objects: a million tuples of an integer and one of 100 strings, grouse beside its peers.

In: flags (`--help`). Out: `record/<host>/rows.csv` and a summary.
Invariant: every run has a process of its own, engines run in turn (A B C A B C), and each has to give the same rows.
`ready` builds the list of tuples from objects that are there already: nobody can be faster.
"""

import argparse
import datetime
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import report
from run import HERE, record_flags, stem_of

STRINGS = 100


def from_ready_objects(path, rows):
    integers = list(range(rows))
    strings = [f"text number {at}" for at in range(STRINGS)]
    column = [strings[at % STRINGS] for at in integers]
    return lambda: list(zip(integers, column))


def from_grouse(path, _rows):
    import grouse

    return lambda: grouse.sql(f"SELECT * FROM '{path}'").fetchall()


def from_duckdb(path, _rows):
    import duckdb

    return lambda: duckdb.sql(f"SELECT * FROM '{path}'").fetchall()


def from_polars(path, _rows):
    import polars

    return lambda: polars.read_parquet(path).rows()


def from_pyarrow(path, _rows):
    import pyarrow.parquet

    return lambda: list(zip(*(column.to_pylist() for column in pyarrow.parquet.read_table(path).columns)))


ENGINES = {
    "ready": from_ready_objects,
    "grouse": from_grouse,
    "duckdb": from_duckdb,
    "polars": from_polars,
    "pyarrow": from_pyarrow,
}


def main() -> None:
    if sys.argv[1:2] == ["one"]:
        return one(*sys.argv[2:])
    parser = record_flags(__doc__)
    parser.set_defaults(rows=1_000_000, rounds=5, label="rows")
    flags = parser.parse_args()
    path = Path(flags.data).resolve() / f"rows_{flags.rows}.parquet"
    if not path.exists():
        make(flags, path)
    runs = {engine: [] for engine in ENGINES}
    for _ in range(flags.rounds):
        for engine, results in runs.items():
            results.append(measured(engine, path, flags))
    write(stem_of(flags), flags.rows, runs)


def make(flags: argparse.Namespace, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = f"SELECT CAST(number AS BIGINT) AS id, 'text number ' || (number % {STRINGS}) AS text FROM numbers({flags.rows})"
    sql = f"COPY ({table} ORDER BY id) TO '{path}'"
    subprocess.run([flags.python_grouse, "-c", f"import grouse; grouse.sql({sql!r})"], check=True)


def measured(engine: str, path: Path, flags: argparse.Namespace) -> dict:
    command = [flags.python_grouse, __file__, "one", engine, str(path), str(flags.rows)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=flags.timeout, cwd=HERE)
    return json.loads(done.stdout)


def one(engine: str, path: str, count: str) -> None:
    """A run: the second of two fetches; the peak is the process's, with both."""
    fetch = ENGINES[engine](path, int(count))
    rows = sorted(fetch())
    assert len(rows) == int(count) and all(row == (at, f"text number {at % STRINGS}") for at, row in enumerate(rows)), engine
    del rows
    start = time.perf_counter()
    rows = fetch()
    seconds = time.perf_counter() - start
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 // 10**6
    print(json.dumps({"seconds": seconds, "peak_mb": peak_mb, "strings": len({id(row[1]) for row in rows})}))


def write(stem: Path, count: int, runs: dict[str, list[dict]]) -> None:
    rows = [row(engine, results) for engine, results in runs.items()]
    lines = [f"{datetime.date.today()}, {report.processor()}. {count:,} rows as tuples, {STRINGS} strings.", ""]
    lines += ["| engine | seconds | peak MB of the process | text objects |", "|---|---:|---:|---:|"]
    lines += ["| {engine} | {best_s} | {peak_mb} | {string_objects} |".format_map(row) for row in rows]
    report.leave(stem, rows, lines)


def row(engine: str, results: list[dict]) -> dict:
    samples = [result["seconds"] for result in results]
    return {
        "engine": engine,
        "best_s": f"{min(samples):.4f}",
        "peak_mb": max(result["peak_mb"] for result in results),
        "string_objects": max(result["strings"] for result in results),
        "samples_s": " ".join(f"{sample:.4f}" for sample in samples),
    }


if __name__ == "__main__":
    main()
