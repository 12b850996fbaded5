"""Time and peak memory of grouping under memory limits: grouse, stock DataFusion and DuckDB, answers checked.

In: flags (`--help`). Out: `record/<date>-<host>-limits.csv` and a summary.
Invariant: every run has a process of its own, whose peak is the system's figure; engines run in turn (A B C A B C). No
memory is touched beforehand: it would be the peak.
"""

import argparse
import csv
import datetime
import re
import socket
import tempfile
from pathlib import Path

import queries
from report import processor
from run import HERE, SetRun, judge

UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9}


def main() -> None:
    flags = parse_flags()
    rows = []
    for set_name in flags.set.split(","):
        rows += LimitRun(set_name, flags).rows()
    if not rows:
        raise SystemExit(f"no query matches --queries {flags.queries!r}")
    write(Path(flags.record) / f"{datetime.date.today()}-{flags.host}{flags.suffix}", rows)


def parse_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", default="tpch,g1", help="query sets, with commas")
    parser.add_argument("--queries", default="t10_distinct|t04_|t08_|g10_", help="only queries that match this expression")
    parser.add_argument("--limits", default="none,8GB,4GB,2GB,1GB,512MB", help="memory limits, with commas")
    parser.add_argument("--engines", default="grouse,datafusion,duckdb", help="engines, with commas")
    parser.add_argument("--rounds", type=int, default=2, help="runs of each; the best counts")
    parser.add_argument("--size", default="default", choices=["default", "small", "large"])
    parser.add_argument("--rows", type=int, help="any other number of rows (hits, g1, numbers)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds that one run may take")
    parser.add_argument("--data", default=str(HERE.parent / "data"), help="folder of the tables; missing ones are made")
    parser.add_argument("--record", default=str(HERE / "record"), help="folder of the results")
    parser.add_argument("--suffix", default="-limits", help="added to the names of the results")
    parser.add_argument("--host", default=socket.gethostname().split(".")[0], help="name of this machine in the record")
    parser.add_argument("--bin", default=str(HERE.parent / "target/release"), help="folder of grouse-datagen, grouse-decode")
    parser.add_argument("--python-grouse", default=str(HERE.parent / ".venv/bin/python"))
    parser.add_argument("--python-peers", default=str(HERE.parent / ".bench-venv/bin/python"))
    return parser.parse_args(namespace=argparse.Namespace(touch_gb=0))


class LimitRun(SetRun):
    """The queries of one set under each limit."""

    def rows(self) -> list[dict]:
        wanted = [query for query in queries.load(self.set_name) if re.search(self.flags.queries, query.name)]
        rows = []
        for query in wanted:
            for limit in self.flags.limits.split(","):
                rows += self.under(limit, query)
        return rows

    def under(self, limit: str, query: queries.Query) -> list[dict]:
        runs = {engine.name: [] for engine in self.engines}
        for _ in range(self.flags.rounds):
            for engine in self.engines:
                runs[engine.name].append(self.once(engine, limit, query))
        rows = [self.row(limit, query, name, results) for name, results in runs.items()]
        shown = ", ".join(f"{row['engine']} {row['best_s'] or row['status']} s {row['peak_mb']} MB" for row in rows)
        print(f"{query.name} {limit}: {shown}", flush=True)
        return rows

    def once(self, engine, limit: str, query: queries.Query) -> tuple[str, str, float | None, int]:
        with tempfile.TemporaryDirectory() as folder:
            engine.opening |= {"memory_bytes": bytes_of(limit), "temp_folder": folder}
            answer = engine.query(query.text(engine.name), self.size.rows, self.flags.timeout)
            engine.stop()
        result = Verdict()
        judge(result, answer, self.expected.get(query.name), query)
        return result.status, result.detail, answer.get("seconds"), answer.get("peak_bytes", 0)

    def row(self, limit: str, query: queries.Query, engine: str, runs: list[tuple]) -> dict:
        bad = [run for run in runs if run[0] not in ("ok", "unchecked")]
        status, detail = (bad or runs)[0][:2]
        return {
            "set": self.set_name,
            "table_rows": self.size.rows,
            "query": query.name,
            "limit": limit,
            "engine": engine,
            "status": status,
            "best_s": "" if bad else f"{min(run[2] for run in runs):.3f}",
            "peak_mb": max(run[3] for run in runs) // 10**6,
            "samples_s": " ".join(f"{run[2]:.3f}" for run in runs if run[2] is not None),
            "detail": detail.replace("\n", " ")[:200],
        }


class Verdict:
    """What `judge` says of one answer."""

    status = detail = ""
    result_rows = 0


def bytes_of(limit: str) -> int | None:
    if limit == "none":
        return None
    number, unit = re.fullmatch(r"(\d+)([KMG]B)", limit).groups()
    return int(number) * UNITS[unit]


def write(stem: Path, rows: list[dict]) -> None:
    stem.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{stem}.csv", "w", newline="") as file:
        table = csv.DictWriter(file, rows[0], lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    engines = list(dict.fromkeys(row["engine"] for row in rows))
    lines = [f"{datetime.date.today()}, {processor()}. Seconds and peak MB of the process.", ""]
    lines += ["| query | limit | " + " | ".join(engines) + " |", "|---|---|" + "---|" * len(engines)]
    for query, limit in dict.fromkeys((row["query"], row["limit"]) for row in rows):
        cells = [
            f"{row['best_s'] or row['status']} ({row['peak_mb']} MB)"
            for engine in engines
            for row in rows
            if (row["query"], row["limit"], row["engine"]) == (query, limit, engine)
        ]
        lines.append(f"| {query} | {limit} | " + " | ".join(cells) + " |")
    text = "\n".join(lines) + "\n"
    Path(f"{stem}.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
