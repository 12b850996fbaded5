"""Records the expected rows: DuckDB's answer, once a second engine has confirmed it.

In: a set and a size, as for `run.py`. Out: `queries/expected/<set>-<rows>.json`.
Invariant: nothing is written unless every query was confirmed by at least one other engine (chDB, then Polars).
Estimates (`tolerance` in the query) are recorded as exact counts: `{uniq}` becomes `count(DISTINCT ...)`.
"""

import json
import re
import sys
from pathlib import Path

import queries
import run
from compare import difference

SECOND = ("chdb", "polars")


def main() -> None:
    sys.argv += ["--engines", "duckdb,chdb,polars"]
    flags = run.parse_flags()
    flags.timeout = max(flags.timeout, 600.0)
    for set_name in flags.set.split(","):
        record(run.SetRun(set_name, flags), flags)


def record(runner: run.SetRun, flags) -> None:
    engines = {engine.name: engine for engine in runner.engines}
    right, unconfirmed = {}, []
    try:
        for query in queries.load(runner.set_name):
            answer = ask(engines["duckdb"], query, runner, flags)
            if "error" in answer:
                raise SystemExit(f"{query.name}: {answer['error']}")
            right[query.name] = answer["rows"]
            complaints = confirm(engines, query, answer["rows"], runner, flags)
            runner.free_memory()
            if complaints:
                unconfirmed.append(query.name)
                print(f"NOT CONFIRMED {query.name}: " + "; ".join(complaints), flush=True)
            else:
                print(f"{query.name}: {len(answer['rows'])} rows", flush=True)
    finally:
        for engine in runner.engines:
            engine.stop()
    if unconfirmed:
        raise SystemExit(f"nothing written: {', '.join(unconfirmed)}")
    write(queries.expected_path(runner.set_name, runner.size.rows), right)


def confirm(engines: dict, query: queries.Query, rows: list, runner: run.SetRun, flags) -> list[str]:
    """Nothing if one of the others agrees, else what each of them said."""
    complaints = []
    for name in SECOND:
        answer = ask(engines[name], query, runner, flags)
        said = answer.get("error") or difference(answer["rows"], rows, query.tolerance)
        if said is None:
            return []
        complaints.append(f"{name}: {said}")
    return complaints


def ask(engine, query: queries.Query, runner: run.SetRun, flags) -> dict:
    sql = re.sub(r"\{uniq\}\((.*?)\)", r"count(DISTINCT \1)", query.text(engine.name))
    return engine.query(sql, runner.size.rows, flags.timeout)


def write(path: Path, right: dict[str, list]) -> None:
    """One result row a line, so that a change can be read."""
    path.parent.mkdir(exist_ok=True)
    entries = []
    for name, rows in right.items():
        lines = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in rows)
        entries.append(f"{json.dumps(name)}: [\n{lines}\n]")
    path.write_text("{\n" + ",\n".join(entries) + "\n}\n")
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
