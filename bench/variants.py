"""Grouped queries of `hits` on tables as the world has them: shuffled, with other keys, and as other programs write them.

In: flags (`--help`). Out: `record/<host>/variants.csv` with all samples, and a summary: per table the ratio to the best peer.
Invariant: every table has the same columns, and each is made by a process of its own, once. A run of some tables keeps the rows of the
others that the record has, so that a record can be made in pieces. DuckDB's answers are the judge: no table has expected rows.
"""

import csv
import subprocess
import sys
from pathlib import Path

import queries
import report
from run import SetRun, checked, make_table, shared_flags, stem_of

COLUMNS = ["WatchID", "UserID", "URL", "Referer", "SearchPhrase", "MobilePhoneModel", "RegionID", "CounterID", "EventTime", "EventDate"]
COLUMNS += ["ResolutionWidth", "AdvEngineID", "IsRefresh"]
TEXT = ["URL", "Referer", "SearchPhrase", "MobilePhoneModel"]
QUERIES = "^(distinct_integer|distinct_long_string|like_count|medium_key_distinct|high_string_key|high_integer_key|user_and_phrase"
QUERIES += "|long_string_key|all_minutes|date_and_region|string_key_distinct_users|high_integer_key_average)$"
SEED = 20260101
ZIPF_EXPONENT = 1.2
ROWS_PER_KEY = 5
"""Of uniform keys, on average."""


def main() -> None:
    if sys.argv[1:2] == ["make"]:
        return MAKERS[sys.argv[2]](Path(sys.argv[3]), Path(sys.argv[4]))
    parser = shared_flags(__doc__)
    parser.add_argument("--touch-gb", type=float, default=1.0, help="memory that each process touches and frees first")
    parser.add_argument("--tables", default="", help="only tables whose names have one of these words, with commas")
    parser.set_defaults(label="variants", rounds=3, engines="grouse,duckdb,chdb,polars", rows=2_000_000, queries=QUERIES)
    flags = checked(parser)
    flags.set = "hits"
    wanted = [word for word in flags.tables.split(",") if word]
    names = [name for name in MAKERS if not wanted or any(word in name for word in wanted)]
    stem = stem_of(flags)
    for name in names:
        print(f"table {name}", flush=True)
        leave(stem, name, TableRun(name, flags).results(), flags)
    lines = summary(recorded(stem), report.Machine.here(flags))
    Path(f"{stem}.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    report.remember(stem, {})


class TableRun(SetRun):
    """The queries on one of the tables."""

    def __init__(self, name: str, flags) -> None:
        self.table = name
        super().__init__("hits", flags)
        self.has_floor = False
        self.expected = {}

    def tables(self) -> dict[str, str]:
        flags = self.flags
        folder = Path(flags.data).resolve()
        path = folder / f"variants_{self.size.rows}_{self.table.replace(' ', '_')}{'' if self.table == MANY else '.parquet'}"
        if not path.exists():
            (file,) = self.size.files.values()
            source = Path(make_table(self.size, file, flags))
            half = path.with_name(f"half_{path.name}")  # renamed when it is whole, so that a run that was ended makes it again
            subprocess.run([flags.python_peers, __file__, "make", self.table, str(source), str(half)], check=True)
            half.rename(path)
        return {"hits": f"{path}/*.parquet" if self.table == MANY else str(path)}


def leave(stem: Path, name: str, results: list[report.Result], flags) -> None:
    """The rows of one table in the place of those that the record has of it."""
    rows = [row for row in recorded(stem) if (row["table"], row["threads"]) != (name, str(flags.threads))]
    for result in results:
        cells = dict(zip(report.HEADER, map(str, report.csv_row(result))))
        rows.append({"table": name, "threads": str(flags.threads)} | {key: cells[key] for key in KEPT})
    with open(f"{stem}.csv", "w", newline="") as file:
        table = csv.DictWriter(file, ["table", "threads", *KEPT], lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


KEPT = ["table_rows", "query", "engine", "status", "best_s", "samples_s", "detail"]


def recorded(stem: Path) -> list[dict[str, str]]:
    path = Path(f"{stem}.csv")
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def summary(rows: list[dict[str, str]], machine: report.Machine) -> list[str]:
    """A line per table and number of threads: the mean ratio to the best peer, and the worst query."""
    lines = ["# Tables as the world has them", "", *[f"- {line}" for line in machine.lines]]
    lines += [f"- {rows[0]['table_rows'] if rows else 0} rows; grouse to the best of its peers, geometric mean and worst query", ""]
    lines += ["| table | threads | grouse / best peer | worst query | its ratio | not right |", "|---|---:|---:|---|---:|---:|"]
    for table, threads in dict.fromkeys((row["table"], row["threads"]) for row in rows):
        here = [row for row in rows if (row["table"], row["threads"]) == (table, threads)]
        ratios = {query: ratio for query in dict.fromkeys(row["query"] for row in here) if (ratio := against_peers(here, query))}
        worst = max(ratios, key=ratios.get, default="")
        failed = sum(row["status"] != "ok" and row["engine"] == "grouse" for row in here)
        cells = [table, threads, report.mean(list(ratios.values())), worst, f"{ratios.get(worst, 0):.2f}", str(failed)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def against_peers(rows: list[dict[str, str]], query: str) -> float | None:
    times = {row["engine"]: float(row["best_s"]) for row in rows if row["query"] == query and row["best_s"]}
    peers = [times[peer] for peer in report.PEERS if peer in times]
    return report.ratio(times.get("grouse"), min(peers, default=None))


# Makers run in the peers' environment: each writes the columns of `source` to `target`.


def read(source: Path):
    """The columns in memory, text as strings."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(source, columns=COLUMNS)
    for name in TEXT:
        table = table.set_column(table.column_names.index(name), name, table[name].cast(pa.string()))
    return table


def write(table, target: Path, **options) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, target, **options)


def by_pyarrow(source: Path, target: Path, **options) -> None:
    write(read(source), target, **options)


def shuffled(source: Path, target: Path) -> None:
    import numpy as np

    table = read(source)
    write(table.take(np.random.default_rng(SEED).permutation(len(table))), target)


def with_keys(source: Path, target: Path, draw) -> None:
    """Ids and text are drawn anew: neighbouring rows have nothing in common."""
    import numpy as np
    import pyarrow as pa

    table = read(source)
    random = np.random.default_rng(SEED)
    for name in ["UserID", "URL", "SearchPhrase"]:
        place = table.column_names.index(name)
        keys = draw(random, len(table))
        values = pa.array(keys.astype("int64") * 7_919 + 1_000_000_007)
        if name in TEXT:
            text = [f"http://example.com/{key % 977}/page-{key:012d}?from=search" for key in keys.tolist()]
            values = pa.array(text if name == "URL" else [one[19:40] for one in text])
        table = table.set_column(place, name, values)
    write(table, target)


def uniform(random, rows: int):
    return random.integers(0, max(rows // ROWS_PER_KEY, 1), rows)


def zipf(random, rows: int):
    return random.zipf(ZIPF_EXPONENT, rows) % rows


def many_files(source: Path, target: Path) -> None:
    table = read(source)
    target.mkdir(parents=True, exist_ok=True)
    rows = -(-len(table) // 64)
    for number in range(64):
        write(table.slice(number * rows, rows), target / f"{number:02}.parquet")


def by_polars(source: Path, target: Path) -> None:
    import polars

    polars.from_arrow(read(source)).write_parquet(target)


def by_duckdb(source: Path, target: Path) -> None:
    import duckdb

    columns = ", ".join(COLUMNS)
    duckdb.execute(f"COPY (SELECT {columns} FROM read_parquet('{source}', binary_as_string = true)) TO '{target}' (FORMAT parquet)")


def by_clickhouse(source: Path, target: Path) -> None:
    import chdb

    columns = ", ".join(COLUMNS)
    chdb.query(f"INSERT INTO FUNCTION file('{target}', Parquet) SELECT {columns} FROM file('{source}', Parquet)")


MANY = "64 files"
MAKERS = {
    "pyarrow": by_pyarrow,
    "shuffled": shuffled,
    "uniform keys": lambda source, target: with_keys(source, target, uniform),
    "Zipf keys": lambda source, target: with_keys(source, target, zipf),
    "zstd": lambda source, target: by_pyarrow(source, target, compression="zstd"),
    "no dictionaries": lambda source, target: by_pyarrow(source, target, use_dictionary=False),
    "small row groups": lambda source, target: by_pyarrow(source, target, row_group_size=20_000),
    "Polars": by_polars,
    "DuckDB": by_duckdb,
    "ClickHouse": by_clickhouse,
    MANY: many_files,
}
"""Name of a table -> what makes it. Options that are not named are the writer's defaults."""


if __name__ == "__main__":
    main()
