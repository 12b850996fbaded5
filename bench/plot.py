"""The picture of a record: one line of dots per query, time / best peer, log scale.

In: a CSV of `run.py`. Out: an SVG (or PNG, by the name's end). Left of 1 is faster than the best peer.
"""

import csv
import sys

import matplotlib

matplotlib.use("svg" if sys.argv[2].endswith(".svg") else "agg")
matplotlib.rcParams["svg.hashsalt"] = "grouse"  # the same record gives the same file
from matplotlib import pyplot

ADDED_S = 0.010
PEERS = ("duckdb", "chdb", "polars")
STYLE = {
    "grouse": ("#c0392b", "o", 60),
    "datafusion": ("#e59866", "s", 24),
    "duckdb": ("#b7950b", "^", 28),
    "chdb": ("#2e86c1", "v", 28),
    "polars": ("#7d3c98", "D", 22),
}


def main(source: str, target: str) -> None:
    with open(source, newline="") as file:
        rows = list(csv.DictReader(file))
    names = list(dict.fromkeys((row["set"], row["query"]) for row in rows))
    figure, axes = pyplot.subplots(figsize=(9, 1.6 + 0.2 * len(names)), layout="constrained")
    for engine, (color, marker, size) in STYLE.items():
        points = list(dots(rows, names, engine))
        if points:
            x, y = zip(*points)
            axes.scatter(x, y, s=size, c=color, marker=marker, label=engine, zorder=3, linewidths=0)
    floors = list(dots(rows, names, "floor"))
    if floors:
        x, y = zip(*floors)
        axes.scatter(x, y, s=40, c="#555555", marker="|", label="decode only", zorder=2)
    axes.axvline(1, color="#888888", linewidth=1)
    axes.set_xscale("log")
    axes.set_xticks([0.1, 0.2, 0.5, 1, 2, 5, 10], ["1/10", "1/5", "1/2", "1", "2", "5", "10"])
    axes.set_yticks(range(len(names)), [f"{set_name}: {query}" for set_name, query in names], fontsize=7)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel("time / best peer, 10 ms added to both (left is faster)")
    axes.grid(axis="both", color="#e5e5e5", linewidth=0.5, zorder=0)
    figure.legend(loc="outside upper center", ncols=6, fontsize=8, frameon=False)
    figure.savefig(target, metadata={"Date": None} if target.endswith(".svg") else None)


def dots(rows: list[dict], names: list[tuple[str, str]], engine: str):
    """(ratio, line) of each query that the engine answered."""
    for line, name in enumerate(names):
        of_query = [row for row in rows if (row["set"], row["query"]) == name]
        peers = [float(row["best_s"]) for row in of_query if row["engine"] in PEERS and row["best_s"]]
        column = "floor_s" if engine == "floor" else "best_s"
        times = [row[column] for row in of_query if engine in ("floor", row["engine"]) and row[column]]
        if peers and times:
            yield (float(times[0]) + ADDED_S) / (min(peers) + ADDED_S), line


if __name__ == "__main__":
    main(*sys.argv[1:])
