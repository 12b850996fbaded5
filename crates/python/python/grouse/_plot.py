"""Pictures of small results: bars, a line, a histogram, as SVG that needs nothing else.

In: names, types and rows of one or two columns. Out: SVG text, in the colors of the page around it.
Invariant: every label is escaped; what is left out of the picture is said in it; NULL, NaN and infinities are left out.
Not here: fetching rows (grouse/_relation/pictures.py).
"""

from __future__ import annotations

import datetime
import decimal
import html
import math
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction

from grouse.errors import InvalidError, TypeError

# What only type checkers read is not imported: it takes as long as all of this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KINDS = ("bar", "line", "histogram")
WIDTH, HEIGHT = 640, 320
BAR_HEIGHT, BARS_MAX = 20, 40
HISTOGRAM_BARS = 30
LABEL_CHARACTERS = 28
# Of a digit in the pictures' font; other characters of numbers are narrower.
DIGIT_WIDTH = 7
TICKS = 5
# One that is seen on white and on black.
COLOR = "#4c8ed9"
_NUMBERS = (int, float, decimal.Decimal)
_TIMES = (datetime.date, datetime.datetime)


class Plot:
    """A picture of a result, which a notebook draws. `svg` is its text, `save` writes it."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def save(self, path: Any) -> None:
        """Writes the picture to a file, as SVG."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)

    def _repr_html_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return "<grouse.Plot: a notebook draws it, save('x.svg') writes it>"


def plot(columns: Sequence[str], rows: Sequence[tuple[Any, ...]], kind: str | None) -> Plot:
    """The picture of one column of numbers, or of two columns, the second of which has numbers."""
    if kind is not None and kind not in KINDS:
        raise InvalidError(f"plot(): there is no '{kind}'; there are {', '.join(KINDS)}")
    if len(columns) not in (1, 2):
        raise InvalidError(f"plot() takes a relation of one or two columns, not {len(columns)}: project() chooses some")
    values = [row[-1] for row in rows]
    wrong = next((value for value in values if not _is_number(value) and value is not None), None)
    if wrong is not None:
        raise TypeError(f"plot(): column '{columns[-1]}' has to have numbers, not {type(wrong).__name__}")
    kind = kind or ("histogram" if len(columns) == 1 else _kind(rows))
    if (kind == "histogram") != (len(columns) == 1):
        raise InvalidError(f"plot(): '{kind}' takes {'one column' if kind == 'histogram' else 'two columns'}")
    kept = [row for row in rows if _is_finite(row[-1])]
    if kind == "histogram":
        return Plot(_histogram(columns[0], [float(row[0]) for row in kept], len(rows) - len(kept)))
    if kind == "bar":
        return Plot(_bars(columns, [(row[0], float(row[1])) for row in kept], len(rows) - len(kept)))
    return Plot(_line(columns, kept, len(rows)))


def _kind(rows: Sequence[tuple[Any, ...]]) -> str:
    """A line where the first column rises, or has times; else bars."""
    places = [row[0] for row in rows if row[0] is not None]
    if len(places) > 2 and all(isinstance(place, _TIMES) for place in places):
        return "line"
    is_rising = all(_is_finite(place) for place in places) and all(low < high for low, high in zip(places, places[1:]))
    return "line" if is_rising and len(places) > 12 else "bar"


def _is_number(value: Any) -> bool:
    return isinstance(value, _NUMBERS) and not isinstance(value, bool)


def _is_finite(value: Any) -> bool:
    return _is_number(value) and math.isfinite(value)


def _bars(columns: Sequence[str], bars: list[tuple[Any, float]], left_out: int) -> str:
    shown = bars[:BARS_MAX]
    low, high = min(0.0, *(value for _, value in shown), 0.0), max(0.0, *(value for _, value in shown), 0.0)
    left = 200
    written = max((len(_number(value)) for _, value in shown), default=0) * DIGIT_WIDTH
    place = _scale(low, high if high > low else 1.0, left, WIDTH - max(70, 6 + written))
    zero = place(0.0)
    parts = []
    for at, (name, value) in enumerate(shown):
        y = 28 + at * BAR_HEIGHT
        x, width = min(zero, place(value)), abs(place(value) - zero)
        parts.append(_text(left - 6, y + 14, _cut(_label(name)), "end", _label(name)))
        parts.append(f"<rect x='{x:.1f}' y='{y + 3}' width='{max(width, 0.5):.1f}' height='{BAR_HEIGHT - 6}' fill='{COLOR}'>"
                     f"<title>{html.escape(f'{_label(name)}: {_number(value)}')}</title></rect>")
        parts.append(_text(x + width + 4, y + 14, _number(value), "start"))
    notes = [f"{len(shown):,} of {len(bars):,} bars"] if len(bars) > len(shown) else []
    return _picture(f"{columns[1]} by {columns[0]}", parts, _notes(notes, left_out), 44 + len(shown) * BAR_HEIGHT)


def _line(columns: Sequence[str], rows: list[tuple[Any, ...]], rows_all: int) -> str:
    points = [(_place(row[0]), float(row[1])) for row in rows if row[0] is not None and _place(row[0]) is not None]
    first, names = [point[0] for point in points], [row[0] for row in rows if row[0] is not None]
    if len(points) < len(names):
        wrong = next(name for name in names if _place(name) is None)
        raise TypeError(f"plot(): column '{columns[0]}' has to have numbers or times for a line, not {type(wrong).__name__}")
    points.sort()
    is_time = bool(names) and isinstance(names[0], _TIMES)
    x, x_ticks = _axis(first, 60, WIDTH - 20, _TIME_STEPS if is_time else ())
    y, y_ticks = _axis([point[1] for point in points], HEIGHT - 40, 30)
    parts = [_rule(60, y(tick), WIDTH - 20, y(tick)) + _text(54, y(tick) + 4, _number(tick), "end") for tick in y_ticks]
    span = max(first) - min(first) if first else 0
    for tick in x_ticks:
        parts.append(_text(x(tick), HEIGHT - 22, _timestamp(tick, span) if is_time else _number(tick), "middle"))
    drawn = " ".join(f"{x(place):.1f},{y(value):.1f}" for place, value in points)
    parts.append(f"<polyline points='{drawn}' fill='none' stroke='{COLOR}' stroke-width='1.6'/>")
    return _picture(f"{columns[1]} by {columns[0]}", parts, _notes([], rows_all - len(points)), HEIGHT)


def _histogram(column: str, values: list[float], left_out: int) -> str:
    low, high = (min(values), max(values)) if values else (0.0, 0.0)
    counts = [0] * (HISTOGRAM_BARS if low < high else 1)
    bar = _scale(low, high, 0, len(counts)) if low < high else (lambda value: 0)
    for value in values:
        counts[min(int(bar(value)), len(counts) - 1)] += 1
    x, x_ticks = _axis([low, high], 60, WIDTH - 20)
    y, y_ticks = _axis([0, max(counts)], HEIGHT - 40, 30)
    parts = [_rule(60, y(tick), WIDTH - 20, y(tick)) + _text(54, y(tick) + 4, _number(tick), "end") for tick in y_ticks]
    parts += [_text(x(tick), HEIGHT - 22, _number(tick), "middle") for tick in x_ticks]
    step = (WIDTH - 80) / len(counts)
    for at, count in enumerate(counts):
        begin, end = _between(low, high, at / len(counts)), _between(low, high, (at + 1) / len(counts))
        title = html.escape(f"{_number(begin)} to {_number(end)}: {count:,}")
        parts.append(f"<rect x='{60 + at * step + 0.5:.1f}' y='{y(count):.1f}' width='{step - 1:.1f}' "
                     f"height='{y(0) - y(count):.1f}' fill='{COLOR}'><title>{title}</title></rect>")
    return _picture(f"{column}, {len(values):,} values", parts, _notes([], left_out), HEIGHT)


def _axis(values: list[float], begin: float, end: float, steps: Sequence[float] = ()) -> tuple[Any, list[float]]:
    """The place of a value, and round values along the axis; steps: between them, instead of powers of ten."""
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if low == high:
        # In proportion, since half of one is nothing beside 1e17. Times stay within their second.
        margin = 0.5 if steps else max(0.5, abs(low) / 10)
        low, high = max(low - margin, -sys.float_info.max), min(high + margin, sys.float_info.max)
    # Exact: the span of two floats is not always one, and neither is a fifth of it.
    span = Fraction(high) - Fraction(low)
    power = Fraction(10) ** math.floor(math.log10(span.numerator) - math.log10(span.denominator * TICKS))
    step = next((step for step in (*steps, *(power * factor for factor in (1, 2, 5, 10))) if span / step <= TICKS), power * 10)
    marks = range(math.ceil(Fraction(low) / step), math.floor(Fraction(high) / step) + 1)
    return _scale(low, high, begin, end), list(dict.fromkeys(float(mark * step) for mark in marks))


def _scale(low: float, high: float, begin: float, end: float) -> Callable[[float], float]:
    """The place of a value between begin and end. low < high, which may be as far from each other as floats are."""
    # All is divided by one power of two, so that no difference overflows and none is lost among the smallest floats.
    exponent = -1 - math.frexp(max(abs(low), abs(high)))[1]
    first, span = math.ldexp(low, exponent), math.ldexp(high, exponent) - math.ldexp(low, exponent)
    return lambda value: begin + (math.ldexp(value, exponent) - first) / span * (end - begin)


def _between(low: float, high: float, part: float) -> float:
    """What lies at a part of the way. The difference of the two may be no float."""
    difference = high - low
    return low + difference * part if math.isfinite(difference) else low * (1 - part) + high * part


# Seconds between two marks of times: of minutes, hours, days.
_TIME_STEPS = (
    *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200),
    *(days * 86_400 for days in (1, 2, 7, 14, 30, 91, 182, 365, 730, 1826, 3652, 18262, 36525)),
)
# Of the year 9999: as a float, the last microseconds of it are the year 10000, which no datetime is.
_LAST_SECOND = 253_402_300_799


def _place(value: Any) -> float | None:
    if _is_finite(value):
        return float(value)
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=value.tzinfo or datetime.timezone.utc).timestamp()
    if isinstance(value, datetime.date):
        return datetime.datetime(value.year, value.month, value.day, tzinfo=datetime.timezone.utc).timestamp()
    return None


def _timestamp(seconds: float, span: float) -> str:
    when = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=min(seconds, _LAST_SECOND))
    return when.strftime("%H:%M:%S") if span < 86_400 else when.strftime("%Y-%m-%d")


def _number(value: float) -> str:
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if 1e3 <= abs(value) < 1e9:
        return f"{value:,.1f}"
    return f"{value:.4g}"


def _label(value: Any) -> str:
    return "NULL" if value is None else str(value)


def _cut(text: str) -> str:
    return text if len(text) <= LABEL_CHARACTERS else text[: LABEL_CHARACTERS - 1] + "…"


def _text(x: float, y: float, text: str, anchor: str, whole: str | None = None) -> str:
    title = f"<title>{html.escape(whole)}</title>" if whole not in (None, text) else ""
    return f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' fill='currentColor'>{html.escape(text)}{title}</text>"


def _rule(x: float, y: float, to_x: float, to_y: float) -> str:
    return f"<line x1='{x}' y1='{y:.1f}' x2='{to_x}' y2='{to_y:.1f}' stroke='currentColor' stroke-opacity='0.2'/>"


def _notes(notes: list[str], left_out: int) -> str:
    if left_out:
        notes.append(f"{left_out:,} row{'' if left_out == 1 else 's'} without a number left out")
    return "; ".join(notes)


def _picture(title: str, parts: list[str], note: str, height: int) -> str:
    end = _text(WIDTH - 8, height - 6, note, "end") if note else ""
    head = f"<text x='8' y='18' fill='currentColor' font-weight='bold'>{html.escape(title)}</text>"
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' width='{WIDTH}' role='img' "
        f"style='max-width:100%;height:auto' font-family='sans-serif' font-size='12'>{head}{''.join(parts)}{end}</svg>"
    )
