"""What a cluster costs: one process, a scheduler with two executors, and these with DataFusion's operator in every stage.

In: flags (`--help`). Out: `record/<host>/cluster.csv` and a summary.
Invariant: each layout has processes of its own, layouts follow one another query by query, and each answer has to be right.
On one machine a cluster is not faster: what is measured are its overhead and what its stages hand on.
CPU time and the peak of memory are those of all processes of the layout, the client's with them. Bytes are those on disk.
"""

import contextlib
import dataclasses
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
CHOSEN = {
    "hits": "low_key_many_aggregates|low_string_key|medium_key|medium_key_two_distincts|high_integer_key|user_and_phrase"
    "|distinct_string|long_string_key",
    "tpch": "t01_pricing_summary|t13_orders_of_customers|t18_large_orders",
    "g1": "g10_all_keys",
}
FIGURES = ("best_ms", "cpu_ms", "stages", "shuffle_rows", "shuffle_bytes", "shuffle_bytes_per_row", "peak_mb", "samples_ms")
JOINED = {
    "t13_orders_of_customers": """
        SELECT c_count, count(*) AS custdist FROM (
            SELECT c_custkey, count(o_orderkey) AS c_count FROM customer
            LEFT JOIN orders ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%' GROUP BY c_custkey
        ) AS c GROUP BY c_count ORDER BY custdist DESC, c_count DESC""",
    "t18_large_orders": """
        SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) AS q FROM customer, orders, lineitem
        WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 250)
        AND c_custkey = o_custkey AND o_orderkey = l_orderkey
        GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
        ORDER BY o_totalprice DESC, o_orderdate, o_orderkey LIMIT 100""",
}
"""TPC-H's questions 13 and 18, which read more tables than those of the set. Large orders are so from 250 on: few tables have one of 300."""


def main() -> None:
    if sys.argv[1:2] == ["one"]:
        return one(json.loads(sys.argv[2]))
    parser = shared_flags(__doc__)
    parser.set_defaults(set=",".join(CHOSEN), label="cluster", engines="grouse")
    parser.add_argument("--memory", default="2GB", help="memory limit of an executor")
    parser.add_argument("--executors", type=int, default=2, help="how many there are")
    parser.add_argument("--vcores", type=int, default=1, help="cores of an executor")
    flags = checked(parser)
    rows = [row for set_name in flags.set.split(",") for row in of_set(set_name, flags)]
    write(stem_of(flags), rows, flags)


def of_set(set_name: str, flags) -> list[dict]:
    size = queries.size_of(set_name, flags.size, flags.rows)
    chosen = re.compile(flags.queries or f"^({CHOSEN[set_name]})$")
    asked = filter(lambda query: chosen.search(query.name), of_name(set_name))
    rows = []
    for query in asked:
        tables = tables_of(set_name, size, flags, query.name in JOINED)
        right = queries.expected(set_name, size.rows).get(query.name)
        for layout in LAYOUTS:
            answer = measured(layout, query, tables, flags)
            if "error" not in answer:
                right = right or answer["rows"]
                wrong = difference(answer["rows"], right, query.tolerance)
                if wrong:
                    raise SystemExit(f"{query.name}, {layout}: {wrong}")
            rows.append(row(set_name, query.name, layout, answer, size.rows))
            print("{query}, {layout}: {best_ms} ms {error}".format_map(rows[-1]), flush=True)
    return rows


def of_name(set_name: str) -> list[queries.Query]:
    joined = [queries.Query(name, [], queries.ROUNDING, sql, {}) for name, sql in JOINED.items()]
    return queries.load(set_name) + (joined if set_name == "tpch" else [])


def tables_of(set_name: str, size: queries.Size, flags, is_joined: bool) -> dict[str, str]:
    """Table -> its file, which is made once."""
    tables = {name: make_table(size, file, flags) for name, file in size.files.items()}
    scale = size.make[-1]
    for name in ("orders", "customer") if is_joined else ():
        other = dataclasses.replace(size, make=["tpch", "--table", name, "--scale", scale])
        tables[name] = make_table(other, f"{name}_sf{scale}.parquet", flags)
    return tables


def measured(layout: str, query: queries.Query, tables: dict[str, str], flags) -> dict:
    asked = {"layout": layout, "sql": query.text("grouse"), "tables": tables, "rounds": flags.rounds}
    asked |= {"memory": flags.memory, "executors": flags.executors, "vcores": flags.vcores}
    command = [os.path.abspath(flags.python_grouse), __file__, "one", json.dumps(asked)]
    environment = {**os.environ, "GROUSE_CLUSTER": str(Path(flags.bin).resolve() / "grouse-cluster")}
    try:
        within_s = flags.timeout * (flags.rounds + 2)
        done = subprocess.run(command, capture_output=True, text=True, timeout=within_s, cwd=HERE, env=environment)
    except subprocess.TimeoutExpired:
        return {"error": f"it takes more than {within_s:.0f} s"}
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1]}
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
        with grouse.connect(threads=asked["executors"] * asked["vcores"], condition_cache="off") as con:
            yield con, own
        return
    sys.path.insert(0, str(HERE.parent / "crates/node/tests"))
    from cluster_processes import Cluster

    sizes = asked["executors"], asked["vcores"], asked["memory"]
    with tempfile.TemporaryDirectory() as folder, Cluster(Path(folder), *sizes) as cluster:
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
    """A row of the record; of a layout that fails it has the error alone."""
    told = {"set": set_name, "query": query, "layout": layout, **dict.fromkeys(FIGURES, ""), "error": answer.get("error", "")}
    if told["error"]:
        return told
    samples = answer["samples_s"]
    return told | {
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
    first = f"{datetime.date.today()}, {report.processor()}. {flags.executors} executors of {flags.vcores} vcore"
    first += f" and {flags.memory}, {flags.rounds} rounds."
    lines = [first, "", "| query | layout | ms | CPU, ms | stages | rows handed on | bytes handed on | per row of input | peak MB |"]
    lines += ["|---|---|---:|---:|---:|---:|---:|---:|---:|"]
    cells = "| {query} | {layout} | {best_ms} | {cpu_ms} | {stages} | {shuffle_rows} | {shuffle_bytes} | {shuffle_bytes_per_row} | {peak_mb}{error} |"
    lines += [cells.format_map(row) for row in rows]
    for other in (LAYOUTS[0], LAYOUTS[2]):
        means = {what: ratio(rows, other, what) for what in ("best_ms", "shuffle_bytes")}
        told = [f"{name} {mean:.2f}" for name, mean in zip(("time", "bytes handed on"), means.values()) if mean]
        lines += ["", f"Cluster beside {other}, geometric means: {', '.join(told)}."]
    report.leave(stem, rows, lines)


def ratio(rows: list[dict], other: str, what: str) -> float | None:
    """The mean of the cluster's figures over those of another layout; None where that has none."""
    mine = [float(row[what] or 0) for row in rows if row["layout"] == LAYOUTS[1]]
    theirs = [float(row[what] or 0) for row in rows if row["layout"] == other]
    pairs = [one / two for one, two in zip(mine, theirs) if one and two]
    return statistics.geometric_mean(pairs) if pairs else None


if __name__ == "__main__":
    main()
