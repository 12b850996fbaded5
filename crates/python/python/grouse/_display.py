"""The first rows of a result as text for a terminal and as HTML for a notebook.

In: column names, type names, rows as tuples of Python objects. Out: a string.
Invariant: a line is never wider than the terminal; a number, a date or a boolean is never cut, only text is.
Not here: fetching; the rows that are not shown.
"""

from __future__ import annotations

import datetime
import decimal
import html
import shutil
import sys
import unicodedata

CELL_WIDTH_MAX = 60
CELL_WIDTH_MIN = 8
HTML_CELL_CHARACTERS_MAX = 200
HTML_TITLE_CHARACTERS_MAX = 10_000
HTML_CELL_WIDTH_MAX = "30em"
# Shorter text is never wider than a cell.
HTML_UNTITLED_CHARACTERS_MAX = 30
# Parts of a plan that took less of the time have no mark.
HOT_SHARE_MIN = 0.05
_NEVER_CUT = (bool, int, float, decimal.Decimal, datetime.date, datetime.time, datetime.timedelta)
_NUMBERS = (int, float, decimal.Decimal)


def text(
    columns: list[str], types: list[str], rows: list[tuple], more: bool, total: int | None = None, width: int | None = None
) -> str:
    """A table of box-drawing characters, types under names, with a last line that counts; total: of all rows, if it is known."""
    if not columns:
        return "(no columns)"
    width = width or _terminal_width()
    cells = [[_cell(value) for value in column] for column in zip(*rows, strict=True)] or [[] for _ in columns]
    heads = [(_one_line(name), kind) for name, kind in zip(columns, types, strict=True)]
    widths = [max(map(_width, (*head, *column))) for head, column in zip(heads, cells, strict=True)]
    rigid = [any(isinstance(row[at], _NEVER_CUT) for row in rows) for at in range(len(columns))]
    widths = _fit([w if r else min(w, CELL_WIDTH_MAX) for w, r in zip(widths, rigid, strict=True)], rigid, width)
    shown, hidden = _columns_that_fit(widths, width)
    right = [_is_number(rows, at) for at in range(len(columns))]

    def line(values: list[str]) -> str:
        parts = [_pad(values[at], widths[at], right[at]) for at in shown]
        if hidden:
            parts.insert((len(shown) + 1) // 2, "…")
        return "│ " + " │ ".join(parts) + " │"

    def rule(left: str, middle: str, end: str) -> str:
        parts = ["─" * (widths[at] + 2) for at in shown]
        if hidden:
            parts.insert((len(shown) + 1) // 2, "───")
        return left + middle.join(parts) + end

    lines = [rule("┌", "┬", "┐"), line([name for name, _ in heads]), line([kind for _, kind in heads]), rule("├", "┼", "┤")]
    lines += [line([column[at] for column in cells]) for at in range(len(rows))]
    lines.append(rule("└", "┴", "┘"))
    lines.append(_footer(len(rows), more, total) + (f", {len(shown)} of {len(columns)} columns shown" if hidden else ""))
    return "\n".join(lines)


def as_html(columns: list[str], types: list[str], rows: list[tuple], more: bool, total: int | None = None) -> str:
    """An HTML table; every value is escaped. total: the number of all rows, if it is known."""
    if not columns:
        return "<p>(no columns)</p>"
    right = [kind.partition("(")[0] in _NUMBER_TYPES for kind in types]
    head = "".join(
        f"<th style='{_align(at_right)}'>{html.escape(_one_line(name))}<br>"
        f"<small style='font-weight:normal;opacity:0.7'>{html.escape(kind)}</small></th>"
        for name, kind, at_right in zip(columns, types, right, strict=True)
    )
    body = "".join(
        "<tr>" + "".join(_html_cell(value, at_right) for value, at_right in zip(row, right, strict=True)) + "</tr>" for row in rows
    )
    return (
        f"<div style='max-width:100%;overflow-x:auto'><table class='dataframe' style='color:inherit;font-size:inherit'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"<p>{html.escape(_footer(len(rows), more, total))}</p></div>"
    )


_NUMBER_TYPES = {
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("half", "float", "double", "decimal"),
}


def _align(at_right: bool) -> str:
    """The style of every cell: pages that are no notebook have none of their own. A row is one line."""
    return f"text-align:{'right' if at_right else 'left'};padding:0.2em 0.7em;white-space:nowrap"


def _html_cell(value: object, at_right: bool) -> str:
    """A cell; what is too long is cut, and stands in the title as a whole."""
    whole = _cell(value)
    shown, title = whole, ""
    if len(whole) > HTML_CELL_CHARACTERS_MAX:
        shown = whole[: HTML_CELL_CHARACTERS_MAX - 1] + "…"
    style = _align(at_right)
    if isinstance(value, _NEVER_CUT):
        style += ";font-variant-numeric:tabular-nums"
    else:
        style += f";max-width:{HTML_CELL_WIDTH_MAX};overflow:hidden;text-overflow:ellipsis"
        if len(whole) > HTML_UNTITLED_CHARACTERS_MAX:
            title = f" title='{html.escape(whole[:HTML_TITLE_CHARACTERS_MAX])}'"
    if value is None:
        style += ";opacity:0.5"
    return f"<td style='{style}'{title}>{html.escape(shown)}</td>"


class Explained(str):
    """The text of a plan, which a notebook shows as such, with the share of the time that each part took."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        lines = self.split("\n")
        times = [_seconds(line) for line in lines]
        total = sum(times)
        shown = "".join(_plan_line(line, spent / total if total else 0.0) for line, spent in zip(lines, times, strict=True))
        return f"<pre style='overflow-x:auto;line-height:1.5;margin:0'>{shown}</pre>"


def _plan_line(line: str, share: float) -> str:
    """A line; one that took time has a mark of it, so that hot spots are seen."""
    named, metrics = line, ""
    if ", metrics=[" in line:
        named, _, metrics = line.partition(", metrics=[")
        metrics = f"<span style='opacity:0.6'>, metrics=[{html.escape(metrics)}</span>"
    mark = ""
    if share >= HOT_SHARE_MIN:
        mark = (
            f"<span title='{share:.0%} of the time of all parts' style='background:rgba(230,90,40,{0.15 + 0.6 * share:.2f})'>"
            f" {share:.0%} </span> "
        )
    indent = len(named) - len(named.lstrip())
    return f"{' ' * indent}{mark}{html.escape(named.lstrip())}{metrics}\n"


def _seconds(line: str) -> float:
    """The time that a part of a plan took by itself, of its metrics."""
    import re

    _, _, metrics = line.partition(", metrics=[")
    found = dict(re.findall(r"(\w+)=([\d.]+(?:ns|µs|ms|s|m|h))\b", metrics))
    own = found.get("elapsed_compute")
    spent = [own] if own else [time for name, time in found.items() if name.endswith("_time")]
    return sum(_SECONDS[re.sub(r"[\d.]", "", time)] * float(re.sub(r"[^\d.]", "", time)) for time in spent)


_SECONDS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def _footer(rows: int, more: bool, total: int | None = None) -> str:
    if more:
        return f"first {rows} rows" if total is None else f"{rows:,} of {total:,} rows"
    return f"{rows} row" + ("" if rows == 1 else "s")


def _terminal_width() -> int:
    return shutil.get_terminal_size((120, 24)).columns if sys.stdout and sys.stdout.isatty() else 120


def _cell(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    return _one_line(str(value))


def _one_line(value: str) -> str:
    """Control characters and marks that turn the direction of text as escapes: they would break the frame."""
    if value.isprintable():
        return value
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in value)


def _is_number(rows: list[tuple], at: int) -> bool:
    values = [row[at] for row in rows if row[at] is not None]
    return bool(values) and all(isinstance(value, _NUMBERS) and not isinstance(value, bool) for value in values)


def _width(value: str) -> int:
    if value.isascii():
        return len(value)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in value)


def _pad(value: str, width: int, right: bool) -> str:
    if _width(value) > width:
        kept, used = [], 1
        for c in value:
            used += _width(c)
            if used > width:
                break
            kept.append(c)
        value = "".join(kept) + "…"
    space = " " * (width - _width(value))
    return space + value if right else value + space


def _fit(widths: list[int], rigid: list[bool], width: int) -> list[int]:
    """Narrows the widest text columns until the line fits, as far as that is possible."""
    widths = list(widths)
    over = sum(widths) + 3 * len(widths) + 1 - width
    while over > 0:
        wide = [at for at, w in enumerate(widths) if not rigid[at] and w > CELL_WIDTH_MIN]
        if not wide:
            break
        widest = max(wide, key=lambda at: widths[at])
        widths[widest] -= 1
        over -= 1
    return widths


def _columns_that_fit(widths: list[int], width: int) -> tuple[list[int], bool]:
    """The columns shown, from both ends inwards, and whether some are not."""
    if sum(widths) + 3 * len(widths) + 1 <= width:
        return list(range(len(widths))), False
    left, right, used = [], [], 1 + 4
    for step in range(len(widths)):
        at = step // 2 if step % 2 == 0 else len(widths) - 1 - step // 2
        if used + widths[at] + 3 > width and (left or right):
            break
        used += widths[at] + 3
        (left if step % 2 == 0 else right).append(at)
    return [*left, *reversed(right)], True
