"""What a run of the benchmark leaves behind: a CSV of all samples, a summary in Markdown, a picture.

In: one `Result` per query and engine. Out: `<stem>.csv`, `<stem>.md`, `<stem>.svg`, a row of `history.csv`, the index of the record.
Invariant: the summary is computed from what the CSV holds; ratios add 10 ms on both sides, so that noise on queries of a
few milliseconds does not decide a mean.
"""

import argparse
import csv
import dataclasses
import datetime
import math
import os
import platform
import statistics
import subprocess
from pathlib import Path

ADDED_S = 0.010
PEERS = ("duckdb", "chdb", "polars")


def leave(stem: Path, rows: list[dict], lines: list[str]) -> None:
    """Writes rows as CSV and lines as Markdown, and shows these."""
    with open(f"{stem}.csv", "w", newline="") as file:
        table = csv.DictWriter(file, rows[0], lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    text = "\n".join(lines) + "\n"
    Path(f"{stem}.md").write_text(text)
    print(text)
    remember(stem, {})


REMEMBERED = "date label queries grouse_to_best_peer grouse_to_datafusion".split()


def remember(stem: Path, means: dict[str, str]) -> None:
    """A row of `history.csv` in the folder of the machine, and the index of the latest runs in the folder above it."""
    history = stem.parent / "history.csv"
    is_new = not history.exists()
    row = {"date": datetime.date.today().isoformat(), "label": stem.name} | means
    with open(history, "a", newline="") as file:
        table = csv.DictWriter(file, REMEMBERED, restval="", lineterminator="\n")
        if is_new:
            table.writeheader()
        table.writerow(row)
    index(stem.parent.parent)


def index(record: Path) -> None:
    """`README.md` of the record: the latest run of each name, with a line that its summary begins with."""
    lines = ["# Record", "", "The latest run of each name; `history.csv` of a machine has one row per run. Ratios are of time,"]
    lines += ["geometric means over the queries that both sides answered rightly: less than 1 is faster.", ""]
    lines += ["| run | date | queries | grouse / best peer | grouse / DataFusion |", "|---|---|---:|---:|---:|"]
    for history in sorted(record.glob("*/history.csv")):
        machine = history.parent.name
        with open(history, newline="") as file:
            latest = {row["label"]: row for row in csv.DictReader(file)}
        for label, row in sorted(latest.items()):
            cells = [f"[{machine}/{label}]({machine}/{label}.md)", *(row[name] for name in REMEMBERED if name != "label")]
            lines.append("| " + " | ".join(cells) + " |")
    (record / "README.md").write_text("\n".join(lines) + "\n")


@dataclasses.dataclass
class Result:
    """One query on one engine."""

    set_name: str
    table_rows: int
    query: str
    engine: str
    status: str = "ok"
    """ok, wrong, unchecked, unsupported, error, timeout or crash"""
    detail: str = ""
    result_rows: int | None = None
    samples_s: list[float] = dataclasses.field(default_factory=list)
    cpu_s: list[float] = dataclasses.field(default_factory=list)
    """CPU time of the whole process in each of the samples"""
    floor_s: float | None = None

    @property
    def best_s(self) -> float | None:
        """None unless the answer was right: a wrong answer has no speed."""
        return min(self.samples_s, default=None) if self.status in ("ok", "unchecked") else None

    @property
    def best_cpu_s(self) -> float | None:
        """CPU time of the best sample."""
        return None if self.best_s is None else self.cpu_s[self.samples_s.index(self.best_s)]


@dataclasses.dataclass
class Machine:
    """Where and how the run was made."""

    lines: list[str]

    @classmethod
    def here(cls, flags: argparse.Namespace) -> "Machine":
        memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
        load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
        return cls(
            [
                f"{datetime.date.today()}, {flags.host}: {processor()}, {os.cpu_count()} CPUs, {memory_gb:.0f} GiB",
                f"{flags.threads} threads, {flags.rounds} rounds in turn after a warm-up, {flags.touch_gb:g} GiB touched beforehand",
                f"load at the end (1, 5, 15 minutes): {load}; versions: {versions(flags)}",
            ]
        )


def processor() -> str:
    try:
        with open("/proc/cpuinfo") as info:
            names = [line.split(":", 1)[1].strip() for line in info if line.startswith("model name")]
        return names[0] if names else platform.machine()
    except OSError:
        return platform.processor() or platform.machine()


def versions(flags: argparse.Namespace) -> str:
    """Of the packages that are there."""
    script = "import importlib.metadata as m; known = {d.name: d.version for d in m.distributions()}\n"
    script += "print(', '.join(f'{p} {known[p]}' for p in %r if p in known))"
    found = []
    for python, packages in ((flags.python_grouse, ["grouse"]), (flags.python_peers, ["duckdb", "chdb-core", "polars"])):
        command = [python, "-c", script % (packages,)]
        try:
            found.append(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
        except (OSError, subprocess.CalledProcessError):
            found.append(f"{', '.join(packages)} not installed")
    return ", ".join(found)


def write(stem: Path, results: list[Result], machine: Machine) -> None:
    with open(f"{stem}.csv", "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(HEADER)
        for result in results:
            table.writerow(csv_row(result))
    text = summary(results, machine)
    Path(f"{stem}.md").write_text(text)
    print(text)
    remember(stem, remembered(results))
    print(f"wrote {stem}.csv and {stem}.md")


def remembered(results: list[Result]) -> dict[str, str]:
    rows = list(by_query(results).values())
    own = [engines["grouse"].best_s if "grouse" in engines else None for engines in rows]
    host = [engines["datafusion"].best_s if "datafusion" in engines else None for engines in rows]
    peers = [ratio(mine, best_peer(engines)) for mine, engines in zip(own, rows)]
    hosts = [ratio(mine, other) for mine, other in zip(own, host)]
    means = {"grouse_to_best_peer": mean(peers), "grouse_to_datafusion": mean(hosts)}
    return {"queries": str(len(rows))} | {name: text.split(" ")[0] for name, text in means.items()}


HEADER = "set table_rows query engine status best_s median_s floor_s result_rows samples_s detail".split()


def csv_row(result: Result) -> list:
    samples = result.samples_s
    return [
        result.set_name,
        result.table_rows,
        result.query,
        result.engine,
        result.status,
        seconds(result.best_s),
        seconds(statistics.median(samples) if samples else None),
        seconds(result.floor_s),
        "" if result.result_rows is None else result.result_rows,
        " ".join(map(seconds, samples)),
        result.detail.replace("\n", " ")[:200],
    ]


def seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}"


def progress_line(results: list[Result]) -> str:
    """One query, as it is printed while the run goes on."""
    cells = [f"{result.engine} {cell(result)}" for result in results]
    return f"{results[0].set_name} {results[0].query}: " + ", ".join(cells)


def cell(result: Result) -> str:
    return result.status if result.best_s is None else f"{result.best_s * 1e3:.0f} ms"


def by_query(results: list[Result]) -> dict[tuple[str, str], dict[str, Result]]:
    rows: dict[tuple[str, str], dict[str, Result]] = {}
    for result in results:
        rows.setdefault((result.set_name, result.query), {})[result.engine] = result
    return rows


def best_peer(engines: dict[str, Result]) -> float | None:
    times = [engines[name].best_s for name in PEERS if name in engines]
    return min((time for time in times if time is not None), default=None)


def ratio(time_s: float | None, to_s: float | None) -> float | None:
    if time_s is None or to_s is None:
        return None
    return (time_s + ADDED_S) / (to_s + ADDED_S)


def mean(ratios: list[float | None]) -> str:
    known = [value for value in ratios if value is not None]
    if not known:
        return ""
    return f"{math.exp(statistics.fmean(map(math.log, known))):.2f} ({len(known)} queries)"


def summary(results: list[Result], machine: Machine) -> str:
    """The tables per set and the means, as Markdown."""
    rows = by_query(results)
    names = list(dict.fromkeys(result.engine for result in results))
    lines = ["# Benchmark", "", *[f"- {line}" for line in machine.lines], ""]
    for set_name in dict.fromkeys(name for name, _ in rows):
        engines_of = {query: engines for (name, query), engines in rows.items() if name == set_name}
        table_rows = next(iter(next(iter(engines_of.values())).values())).table_rows
        lines += [f"## {set_name}, {table_rows:,} rows (best, ms)", ""]
        lines += ["| query | floor | " + " | ".join(names) + " | grouse / best peer | grouse / datafusion |"]
        lines += ["|---|" + "---:|" * (len(names) + 3)]
        lines += [summary_row(query, engines, names) for query, engines in engines_of.items()]
        lines += ["", *means(list(engines_of.values()), names), ""]
    lines += ["## all sets", "", *means(list(rows.values()), names)]
    return "\n".join(lines) + "\n"


def summary_row(query: str, engines: dict[str, Result], names: list[str]) -> str:
    floor = next(iter(engines.values())).floor_s
    cells = [query, "" if floor is None else f"{floor * 1e3:.0f}"]
    cells += [cell(engines[name]).removesuffix(" ms") for name in names]
    own = engines["grouse"].best_s if "grouse" in engines else None
    host = engines["datafusion"].best_s if "datafusion" in engines else None
    for value in (ratio(own, best_peer(engines)), ratio(own, host)):
        cells.append("" if value is None else f"{value:.2f}")
    return "| " + " | ".join(cells) + " |"


def means(rows: list[dict[str, Result]], names: list[str]) -> list[str]:
    """Geometric means of the ratios; each over the queries that both sides answered rightly."""
    lines = []
    for name in names:
        others = [
            min((e[peer].best_s for peer in PEERS if peer in e and peer != name and e[peer].best_s is not None), default=None)
            for e in rows
        ]
        text = mean([ratio(e[name].best_s, other) for e, other in zip(rows, others)])
        lines.append(f"- {name} / best of the other peers: {text}" if text else f"- {name}: nothing to compare")
    if "grouse" in names and "datafusion" in names:
        lines.append(f"- grouse / datafusion: {mean([ratio(e['grouse'].best_s, e['datafusion'].best_s) for e in rows])}")
    failed = sum(result.best_s is None for engines in rows for result in engines.values())
    return [*lines, f"- runs without a right answer: {failed}"]


def picture(script: str, stem: Path, python: str) -> bool:
    """Draws the CSV by a script of this folder with matplotlib, which only the bench environment has."""
    try:
        subprocess.run([python, str(Path(__file__).with_name(script)), f"{stem}.csv", f"{stem}.svg"], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"no picture: {error}")
        return False
    return True
