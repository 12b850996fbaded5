"""The serial share of merges: what one worker does while the others wait, by the operator's own counters.

In: flags (`--help`). Out: `record/<host>/serial.csv` and a summary.
Invariant: times are those that EXPLAIN ANALYZE shows of a whole query, added up over its groupings and workers; of the
rounds the least of each counts, since workers that wait for a core count that as their time. With more workers than
cores they share a core; their counters do not.
"""

import datetime
import re
from pathlib import Path

import queries
import report
from run import SetRun, checked, shared_flags, stem_of

UNITS = {"ns": 1e-6, "µs": 1e-3, "ms": 1.0, "s": 1e3}
MERGE = ("cut_time", "merge_time", "emit_time")
"""Cutting partitions into tasks is serial; merging and emitting them is not."""


def main() -> None:
    parser = shared_flags(__doc__)
    parser.set_defaults(threads=8, label="serial", set="hits,g1,numbers", engines="grouse", queries="distinct|uniq|g0[689]")
    flags = checked(parser)
    flags.engines, flags.touch_gb = "grouse", 1.0
    rows = []
    for set_name in flags.set.split(","):
        runner = SetRun(set_name, flags)
        try:
            for query in queries.load(set_name):
                if re.search(flags.queries, query.name):
                    rows.append(measured(runner, query, flags))
                    print("{query}: {serial_percent} %".format_map(rows[-1]), flush=True)
        finally:
            for process in [*runner.engines, runner.decoder]:
                process.stop()
    write(stem_of(flags), rows, flags)


def measured(runner: SetRun, query: queries.Query, flags) -> dict:
    rounds = []
    for _ in range(flags.rounds):
        answer = runner.engines[0].query("EXPLAIN ANALYZE " + query.text("grouse"), runner.size.rows, flags.timeout)
        if "error" in answer:
            raise SystemExit(f"{query.name}: {answer['error']}")
        text = "\n".join(str(cell) for row in answer["rows"] for cell in row)
        rounds.append([milliseconds(text, name) for name in MERGE])
    cut, merge, emit = map(min, zip(*rounds))
    whole = cut + merge + emit
    return {
        "set": runner.set_name,
        "query": query.name,
        "cut_ms": f"{cut:.3f}",
        "merge_ms": f"{merge:.1f}",
        "emit_ms": f"{emit:.1f}",
        "serial_percent": f"{100 * cut / whole:.2f}" if whole else "0.00",
    }


def milliseconds(text: str, name: str) -> float:
    """The sum of one time over all groupings of a plan."""
    lines = [line for line in text.splitlines() if "GroupByExec" in line]
    found = re.findall(rf"\b{name}=([\d.]+)(ns|µs|ms|s)\b", "\n".join(lines))
    assert found, f"no {name} in\n{text}"
    return sum(float(number) * UNITS[unit] for number, unit in found)


def write(stem: Path, rows: list[dict], flags) -> None:
    lines = [f"{datetime.date.today()}, {report.processor()}. {flags.threads} workers, {flags.rounds} rounds.", ""]
    lines += ["| query | cutting (one worker), ms | merging, ms of CPU | emitting, ms of CPU | serial share, % |"]
    lines += ["|---|---:|---:|---:|---:|"]
    lines += ["| {query} | {cut_ms} | {merge_ms} | {emit_ms} | {serial_percent} |".format_map(row) for row in rows]
    report.leave(stem, rows, lines)


if __name__ == "__main__":
    main()
