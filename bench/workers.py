"""What more workers cost: the CPU time of one grouping per kind of input, by the number of workers.

In: flags (`--help`). Out: `record/<host>/workers.csv` and a summary: CPU milliseconds, and their ratio to those of 2 workers.
Invariant: every number of workers has a process of its own, they run in turn (A B C A B C), and all answers are the same. The best of
`--rounds` counts. CPU time needs no cores: a machine of 2 shows what 240 workers cost, not how fast they are.
"""

import argparse
import datetime
import gzip
import json
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import report
from run import HERE, record_flags, stem_of

QUERIES = {
    "strings": "SELECT s, count(*), sum(v) FROM {} GROUP BY s ORDER BY s",
    "integers": "SELECT count(*), sum(c), sum(v) FROM (SELECT k, count(*) AS c, sum(v) AS v FROM {} GROUP BY k)",
    "filtered": "SELECT count(*), sum(v) FROM {} WHERE s LIKE '%7%'",
}
INPUTS = ["many row groups", "ten row groups", "one row group", "one without page index", "CSV", "CSV in gzip", "NDJSON"]
INPUTS += ["Arrow IPC of one batch", "registered table of one batch"]
BASE = 2


def main() -> None:
    if sys.argv[1:2] == ["one"]:
        return one(*sys.argv[2:])
    parser = record_flags(__doc__)
    parser.add_argument("--at", default="1,2,16,32,64,240", help="numbers of workers, with commas; 2 is always among them")
    parser.add_argument("--inputs", default="", help="only inputs whose names have one of these words, with commas")
    parser.set_defaults(rows=4_000_000, rounds=3, label="workers")
    flags = parser.parse_args()
    at = sorted({BASE, *map(int, flags.at.split(","))})
    wanted = [word for word in flags.inputs.split(",") if word]
    inputs = [name for name in INPUTS if not wanted or any(word in name for word in wanted)]
    folder = Path(flags.data).resolve() / f"workers_{flags.rows}"
    if not folder.exists():
        subprocess.run([flags.python_grouse, __file__, "one", "make", str(folder), str(flags.rows)], check=True, cwd=HERE)
    found, answers = {}, {}
    for name in inputs:
        for _ in range(flags.rounds):
            for workers in at:
                for query, (cpu_ms, answer) in measured(name, folder, workers, flags).items():
                    found.setdefault((name, query), {}).setdefault(workers, []).append(cpu_ms)
                    assert answer == answers.setdefault(query, answer), f"{name}, {query}, {workers} workers: {answer}"
    write(stem_of(flags), flags.rows, at, found)


def measured(name: str, folder: Path, workers: int, flags: argparse.Namespace) -> dict:
    command = [flags.python_grouse, __file__, "one", name, str(folder), str(workers)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=flags.timeout, cwd=HERE)
    return json.loads(done.stdout)


def one(name: str, folder: str, number: str) -> None:
    """All queries over one input with so many workers, each the second of two runs; or the inputs themselves."""
    folder = Path(folder)
    if name == "make":
        return make(folder, int(number))
    import grouse

    connection = grouse.connect(threads=int(number))
    table = f"'{path_of(name, folder)}'"
    if name == "registered table of one batch":
        import pyarrow

        with pyarrow.OSFile(str(path_of(name, folder))) as file:
            connection.register("registered", pyarrow.ipc.open_file(file).read_all())
        table = "registered"
    results = {}
    for query, sql in QUERIES.items():
        sql = sql.format(table)
        connection.sql(sql).fetchall()
        before = resource.getrusage(resource.RUSAGE_SELF)
        answer = connection.sql(sql).fetchall()
        after = resource.getrusage(resource.RUSAGE_SELF)
        cpu_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        results[query] = (cpu_s * 1e3, repr(answer))
    print(json.dumps(results))


def path_of(name: str, folder: Path) -> Path:
    endings = {"CSV": "csv", "CSV in gzip": "csv.gz", "NDJSON": "ndjson", "Arrow IPC of one batch": "arrow"}
    endings["registered table of one batch"] = "arrow"
    return folder / (f"table.{endings[name]}" if name in endings else f"{name.replace(' ', '_')}.parquet")


def make(folder: Path, rows: int) -> None:
    """One table in all forms: `s` of 100 strings, `k` of 10,000 integers, `v` integers below 1,000."""
    import pyarrow
    import pyarrow.compute as compute
    import pyarrow.csv
    import pyarrow.parquet as parquet

    part = folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    numbers = pyarrow.array(range(rows))
    mixed = compute.bit_wise_and(compute.multiply(compute.bit_wise_and(numbers, 0x7FFFFFFF), 1_103_515_245), 0x3FFFFFFF)

    def below(bound: int) -> pyarrow.Array:
        shifted = compute.shift_right(mixed, pyarrow.scalar(7, pyarrow.int64()))
        return compute.subtract(shifted, compute.multiply(compute.divide(shifted, bound), bound))

    words = compute.binary_join_element_wise("word number ", compute.cast(below(100), pyarrow.string()), "")
    table = pyarrow.table({"s": words, "k": below(10_000), "v": below(997)}).combine_chunks()
    groups = {"many row groups": rows // 100, "ten row groups": rows // 10, "one row group": rows}
    for name, size in groups.items():
        parquet.write_table(table, path_of(name, part), row_group_size=size, write_page_index=True)
    parquet.write_table(table, path_of("one without page index", part), row_group_size=rows)
    with pyarrow.OSFile(str(path_of("Arrow IPC of one batch", part)), "wb") as file:
        with pyarrow.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    pyarrow.csv.write_csv(table, path_of("CSV", part))
    with path_of("CSV", part).open("rb") as plain, gzip.open(path_of("CSV in gzip", part), "wb", 1) as packed:
        shutil.copyfileobj(plain, packed)
    with path_of("NDJSON", part).open("w") as file:
        for batch in table.to_batches(100_000):
            columns = zip(*(column.to_pylist() for column in batch.columns))
            file.writelines(f'{{"s":"{s}","k":{k},"v":{v}}}\n' for s, k, v in columns)
    part.rename(folder)


def write(stem: Path, count: int, at: list[int], found: dict) -> None:
    rows = [
        {"input": name, "query": query, "workers": workers, "cpu_ms": f"{min(times[workers]):.1f}"}
        | {"to_two": f"{min(times[workers]) / min(times[BASE]):.2f}", "samples_ms": " ".join(f"{ms:.1f}" for ms in times[workers])}
        for (name, query), times in found.items()
        for workers in at
    ]
    lines = [f"{datetime.date.today()}, {report.processor()}. {count:,} rows; CPU ms at {BASE} workers, then as many times that.", ""]
    lines += ["| input | query | " + " | ".join(f"{workers}" for workers in [f"{BASE}, ms", *at]) + " |"]
    lines += ["|---|---|" + "---:|" * (len(at) + 1)]
    for (name, query), times in found.items():
        base = min(times[BASE])
        cells = [f"{base:.0f}", *(f"{min(times[workers]) / base:.2f}" for workers in at)]
        lines.append("| " + " | ".join([name, query, *cells]) + " |")
    report.leave(stem, rows, lines)


if __name__ == "__main__":
    main()
