"""The benchmark: grouse and its peers on the same queries, in turn, answers checked.

In: flags (`--help`). Out: `record/<host>/<label>.csv`, a summary and a picture beside it, a row of the history.
Invariant: in every round each engine runs the query once, one after the other (A B C A B C), so that a slow minute of the
machine hits all of them; nothing is left out: errors, timeouts and wrong answers are rows of the record too.
"""

import argparse
import os
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import queries
import report
from compare import difference
from processes import DecodeProcess, EngineProcess

HERE = Path(__file__).resolve().parent
ENGINES = ("grouse", "datafusion", "duckdb", "chdb", "polars")
FORMS = {
    "datafusion": ["engines.grouse", "datafusion"],
    "grouse-strings": ["engines.grouse", "strings"],
    "grouse-conditions": ["engines.grouse", "conditions"],
    "duckdb-enums": ["engines.duckdb", "enums"],
}
"""Other forms of an engine's module; those that are not among the engines run when they are asked for."""
OWN = ("grouse", "datafusion", "grouse-strings", "grouse-conditions")
"""Engines of the grouse package; the others come from the bench-only environment."""
RESIDENT_SHARE_MAX = 0.5
"""Engines that keep memory are restarted when together they hold more than this share of the machine's."""


def main() -> None:
    flags = parse_flags()
    stem = stem_of(flags)
    results = []
    for set_name in flags.set.split(","):
        results += SetRun(set_name, flags).results()
    if not results:
        raise SystemExit(f"no query matches --queries {flags.queries!r}")
    report.write(stem, results, report.Machine.here(flags))
    if not flags.no_picture and report.picture("plot.py", stem, flags.python_peers):
        print(f"wrote {stem}.svg")
    wrong = [result for result in results if result.engine in OWN and result.status != "ok"]
    for result in wrong:
        print(f"NOT OK: {result.set_name} {result.query} {result.engine}: {result.status}: {result.detail}")
    sys.exit(1 if wrong else 0)


def parse_flags() -> argparse.Namespace:
    parser = shared_flags(__doc__)
    parser.add_argument("--touch-gb", type=float, default=4.0, help="memory that each process touches and frees first")
    return checked(parser)


def record_flags(description: str) -> argparse.ArgumentParser:
    """The flags of every benchmark: rounds, folders, names."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="timed runs of each query and engine")
    parser.add_argument("--rows", type=int, help="any other number of rows (hits, g1, numbers)")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds that one run may take")
    parser.add_argument("--data", default=str(HERE.parent / "data"), help="folder of the tables; missing ones are made")
    parser.add_argument("--record", default=str(HERE / "record"), help="folder of the results")
    parser.add_argument("--label", default="all", help="name of the results, which take the place of earlier ones of that name")
    parser.add_argument("--host", default=socket.gethostname().split(".")[0], help="name of this machine in the record")
    parser.add_argument("--python-grouse", default=str(HERE.parent / ".venv/bin/python"))
    return parser


def shared_flags(description: str) -> argparse.ArgumentParser:
    """The flags of every benchmark of queries."""
    parser = record_flags(description)
    parser.add_argument("--set", default="hits,g1,tpch,numbers", help="query sets, with commas")
    parser.add_argument("--queries", default="", help="only queries whose name matches this regular expression")
    parser.add_argument("--engines", default=",".join(ENGINES), help="engines, with commas")
    parser.add_argument("--size", default="default", choices=["default", "small", "large"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-picture", action="store_true", help="write no SVG (it needs matplotlib)")
    parser.add_argument("--bin", default=str(HERE.parent / "target/release"), help="folder of grouse-datagen, grouse-decode")
    parser.add_argument("--python-peers", default=str(HERE.parent / ".bench-venv/bin/python"))
    return parser


def checked(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The flags of this call; names that nothing has are a usage error."""
    flags = parser.parse_args()
    known = dict.fromkeys([*ENGINES, *FORMS])
    unknown = set(flags.engines.split(",")) - set(known)
    if unknown:
        parser.error(f"no engine {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    unknown = set(flags.set.split(",")) - set(queries.SIZES)
    if unknown:
        parser.error(f"no set {', '.join(sorted(unknown))}; there are {', '.join(queries.SIZES)}")
    return flags


def stem_of(flags: argparse.Namespace) -> Path:
    """Where the results go, without the end of the name."""
    record = Path(flags.record) / flags.host
    record.mkdir(parents=True, exist_ok=True)
    return record / flags.label


class SetRun:
    """All queries of one set on all engines."""

    def __init__(self, set_name: str, flags: argparse.Namespace) -> None:
        self.set_name = set_name
        self.flags = flags
        self.size = queries.size_of(set_name, flags.size, flags.rows)
        self.paths = self.tables()
        self.has_floor = bool(self.paths) and not self.size.parquet
        self.expected = queries.expected(set_name, self.size.rows)
        self.log = Path(tempfile.gettempdir()) / f"grouse-bench-{set_name}.log"
        self.engines = [self.engine(name) for name in flags.engines.split(",")]
        self.decoder = DecodeProcess(Path(flags.bin).resolve() / "grouse-decode", flags.threads, self.log)

    def tables(self) -> dict[str, str]:
        """Table -> its file, which is made where it is missing."""
        return {name: make_table(self.size, file, self.flags) for name, file in self.size.files.items()}

    def engine(self, name: str) -> EngineProcess:
        flags = self.flags
        python = flags.python_grouse if name in OWN else flags.python_peers
        module = FORMS.get(name, [f"engines.{name}"])
        opening = {"tables": self.paths, "threads": flags.threads, "touch_bytes": int(flags.touch_gb * 2**30)}
        return EngineProcess(name, [os.path.abspath(python), "-m", *module], opening, self.log)

    def results(self) -> list["report.Result"]:
        results = []
        try:
            for query in queries.load(self.set_name):
                if re.search(self.flags.queries, query.name):
                    row = self.measure(query)
                    results += row
                    print(report.progress_line(row), flush=True)
                    self.free_memory()
        finally:
            for process in [*self.engines, self.decoder]:
                process.stop()
        return results

    def measure(self, query: queries.Query) -> list["report.Result"]:
        results = {
            engine.name: report.Result(self.set_name, self.size.rows, query.name, engine.name) for engine in self.engines
        }
        right = self.expected.get(query.name)
        floors = []
        for timed in [False] + [True] * self.flags.rounds:
            seconds = self.decoder.seconds(*self.paths.values(), query.columns) if self.has_floor else None
            if timed and seconds is not None:
                floors.append(seconds)
            for engine in self.engines:
                result = results[engine.name]
                if result.status not in ("ok", "unchecked"):
                    continue  # it failed before; once is enough
                answer = engine.query(query.text(engine.name.split("-")[0]), self.size.rows, self.flags.timeout)
                if right is None and engine.name == "duckdb" and "rows" in answer:
                    right = answer["rows"]
                judge(result, answer, right, query)
                if timed and "seconds" in answer:
                    result.samples_s.append(answer["seconds"])
                    result.cpu_s.append(answer["cpu_seconds"])
        for result in results.values():
            result.floor_s = min(floors, default=None)
        return list(results.values())

    def free_memory(self) -> None:
        """Stops the engine that holds most, as long as all together hold too much."""
        machine_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        held = {engine: resident_bytes(engine) for engine in self.engines}
        while sum(held.values()) > RESIDENT_SHARE_MAX * machine_bytes:
            largest = max(held, key=held.get)
            largest.stop()
            held[largest] = 0


def judge(result: "report.Result", answer: dict, right: list | None, query: queries.Query) -> None:
    if "error" in answer:
        result.status, result.detail = answer["kind"], answer["error"]
        return
    result.result_rows = len(answer["rows"])
    if right is None:
        result.status = "unchecked"
        return
    wrong = difference(answer["rows"], right, query.tolerance)
    result.status, result.detail = ("wrong", wrong) if wrong else ("ok", "")


def resident_bytes(engine: EngineProcess) -> int:
    process = engine.lines.process
    try:
        with open(f"/proc/{process.pid if process else 0}/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0  # not running, or a system without /proc


def make_table(size: queries.Size, file: str, flags: argparse.Namespace) -> str:
    """The path of a table's file, which is made once."""
    path = Path(flags.data).resolve() / file
    if path.exists():
        return str(path)
    binaries = Path(flags.bin).resolve()
    if size.parquet and file != size.parquet:
        parquet = make_table(size, size.parquet, flags)
        copy = f"COPY (SELECT * FROM '{parquet}') TO '{path}'"
        subprocess.run([str(binaries / "grouse"), copy], check=True)
    else:
        subprocess.run([str(binaries / "grouse-datagen"), *size.make, "--out", str(path)], check=True)
    return str(path)


if __name__ == "__main__":
    main()
