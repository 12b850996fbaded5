"""The picture of a record of `limits.py`: time over memory limit, a panel per query.

In: a CSV of `limits.py`. Out: an SVG (or PNG, by the name's end). A run that failed has no point.
"""

import csv
import sys

import matplotlib

matplotlib.use("svg" if sys.argv[2].endswith(".svg") else "agg")
matplotlib.rcParams["svg.hashsalt"] = "grouse"  # the same record gives the same file
from matplotlib import pyplot
from plot import STYLE


def main(source: str, target: str) -> None:
    with open(source, newline="") as file:
        rows = list(csv.DictReader(file))
    names = list(dict.fromkeys(row["query"] for row in rows))
    limits = list(dict.fromkeys(row["limit"] for row in rows))
    figure, panels = pyplot.subplots(len(names), figsize=(9, 0.6 + 2.2 * len(names)), layout="constrained", squeeze=False)
    labelled = set()
    for axes, name in zip(panels.flat, names):
        for engine, (color, marker, _) in STYLE.items():
            of_engine = [row for row in rows if (row["query"], row["engine"]) == (name, engine)]
            points = [(limits.index(row["limit"]), float(row["best_s"])) for row in of_engine if row["best_s"]]
            if points:
                x, y = zip(*points)
                axes.plot(x, y, color=color, marker=marker, label=None if engine in labelled else engine)
                labelled.add(engine)
        axes.set_title(name, fontsize=9)
        axes.set_xlim(-0.3, len(limits) - 0.7)
        axes.set_ylim(bottom=0)
        axes.set_xticks(range(len(limits)), limits)
        axes.set_ylabel("seconds")
        axes.grid(color="#e5e5e5", linewidth=0.5)
    panels[-1][0].set_xlabel("memory limit")
    figure.legend(loc="outside upper center", ncols=6, fontsize=8, frameon=False)
    figure.savefig(target, metadata={"Date": None} if target.endswith(".svg") else None)


if __name__ == "__main__":
    main(*sys.argv[1:])
