"""Many queries at once: how long a short query takes beside long ones, grouse beside DuckDB.

In: flags (`--help`). Out: `record/<host>/together.csv` and a summary.
Invariant: each engine has a process of its own, in turn. All queries of a run share one session and its threads; with
`sessions` each thread of the program has a session of its own. Rows are checked.
Long queries run again as long as short ones do; what they get done beside them is counted.
"""

import datetime
import json
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import report
from run import HERE, record_flags, stem_of

LONG = "SELECT count(*), max(n) FROM (SELECT key * 7 % 4000037 AS k, count(*) AS n, sum(key) AS s FROM '{path}' GROUP BY k)"
SHORT = "SELECT count(*), max(s) FROM (SELECT key % 1000 AS k, count(*) AS n, sum(key) AS s FROM '{path}' WHERE part = 0 GROUP BY k)"
BESIDE = (0, 1, 2)


def grouse_session(threads):
    import grouse

    return grouse.connect(threads=threads)


def duckdb_session(threads):
    import duckdb

    return duckdb.connect(config={"threads": threads})


SESSIONS = {"grouse": grouse_session, "duckdb": duckdb_session}


def main() -> None:
    if sys.argv[1:2] == ["one"]:
        return one(*sys.argv[2:])
    parser = record_flags(__doc__)
    parser.set_defaults(rows=16_000_000, rounds=20, label="together")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sessions", choices=("one", "each"), default="one")
    parser.add_argument("--engines", default="grouse,duckdb")
    flags = parser.parse_args()
    path = Path(flags.data).resolve() / f"together_{flags.rows}.parquet"
    if not path.exists():
        make(flags, path)
    rows = []
    for engine in flags.engines.split(","):
        for long in BESIDE:
            given = (engine, path, flags.threads, long, flags.rounds, flags.sessions)
            command = [flags.python_grouse, __file__, "one", *map(str, given)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=flags.timeout, cwd=HERE)
            rows.append({"engine": engine, "long": long} | json.loads(done.stdout))
    write(stem_of(flags), flags, rows)


def make(flags, path: Path) -> None:
    """One part in eight is what short queries read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = f"SELECT CAST(number AS BIGINT) AS key, CAST(number * 8 // {flags.rows} AS INTEGER) AS part FROM numbers({flags.rows})"
    sql = f"COPY ({table}) TO '{path}'"
    subprocess.run([flags.python_grouse, "-c", f"import grouse; grouse.sql({sql!r})"], check=True)


def one(engine: str, path: str, threads: str, long: str, rounds: str, sessions: str) -> None:
    """Short queries one after the other, while so many threads of the program repeat the long one."""
    shared = SESSIONS[engine](int(threads))

    def connection():
        return shared.cursor() if sessions == "one" else SESSIONS[engine](int(threads))

    over, ended = threading.Event(), []

    def repeat(own):
        while not over.is_set():
            own.execute(LONG.format(path=path)).fetchall()
            ended.append(time.perf_counter())

    mine = connection()
    expected = mine.execute(SHORT.format(path=path)).fetchall()
    others = [threading.Thread(target=repeat, args=(connection(),)) for _ in range(int(long))]
    for other in others:
        other.start()
    # Long ones have used some time by now.
    time.sleep(0.5 if others else 0)
    samples, began = [], time.perf_counter()
    for _ in range(int(rounds)):
        start = time.perf_counter()
        rows = mine.execute(SHORT.format(path=path)).fetchall()
        samples.append(time.perf_counter() - start)
        assert rows == expected, (rows, expected)
    seconds = time.perf_counter() - began
    over.set()
    for other in others:
        other.join()
    print(
        json.dumps(
            {
                "median_ms": round(1e3 * statistics.median(samples), 1),
                "worst_ms": round(1e3 * max(samples), 1),
                "long_ended": sum(began <= at <= began + seconds for at in ended),
                "seconds": round(seconds, 2),
            }
        )
    )


def write(stem: Path, flags, rows: list[dict]) -> None:
    lines = [f"{datetime.date.today()}, {report.processor()}. {flags.threads} threads, {flags.rounds} short queries; sessions: {flags.sessions}.", ""]
    lines += ["| engine | long queries beside | median ms | worst ms | long ones ended | seconds |", "|---|---:|---:|---:|---:|---:|"]
    lines += ["| {engine} | {long} | {median_ms} | {worst_ms} | {long_ended} | {seconds} |".format_map(row) for row in rows]
    report.leave(stem, rows, lines)


if __name__ == "__main__":
    main()
