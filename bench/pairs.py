"""Two forms of one query in turn, in one process: keys of 2 and of 8 bytes.

In: flags (`--help`). Out: `record/<host>/pairs.csv` and a summary.
Invariant: both forms give the same rows; the ratio is the median of those of neighbouring runs. Faults are the minor page
faults of the process in the second run of the first form.
"""

import datetime
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import report
from run import HERE, record_flags, stem_of

WIDTHS = ("SMALLINT UNSIGNED", "BIGINT UNSIGNED")
AGGREGATES = ("uniq(number)", "count(*)", "sum(number)", "min(number)", "max(number)")
"""By 10,000 keys; of equal results the order of rows is the key's."""


def main() -> None:
    if sys.argv[1:2] == ["one"]:
        return one(*sys.argv[2:])
    parser = record_flags(__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.set_defaults(rows=100_000_000, rounds=21, label="pairs")
    flags = parser.parse_args()
    write(stem_of(flags), flags, [measured(aggregate, flags) for aggregate in AGGREGATES])


def measured(aggregate: str, flags) -> dict:
    arguments = [aggregate, str(flags.rows), str(flags.rounds), str(flags.threads)]
    command = [flags.python_grouse, __file__, "one", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=flags.timeout, cwd=HERE)
    return row(aggregate, **json.loads(done.stdout))


def one(aggregate: str, rows: str, rounds: str, threads: str) -> None:
    import grouse

    session = grouse.connect(threads=int(threads))

    def run(width: str) -> tuple[list, float]:
        key = f"CAST(number % 10000 AS {width})"
        sql = f"SELECT {key} AS k, {aggregate} FROM numbers({rows}) GROUP BY {key} ORDER BY 2 DESC, 1 LIMIT 10"
        start = time.perf_counter()
        answer = session.sql(sql).fetchall()
        return answer, 1e3 * (time.perf_counter() - start)

    assert run(WIDTHS[0])[0] == run(WIDTHS[1])[0], aggregate
    before = faults()
    run(WIDTHS[0])
    second = faults() - before
    pairs = [[run(width)[1] for width in WIDTHS] for _ in range(int(rounds))]
    print(json.dumps({"pairs": pairs, "second": second}))


def faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def row(aggregate: str, pairs: list[list[float]], second: int) -> dict:
    narrow, wide = zip(*pairs)
    return {
        "aggregate": aggregate,
        "narrow_ms": f"{statistics.median(narrow):.1f}",
        "wide_ms": f"{statistics.median(wide):.1f}",
        "ratio": f"{statistics.median(one / other for one, other in pairs):.3f}",
        "second_run_faults": second,
        "pairs_ms": " ".join(f"{one:.1f}/{other:.1f}" for one, other in pairs),
    }


def write(stem: Path, flags, rows: list[dict]) -> None:
    lines = [
        f"{datetime.date.today()}, {report.processor()}. {flags.rows:,} numbers by `number % 10000`, {flags.threads} workers,"
        f" {flags.rounds} pairs.",
        "",
        f"| aggregate | {WIDTHS[0]}, ms | {WIDTHS[1]}, ms | ratio | page faults of a second run |",
        "|---|---:|---:|---:|---:|",
    ]
    lines += ["| {aggregate} | {narrow_ms} | {wide_ms} | {ratio} | {second_run_faults} |".format_map(row) for row in rows]
    report.leave(stem, rows, lines)


if __name__ == "__main__":
    main()
