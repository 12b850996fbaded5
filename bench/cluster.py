"""What a cluster costs: one process, a scheduler with two executors, and these with DataFusion's operator in every stage.

In: flags (`--help`). Out: `record/<host>/cluster.csv` and a summary.
Invariant: each layout has processes of its own, layouts follow one another query by query, and each answer has to be right.
On one machine a cluster is not faster: what is measured are its overhead and what its stages hand on.
CPU time and the peak of memory are those of all processes of the layout, the client's with them.
"""

import contextlib
import datetime
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import queries
import report
from compare import difference
from run import HERE, checked, make_table, shared_flags, stem_of

LAYOUTS = ("one process", "cluster", "cluster, DataFusion's operator")
"""The number of executors and their size: those of the machine that the record is of."""
EXECUTORS, VCORES = 2, 1
CHOSEN = {
    "hits": "low_key_many_aggregates|low_string_key|medium_key_two_distincts|high_integer_key|user_and_phrase|distinct_string",
    "tpch": "t01_pricing_summary|t02_by_order",
}


def main() -> None:
    if sys.argv[1:2] == ["one"]:
        return one(json.loads(sys.argv[2]))
    parser = shared_flags(__doc__)
    parser.set_defaults(set=",".join(CHOSEN), label="cluster", engines="grouse")
    parser.add_argument("--memory", default="2GB", help="memory limit of an executor")
    flags = checked(parser)
    rows = [row for set_name in flags.set.split(",") for row in of_set(set_name, flags)]
    write(stem_of(flags), rows, flags)


def of_set(set_name: str, flags) -> list[dict]:
    size = queries.size_of(set_name, flags.size, flags.rows)
    tables = {name: make_table(size, file, flags) for name, file in size.files.items()}
    chosen = re.compile(flags.queries or f"^({CHOSEN[set_name]})$")
    rows = []
    for query in filter(lambda query: chosen.search(query.name), queries.load(set_name)):
        right = queries.expected(set_name, size.rows).get(query.name)
        for layout in LAYOUTS:
            answer = measured(layout, query, tables, flags)
            right = right or answer["rows"]
            wrong = difference(answer["rows"], right, query.tolerance)
            if wrong:
                raise SystemExit(f"{query.name}, {layout}: {wrong}")
            rows.append(row(set_name, query.name, layout, answer, size.rows))
            print("{query}, {layout}: {best_ms} ms".format_map(rows[-1]), flush=True)
    return rows


def measured(layout: str, query: queries.Query, tables: dict[str, str], flags) -> dict:
    asked = {"layout": layout, "sql": query.text("grouse"), "tables": tables, "rounds": flags.rounds, "memory": flags.memory}
    command = [os.path.abspath(flags.python_grouse), __file__, "one", json.dumps(asked)]
    environment = {**os.environ, "GROUSE_CLUSTER": str(Path(flags.bin).resolve() / "grouse-cluster")}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=flags.timeout, cwd=HERE, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def one(asked: dict) -> None:
    """A warm-up round, the timed rounds, one that counts."""
    from engines.server import plain

    with session(asked) as (con, processes):
        for name, path in asked["tables"].items():
            con.sql(f"CREATE EXTERNAL TABLE {name} STORED AS PARQUET LOCATION '{path}'")
        rows = con.sql(asked["sql"]).fetchall()
        samples, cpu = [], []
        for _ in range(asked["rounds"]):
            before, start = cpu_s(processes), time.perf_counter()
            con.sql(asked["sql"]).fetchall()
            samples.append(time.perf_counter() - start)
            cpu.append(cpu_s(processes) - before)
        peak_bytes = sum(map(peak, processes))
        counted = figures(con, asked["sql"])
    answer = {"rows": [[plain(value) for value in row] for row in rows], "samples_s": samples, "cpu_s": cpu}
    print(json.dumps(answer | {"peak_mb": peak_bytes // 10**6} | counted))


@contextlib.contextmanager
def session(asked: dict):
    """A connection to the layout, and the ids of its processes."""
    import grouse

    own = [os.getpid()]
    if asked["layout"] == LAYOUTS[0]:
        with grouse.connect(threads=EXECUTORS * VCORES, condition_cache="off") as con:
            yield con, own
        return
    sys.path.insert(0, str(HERE.parent / "crates/node/tests"))
    from cluster_processes import Cluster

    with tempfile.TemporaryDirectory() as folder, Cluster(Path(folder), EXECUTORS, VCORES, asked["memory"]) as cluster:
        children = [process.child.pid for process in [cluster.scheduler, *cluster.executors]]
        with grouse.connect(cluster.address, threads=1, condition_cache="off") as con:
            if asked["layout"] == LAYOUTS[2]:
                con.sql("SET group_by_operator = 'datafusion'")
            yield con, own + children


def cpu_s(processes: list[int]) -> float:
    def ticks(process: int) -> int:
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    return sum(map(ticks, processes)) / os.sysconf("SC_CLK_TCK")


def peak(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    return int(re.search(r"^VmHWM:\s+(\d+) kB$", status, re.M)[1]) * 1024


def figures(con, sql: str) -> dict:
    """Stages, and the rows and bytes that all but the last one hand on."""
    plan = "\n".join(str(row[-1]) for row in con.sql(f"EXPLAIN ANALYZE {sql}").fetchall())
    found = re.findall(r"\bstage(\d+)_output_(rows|bytes)=([\d.]+)(?: ?([KMGT]?))", plan)
    stages = {int(number) for number, *_ in found}
    scale = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
    handed = {"rows": 0, "bytes": 0}
    for number, what, figure, unit in found:
        if int(number) != max(stages):
            handed[what] += int(float(figure) * scale[unit])
    return {"stages": len(stages) or 1, "shuffle_rows": handed["rows"], "shuffle_bytes": handed["bytes"]}


def row(set_name: str, query: str, layout: str, answer: dict, input_rows: int) -> dict:
    samples = answer["samples_s"]
    return {
        "set": set_name,
        "query": query,
        "layout": layout,
        "best_ms": f"{1e3 * min(samples):.0f}",
        "cpu_ms": f"{1e3 * min(answer['cpu_s']):.0f}",
        "stages": answer["stages"],
        "shuffle_rows": answer["shuffle_rows"],
        "shuffle_bytes": answer["shuffle_bytes"],
        "shuffle_bytes_per_row": f"{answer['shuffle_bytes'] / input_rows:.3f}",
        "peak_mb": answer["peak_mb"],
        "samples_ms": " ".join(f"{1e3 * sample:.0f}" for sample in samples),
    }


def write(stem: Path, rows: list[dict], flags) -> None:
    first = f"{datetime.date.today()}, {report.processor()}. {EXECUTORS} executors of {VCORES} vcore and {flags.memory}, {flags.rounds} rounds."
    lines = [first, "", "| query | layout | ms | CPU, ms | stages | rows handed on | bytes handed on | per row of input | peak MB |"]
    lines += ["|---|---|---:|---:|---:|---:|---:|---:|---:|"]
    cells = "| {query} | {layout} | {best_ms} | {cpu_ms} | {stages} | {shuffle_rows} | {shuffle_bytes} | {shuffle_bytes_per_row} | {peak_mb} |"
    lines += [cells.format_map(row) for row in rows]
    for other in (LAYOUTS[0], LAYOUTS[2]):
        means = {what: ratio(rows, other, what) for what in ("best_ms", "shuffle_bytes")}
        told = [f"{name} {mean:.2f}" for name, mean in zip(("time", "bytes handed on"), means.values()) if mean]
        lines += ["", f"Cluster beside {other}, geometric means: {', '.join(told)}."]
    report.leave(stem, rows, lines)


def ratio(rows: list[dict], other: str, what: str) -> float | None:
    """The mean of the cluster's figures over those of another layout; None where that has none."""
    mine = [float(row[what]) for row in rows if row["layout"] == LAYOUTS[1]]
    theirs = [float(row[what]) for row in rows if row["layout"] == other]
    pairs = [one / two for one, two in zip(mine, theirs) if one and two]
    return statistics.geometric_mean(pairs) if pairs else None


if __name__ == "__main__":
    main()
