"""The picture of a record of `policy.py`: a panel per order of the rows, a dot per case.

In: a CSV of `policy.py`. Out: an SVG (or PNG, by the name's end). Left of 1 looking up is the better of the choices, right of it going by;
the higher a dot, the dearer the decision beside the better one. The line is what a decision may cost.
"""

import csv
import sys

import matplotlib

matplotlib.use("svg" if sys.argv[2].endswith(".svg") else "agg")
matplotlib.rcParams["svg.hashsalt"] = "grouse"  # the same record gives the same file
from matplotlib import pyplot

BOUND = 1.15
COLORS = {"1": "#c0392b", "2": "#2e86c1", "16": "#7d3c98"}
MARKERS = {"8": "o", "12": "s", "40": "^", "80": "^", "200": "D"}


def main(source: str, target: str) -> None:
    with open(source, newline="") as file:
        rows = list(csv.DictReader(file))
    orders = list(dict.fromkeys(row["order"] for row in rows))
    columns = min(3, len(orders))
    lines = -(-len(orders) // columns)
    figure, panels = pyplot.subplots(
        lines, columns, figsize=(3.4 * columns, 0.8 + 2.8 * lines), layout="constrained", squeeze=False, sharex=True, sharey=True
    )
    labelled = set()
    for axes, order in zip(panels.flat, orders):
        for row in rows:
            if row["order"] == order:
                dot(axes, row, labelled)
        axes.axhline(BOUND, color="#c0392b", linewidth=0.8)
        axes.axvline(1, color="#888888", linewidth=0.8)
        axes.set_xscale("log", base=2)
        axes.set_title(order, fontsize=9)
        axes.grid(color="#e5e5e5", linewidth=0.5)
    for axes in panels.flat[len(orders) :]:
        axes.set_visible(False)
    figure.supxlabel("CPU time: look up / go by", fontsize=9)
    figure.supylabel("what is decided / the better one", fontsize=9)
    figure.legend(loc="outside upper center", ncols=6, fontsize=8, frameon=False)
    figure.savefig(target, metadata={"Date": None} if target.endswith(".svg") else None)


def dot(axes, row: dict[str, str], labelled: set[str]) -> None:
    name = f"{row['workers']} workers, {row['width']} bytes"
    x = float(row["look_up_ns"]) / float(row["go_by_ns"])
    style = {"color": COLORS.get(row["workers"], "#555555"), "marker": MARKERS.get(row["width"], "x"), "s": 18}
    axes.scatter(x, float(row["ratio"]), label=None if name in labelled else name, linewidths=0, **style)
    labelled.add(name)


if __name__ == "__main__":
    main(*sys.argv[1:])
