"""What workers decide about a full table, beside both choices forced: is the decision ever dear?

In: flags (`--help`), `grouse-policy` of this build. Out: `record/<host>/policy.csv`, a summary and a picture: CPU nanoseconds per row of
each case and choice, and what was decided as a multiple of the better of the two that were forced.
Invariant: the choices of a case see the same rows and take turns; CPU time needs no cores, so 16 workers are measured on two.
"""

import argparse
import csv
import datetime
import math
import statistics
import subprocess
from pathlib import Path

import report
from run import HERE, record_flags, stem_of

BOUND = 1.15
CASE = "rows groups order width states workers".split()
CHOICES = ("measured", "look up", "go by")


def main() -> None:
    parser = record_flags(__doc__)
    parser.add_argument("--bin", default=str(HERE.parent / "target/release"), help="folder of grouse-policy")
    parser.add_argument("--python-peers", default=str(HERE.parent / ".bench-venv/bin/python"))
    parser.add_argument("--no-picture", action="store_true", help="write no SVG (it needs matplotlib)")
    parser.add_argument("--from", dest="source", help="a file that grouse-policy has printed: nothing is measured")
    for name in ("groups", "workers", "widths", "order", "states", "one-in"):
        parser.add_argument(f"--{name}", help="as of grouse-policy")
    parser.set_defaults(rows=2_000_000, rounds=3, label="policy")
    flags = parser.parse_args()
    text = Path(flags.source).read_text() if flags.source else measured(flags)
    stem = stem_of(flags)
    write(stem, list(csv.DictReader(text.splitlines())))
    if not flags.no_picture:
        report.picture("plot_policy.py", stem, flags.python_peers)


def measured(flags: argparse.Namespace) -> str:
    command = [str(Path(flags.bin).resolve() / "grouse-policy")]
    for name in ("rows", "rounds", "groups", "workers", "widths", "order", "states", "one_in"):
        value = getattr(flags, name)
        command += [] if value is None else [f"--{name.replace('_', '-')}", str(value)]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def write(stem: Path, found: list[dict[str, str]]) -> None:
    cases: dict[tuple[str, ...], dict[str, dict[str, str]]] = {}
    for row in found:
        cases.setdefault(tuple(row[name] for name in CASE), {})[row["choice"]] = row
    rows = [one_case(case, choices) for case, choices in cases.items() if set(choices) == set(CHOICES)]
    ratios = [float(row["ratio"]) for row in rows]
    dear = sorted((row for row in rows if float(row["ratio"]) > BOUND), key=lambda row: -float(row["ratio"]))
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    head = f"{datetime.date.today()}, {report.processor()}. {len(rows)} cases: what is decided takes {mean:.2f} of the CPU time of the "
    head += f"better choice (geometric mean), at most {max(ratios):.2f}; more than {BOUND} in {len(dear)}."
    lines = [head, "", "CPU nanoseconds per row of those, and which share of the rows went by:", ""]
    lines += ["| rows | groups | order | bytes of a key | states | workers | decided | look up | go by | ratio | went by |"]
    lines += ["|---:|---:|---|---:|---|---:|---:|---:|---:|---:|---:|"]
    lines += ["| " + " | ".join(cells_of(row)) + " |" for row in dear]
    report.leave(stem, rows, lines)


def one_case(case: tuple[str, ...], choices: dict[str, dict[str, str]]) -> dict[str, str]:
    cpu = {name: float(row["build_ns"]) + float(row["merge_ns"]) for name, row in choices.items()}
    better = min(cpu["look up"], cpu["go by"])
    row = dict(zip(CASE, case)) | {f"{name.replace(' ', '_')}_ns": f"{cpu[name]:.2f}" for name in CHOICES}
    decided = choices["measured"]
    return row | {"ratio": f"{cpu['measured'] / better:.3f}", "flushes": decided["flushes"], "bypassed": decided["bypassed"]}


def cells_of(row: dict[str, str]) -> list[str]:
    numbers = [f"{float(row[f'{name.replace(chr(32), chr(95))}_ns']):.1f}" for name in CHOICES]
    return [*(row[name] for name in CASE), *numbers, f"{float(row['ratio']):.2f}", f"{float(row['bypassed']):.0%}"]


if __name__ == "__main__":
    main()
