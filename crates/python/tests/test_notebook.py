"""The magics of IPython, and what a notebook shows: tables, plans, pictures."""

from __future__ import annotations

import datetime
import html.parser
import itertools
import xml.etree.ElementTree as xml

import pandas
import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import grouse
from grouse._display import as_html


@pytest.fixture(scope="module")
def ipython(tmp_path_factory):
    settings = Config()
    settings.HistoryManager.enabled = False
    # It reads the sources of every module that a cell has imported.
    settings.IPCompleter.use_jedi = False
    shell = InteractiveShell.instance(config=settings, ipython_dir=str(tmp_path_factory.mktemp("ipython")))
    shell.run_cell("%load_ext grouse")
    yield shell
    InteractiveShell.clear_instance()


@pytest.fixture
def run(ipython):
    """Runs a cell and gives its result."""

    def run(cell: str):
        done = ipython.run_cell(cell)
        done.raise_error()
        return done.result

    run.names = ipython.user_ns
    yield run
    ipython.reset(new_session=False)


def test_lines_and_cells(run):
    assert run("%sql SELECT 42 AS x").fetchall() == [(42,)]
    assert run("%%sql\nSELECT number AS n\nFROM numbers(3)\nORDER BY n").fetchall() == [(0,), (1,), (2,)]
    run("x = %sql SELECT 7 AS seven")
    assert run.names["x"].fetchall() == [(7,)]
    assert run("%%sql\nCREATE OR REPLACE TABLE of_notebook (a INTEGER)") is None
    assert run("%sql SELECT count(*) FROM of_notebook").fetchall() == [(0,)]
    run("%sql DROP TABLE of_notebook")


def test_results_go_to_variables(run):
    assert run("%sql one << SELECT 1 AS a") is None
    assert run("%%sql two <<\nSELECT 2 AS a") is None
    assert run("%%sql\nthree << SELECT 3 AS a") is None
    assert [run.names[name].fetchall() for name in ("one", "two", "three")] == [[(1,)], [(2,)], [(3,)]]
    assert run("%sql SELECT one.a + two.a FROM one, two").fetchall() == [(3,)]


def test_variables_are_values_tables_and_text(run):
    run.names.update(least=97, quote="it's; DROP TABLE x", table="numbers(100)", parts={"n": "number"}, frame=pandas.DataFrame({"a": [1, 2]}))
    assert run("%%sql\nSELECT {parts['n']} FROM {table} WHERE number > $least ORDER BY 1").fetchall() == [(98,), (99,)]
    assert run("%sql SELECT $quote").fetchall() == [("it's; DROP TABLE x",)]
    assert run("%sql SELECT sum(a) FROM frame").fetchall() == [(3,)]
    assert run("%sql SELECT '$least' AS s, {'x': 1} AS d, '{unknown}' AS u").fetchall() == [("$least", {"x": 1}, "{unknown}")]
    with pytest.raises(grouse.Error, match="missing_one"):
        run("%sql SELECT $missing_one")


def test_another_connection(run):
    run("import grouse\nother = grouse.connect(threads=1)")
    run("%sql other CREATE TABLE mine AS SELECT 5 AS alpha")
    assert run("%%sql other\nSELECT alpha FROM mine").fetchall() == [(5,)]
    assert run("%%sql other found <<\nSELECT alpha FROM mine") is None
    assert run.names["found"].fetchall() == [(5,)]
    with pytest.raises(grouse.UnknownTableError):
        run("%sql SELECT * FROM mine")
    with pytest.raises(grouse.InvalidError, match="no connection of this name"):
        run("%%sql missing\nSELECT 1")
    with pytest.raises(grouse.InvalidError, match="needs a statement"):
        run("%sql")


@pytest.mark.filterwarnings("ignore")
def test_completion(ipython, run):
    run('%sql CREATE OR REPLACE TABLE of_tab (region VARCHAR, amount DOUBLE, "Odd one" INTEGER)')
    run("import grouse\nother = grouse.connect(threads=1)")
    run("%sql other CREATE TABLE elsewhere (alpha INTEGER)")

    def complete(cell: str) -> list[str]:
        """What may stand where the cell has a `|`."""
        at = cell.index("|")
        found = ipython.Completer.completions(cell.replace("|", ""), at)
        return [one.text for one in itertools.islice(found, 20)]

    try:
        assert complete("%sql SELECT * FROM of_t|") == ["of_tab"]
        assert complete("%%sql\nSELECT am| FROM of_tab") == ["amount"]
        assert complete("%%sql\nSELECT of_tab.re| FROM of_tab")[0].endswith("region")
        assert complete("%%sql\nSELECT odd|\nFROM of_tab") == ['"Odd one"']
        assert complete("x = %sql SELE|") == ["SELECT"]
        assert "alpha" in complete("%%sql other\nSELECT al| FROM elsewhere")
        assert "amount" not in complete("am|")
    finally:
        run("%sql DROP TABLE of_tab")


class Cells(html.parser.HTMLParser):
    """The tags of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags, self.strings = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.strings.append(data)


def test_a_table(con):
    long = "<b>" + "x" * 500
    page = con.sql("SELECT number AS n, ? AS s, NULL AS nothing, 1.5 AS d FROM numbers(5000)", [long])._repr_html_()
    found = Cells(page)
    cells = [attributes for tag, attributes in found.tags if tag == "td"]
    assert len(cells) == 20 * 4
    assert ["right" in cell["style"] for cell in cells[:4]] == [True, False, False, True]
    assert cells[1]["title"] == long and "max-width" in cells[1]["style"] and "title" not in cells[0]
    assert max(map(len, found.strings)) == 200 and "<b>x" not in page
    assert "overflow-x:auto" in page
    # A row was several lines high where a text was long or a date narrow.
    assert all("white-space:nowrap" in attributes["style"] for tag, attributes in found.tags if tag in ("td", "th"))
    wide = con.sql("SELECT repeat('w', 60) AS w, DATE '2026-11-28' AS d, repeat('i', 10) AS i")._repr_html_()
    named = [attributes.get("title") for tag, attributes in Cells(wide).tags if tag == "td"]
    assert named == ["w" * 60, None, None]
    counted = as_html(["n"], ["int64"], [(1,), (2,)], True, 200_000)
    assert Cells(counted).strings[-1] == "2 of 200,000 rows"
    assert "first 20 rows" in con.sql("SELECT number FROM numbers(100000000000)")._repr_html_()
    assert "3 rows" in con.sql("SELECT number FROM numbers(3)")._repr_html_()


def test_counting_has_an_end_and_no_errors(con):
    shown = repr(con.sql("SELECT number FROM numbers(5000)"))
    assert shown.splitlines()[-1] == "20 of 5,000 rows"
    # A row that nobody asked for is wrong.
    late = con.sql("SELECT CAST(CASE WHEN number < 299999 THEN '1' ELSE 'x' END AS INTEGER) AS n FROM numbers(300000)")
    assert late._repr_html_().count("<tr>") >= 20


def test_a_plan(con):
    relation = con.sql("SELECT number % 3 AS g, count(*) AS n FROM numbers(1000000) WHERE number > 5 GROUP BY g")
    plan = relation.explain(analyze=True)
    assert isinstance(plan, str) and "metrics=[" in plan
    page = plan._repr_html_()
    assert "% of the time" in page and "&gt;" in page and page.startswith("<pre")
    assert "".join(Cells(page).strings).count("Exec") == plan.count("Exec")
    assert "% of the time" not in relation.explain()._repr_html_()


def drawn(plot) -> xml.Element:
    assert plot.svg == plot._repr_html_()
    return xml.fromstring(plot.svg)


def test_numbers_beside_bars_are_whole(con):
    """Those of more than nine digits were cut at the edge of the picture."""
    picture = drawn(con.sql("SELECT * FROM (VALUES ('a', 2857157142), ('b', 1)) t(k, total)").plot())
    texts = [text for text in picture.iter() if text.tag.endswith("text") and (text.text or "").startswith("2,857")]
    (text,) = texts
    assert text.text == "2,857,157,142" and float(text.get("x")) + 7 * len(text.text) <= 640


def of(picture: xml.Element, tag: str) -> list[xml.Element]:
    return picture.findall(f".//{{http://www.w3.org/2000/svg}}{tag}")


def strings(picture: xml.Element) -> list[str]:
    return [element.text for element in of(picture, "text")]


def test_bars(con, tmp_path):
    values = con.values(("a <b>", 10), ("long " * 20, -5), ("none", None), ("c", 2.5)).project("col0 AS name, col1 AS amount")
    plot = values.plot()
    picture = drawn(plot)
    bars = of(picture, "rect")
    widths = [float(bar.get("width")) for bar in bars]
    assert len(bars) == 3 and abs(widths[0] / widths[1] - 2) < 0.01 and abs(widths[0] / widths[2] - 4) < 0.01
    assert float(bars[1].get("x")) + widths[1] == pytest.approx(float(bars[0].get("x")), abs=0.2)
    assert "amount by name" in strings(picture) and "a <b>" in strings(picture) and "1 row without a number left out" in strings(picture)
    assert all(len(text) < 60 for text in strings(picture))
    plot.save(tmp_path / "x.svg")
    assert (tmp_path / "x.svg").read_text(encoding="utf-8") == plot.svg
    many = con.sql("SELECT 'k' || number AS k, number AS n FROM numbers(100)").plot("bar")
    assert len(of(drawn(many), "rect")) == 40 and "40 of 100 bars" in strings(drawn(many))


def test_lines(con):
    days = con.sql("SELECT DATE '2024-01-01' + CAST(number AS INTEGER) AS day, number * number AS n FROM numbers(60)")
    picture = drawn(days.plot())
    (line,) = of(picture, "polyline")
    points = [tuple(map(float, point.split(","))) for point in line.get("points").split()]
    assert len(points) == 60 and [x for x, _ in points] == sorted(x for x, _ in points)
    assert [y for _, y in points] == sorted((y for _, y in points), reverse=True)
    assert any(text.startswith("2024-0") for text in strings(picture))
    numbers = con.sql("SELECT number AS x, sin(number) AS y FROM numbers(50) ORDER BY x").plot()
    assert len(of(drawn(numbers), "polyline")) == 1
    with pytest.raises(grouse.TypeError, match="'k' has to have numbers or times"):
        con.sql("SELECT 'a' AS k, 1 AS n").plot("line")


def test_histograms(con):
    picture = drawn(con.sql("SELECT number % 10 AS digit FROM numbers(1000)").plot())
    counts = [bar[0].text for bar in of(picture, "rect")]
    assert sum(int(count.rpartition(": ")[2].replace(",", "")) for count in counts) == 1000
    assert len(of(drawn(con.sql("SELECT 5 AS same").plot()), "rect")) == 1
    assert drawn(con.sql("SELECT 1.5::DOUBLE AS x WHERE false").plot()) is not None


def test_what_cannot_be_drawn(con):
    with pytest.raises(grouse.InvalidError, match="one or two columns, not 3"):
        con.sql("SELECT 1 AS a, 2 AS b, 3 AS c").plot()
    with pytest.raises(grouse.InvalidError, match="there are bar, line, histogram"):
        con.sql("SELECT 1 AS a, 2 AS b").plot("pie")
    with pytest.raises(grouse.InvalidError, match="'histogram' takes one column"):
        con.sql("SELECT 1 AS a, 2 AS b").plot("histogram")
    with pytest.raises(grouse.TypeError, match="'b' has to have numbers, not str"):
        con.sql("SELECT 1 AS a, 'x' AS b").plot()
    with pytest.raises(grouse.InvalidError, match="at most 100,000 rows"):
        con.sql("SELECT number AS a FROM numbers(100001)").plot()


def test_special_numbers_and_times(con):
    timestamps = con.values(*[(datetime.datetime(2024, 1, 1, hour), hour / 7) for hour in range(24)])
    assert any(":00:00" in text for text in strings(drawn(timestamps.plot())))
    odd = con.sql("SELECT * FROM (VALUES ('a', 'nan'::DOUBLE), ('b', 'inf'::DOUBLE), ('c', 1.0)) AS t(k, v)").plot()
    assert len(of(drawn(odd), "rect")) == 1 and "2 rows without a number left out" in strings(drawn(odd))


@pytest.mark.parametrize(
    "values",
    [
        ["9007199254740993"],
        ["1e17", "1e17", "1e17"],
        ["1e17", "1e17 + 16"],
        ["1e300", "1e300"],
        ["1.7e308", "-1.7e308", "0.0"],
        ["1.7976931348623157e308"],
        ["-1.7976931348623157e308"],
        ["5e-324", "0.0"],
    ],
)
def test_values_of_any_size_are_drawn(con, values):
    rows = ", ".join(f"({at}, ({value})::DOUBLE)" for at, value in enumerate(values))
    relation = con.sql(f"SELECT * FROM (VALUES {rows}) AS t(k, v)")
    for plot in (relation.plot("bar"), relation.plot("line"), relation.project("v").plot()):
        drawn(plot)
        assert "nan" not in plot.svg and "inf" not in plot.svg
    (line,) = of(drawn(relation.plot("line")), "polyline")
    heights = [float(point.partition(",")[2]) for point in line.get("points").split()]
    floats = [eval(value) for value in values]
    assert all(30 <= height <= 280 for height in heights)
    assert [max(floats) == value for value in floats] == [height == min(heights) for height in heights]
    if len(set(floats)) > 1:
        assert (min(heights), max(heights)) == (30, 280)
    counts = [bar[0].text for bar in of(drawn(relation.project("v").plot()), "rect")]
    assert sum(int(count.rpartition(": ")[2]) for count in counts) == len(values)
    assert int(counts[-1].rpartition(": ")[2]) == floats.count(max(floats))


def test_bars_of_the_largest_numbers_have_their_lengths(con):
    picture = drawn(con.sql("SELECT * FROM (VALUES ('a', 1.7e308::DOUBLE), ('b', -1.7e308), ('c', 0.85e308)) AS t(k, v)").plot("bar"))
    assert [float(bar.get("width")) for bar in of(picture, "rect")] == [185.0, 185.0, 92.5]


def test_an_axis_of_large_equal_values_has_marks(con):
    labels = strings(drawn(con.sql("SELECT 1e17::DOUBLE AS x").plot()))
    assert [label for label in labels if label.endswith("e+17") or label.endswith("e+16")] == ["9e+16", "9.5e+16", "1e+17", "1.05e+17", "1.1e+17"]
    last = con.sql("SELECT TIMESTAMP '9999-12-31 23:59:59.999999' AS t, 1 AS n").plot("line")
    assert "23:59:59" in strings(drawn(last))
