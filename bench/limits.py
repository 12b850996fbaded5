"""Time and peak memory of grouping under memory limits: grouse, stock DataFusion and DuckDB, answers checked.

In: flags (`--help`). Out: `record/<host>/limits.csv` and a summary.
Invariant: every run has a process of its own, whose peak is the system's figure; engines run in turn (A B C A B C). No
memory is touched beforehand: it would be the peak.
"""

import argparse
import datetime
import re
import tempfile
from pathlib import Path

import queries
import report
from run import SetRun, checked, judge, shared_flags, stem_of

UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9}


def main() -> None:
    flags = parse_flags()
    rows = []
    for set_name in flags.set.split(","):
        rows += LimitRun(set_name, flags).rows()
    if not rows:
        raise SystemExit(f"no query matches --queries {flags.queries!r}")
    stem = stem_of(flags)
    write(stem, rows)
    if not flags.no_picture and report.picture("plot_limits.py", stem, flags.python_peers):
        print(f"wrote {stem}.svg")


def parse_flags() -> argparse.Namespace:
    parser = shared_flags(__doc__)
    parser.add_argument("--limits", default="none,10GB,8GB,6GB,4GB,3GB,2GB,1GB,512MB", help="memory limits, with commas")
    parser.set_defaults(
        set="tpch,g1,numbers",
        queries="t10_|t04_|t08_|g10_|n06_|n07_",
        engines="grouse,datafusion,duckdb",
        rounds=2,
        size="large",
        timeout=300.0,
        label="limits",
        touch_gb=0,
    )
    return checked(parser)


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
        answers = {engine.name: [] for engine in self.engines}
        for _ in range(self.flags.rounds):
            for engine in self.engines:
                answers[engine.name].append(self.once(engine, limit, query))
        # Where nobody has recorded the right rows, DuckDB's first ones count.
        known = [answer["rows"] for answer in answers.get("duckdb", []) if "rows" in answer]
        if known:
            self.expected.setdefault(query.name, known[0])
        rows = [self.row(limit, query, engine, of_engine) for engine, of_engine in answers.items()]
        shown = ", ".join(f"{row['engine']} {row['best_s'] or row['status']} s {row['peak_mb']} MB" for row in rows)
        print(f"{query.name} {limit}: {shown}", flush=True)
        return rows

    def once(self, engine, limit: str, query: queries.Query) -> dict:
        with tempfile.TemporaryDirectory() as folder:
            engine.opening |= {"memory_bytes": bytes_of(limit), "temp_folder": folder}
            answer = engine.query(query.text(engine.name), self.size.rows, self.flags.timeout)
            engine.stop()
        return answer

    def row(self, limit: str, query: queries.Query, engine: str, answers: list[dict]) -> dict:
        result = report.Result(self.set_name, self.size.rows, query.name, engine)
        peak_bytes = 0
        for answer in answers:
            if result.status in ("ok", "unchecked"):
                judge(result, answer, self.expected.get(query.name), query)
            if "seconds" in answer:
                result.samples_s.append(answer["seconds"])
            peak_bytes = max(peak_bytes, answer.get("peak_bytes", 0))
        return {
            "set": result.set_name,
            "table_rows": result.table_rows,
            "query": result.query,
            "limit": limit,
            "engine": engine,
            "status": result.status,
            "best_s": "" if result.best_s is None else f"{result.best_s:.3f}",
            "peak_mb": peak_bytes // 10**6,
            "samples_s": " ".join(f"{sample:.3f}" for sample in result.samples_s),
            "detail": result.detail.replace("\n", " ")[:200],
        }


def bytes_of(limit: str) -> int | None:
    if limit == "none":
        return None
    number, unit = re.fullmatch(r"(\d+)([KMG]B)", limit).groups()
    return int(number) * UNITS[unit]


def write(stem: Path, rows: list[dict]) -> None:
    engines = list(dict.fromkeys(row["engine"] for row in rows))
    lines = [f"{datetime.date.today()}, {report.processor()}. Seconds and peak MB of the process.", ""]
    lines += ["| query | limit | " + " | ".join(engines) + " |", "|---|---|" + "---|" * len(engines)]
    for query, limit in dict.fromkeys((row["query"], row["limit"]) for row in rows):
        cells = [
            f"{row['best_s'] or row['status']} ({row['peak_mb']} MB)"
            for engine in engines
            for row in rows
            if (row["query"], row["limit"], row["engine"]) == (query, limit, engine)
        ]
        lines.append(f"| {query} | {limit} | " + " | ".join(cells) + " |")
    report.leave(stem, rows, lines)


if __name__ == "__main__":
    main()
