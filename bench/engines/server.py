"""One engine in one process: answers requests until its input ends.

In: JSON lines {"op": "open", "tables", "threads", "touch_bytes"} and {"op": "query", "sql", "numbers"}.
Out: one JSON line each: {"seconds", "cpu_seconds", "columns", "rows", "resident_bytes", "peak_bytes"} or {"error", "kind"}.
Invariant: the clock runs from the SQL text to the fetched rows; making them JSON is not timed.
Not here: which query is run when, and whether the answer is right.
"""

import dataclasses
import datetime
import decimal
import json
import mmap
import os
import resource
import sys
import time
from typing import Any, Protocol


class Unsupported(Exception):
    """The engine has no way to say this query; recorded as such, which is not the same as an error."""


@dataclasses.dataclass
class Limit:
    """How much memory an engine may take, and where it may write instead."""

    memory_bytes: int
    temp_folder: str


class Engine(Protocol):
    """What a module of this package offers."""

    uniq: str
    """Name of the approximate distinct count."""

    def open(self, tables: dict[str, str], threads: int, limit: "Limit | None") -> None:
        """Makes files visible as tables, binary columns of Parquet as text."""

    def numbers(self, rows: int) -> str:
        """The text that stands for a table of 0 .. rows - 1, column `number`."""

    def query(self, sql: str) -> tuple[list[str], list[tuple]]:
        """Runs a query to its end: column names and rows."""


def serve(engine: Engine) -> None:
    """Answers requests with `engine`; anything an engine prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = OPERATIONS[request["op"]](engine, request)
        except Unsupported as error:
            answer = {"kind": "unsupported", "error": str(error)}
        except MemoryError:
            answer = {"kind": "error", "error": "out of memory"}
        except Exception as error:  # whatever a peer raises is its answer, and is recorded as one
            answer = {"kind": "error", "error": f"{type(error).__name__}: {error}"[:500]}
        print(json.dumps(answer), file=answers)


def open_tables(engine: Engine, request: dict) -> dict:
    touch(request["touch_bytes"])
    memory_bytes = request.get("memory_bytes")
    limit = Limit(memory_bytes, request["temp_folder"]) if memory_bytes else None
    engine.open(request["tables"], request["threads"], limit)
    return {"opened": sorted(request["tables"])}


def run_query(engine: Engine, request: dict) -> dict:
    sql = request["sql"].replace("{uniq}", engine.uniq)
    if "{numbers}" in sql:
        sql = sql.replace("{numbers}", engine.numbers(request["numbers"]))
    cpu_started, started = time.process_time(), time.perf_counter()
    columns, rows = engine.query(sql)
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
    return {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "columns": columns,
        "rows": [[plain(value) for value in row] for row in rows],
        "resident_bytes": resident_bytes(),
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


OPERATIONS = {"open": open_tables, "query": run_query}


def touch(size_bytes: int) -> None:
    """Writes to as many pages as a query may need and gives them back, so that no query pays for their first touch."""
    if size_bytes:
        with mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as pages:
            for at in range(0, size_bytes, mmap.PAGESIZE):
                pages[at] = 1


def plain(value: Any) -> Any:
    """A value as JSON holds it: decimals are {"decimal": text}, dates are text, integers stay exact."""
    if isinstance(value, decimal.Decimal):
        return {"decimal": str(value)}
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, datetime.datetime) and value.time() == datetime.time.min:
        return value.date().isoformat()
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    if hasattr(value, "item"):  # a numpy scalar
        return plain(value.item())
    return value


def resident_bytes() -> int:
    try:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * mmap.PAGESIZE
    except OSError:  # not Linux: the highest so far, which is the unit that it has
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
