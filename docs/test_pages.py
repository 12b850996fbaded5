"""Runs the examples of every page, and holds the generated pages against what this build has.

In: the pages in this folder. A block of `sql`, `python` or `sh` is run, in order, with one connection a page, in a copy of `data/`. A block
of `text` right after it is what it prints. Out: one test per page. A block after the line `<!-- not run -->` is left alone.
Invariant: links to other pages and to headings lead somewhere. GROUSE_DOCS_UPDATE=1 writes what was printed into the pages.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
from pathlib import Path

import duckdb
import pyarrow
import pytest

import generate
import grouse

HERE = Path(__file__).resolve().parent
PAGES = sorted(HERE.rglob("*.md"))
UPDATE = os.environ.get("GROUSE_DOCS_UPDATE") == "1"
SHELL = HERE.parent / "target/release/grouse"
BLOCK = re.compile(r"(?P<skip><!-- not run -->\n)?```(?P<kind>sql|python|sh)\n(?P<code>.*?)```\n(?:\n```text\n(?P<printed>.*?)```\n)?", re.S)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(HERE).as_posix())
def test_examples(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    shutil.copytree(HERE / "data", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{SHELL.parent}{os.pathsep}{os.environ['PATH']}")
    text, written = page.read_text(), page.read_text()
    with grouse.connect(threads=2) as con:
        names = {"grouse": grouse, "db": con, "__name__": "__page__"}
        for block in BLOCK.finditer(text):
            if block["skip"]:
                continue
            printed = run(block["kind"], block["code"], con, names)
            if block["printed"] is None:
                continue
            if UPDATE:
                written = written.replace(block[0], block[0].replace(block["printed"], printed))
            else:
                assert printed == block["printed"], block["code"]
    if UPDATE:
        page.write_text(written)


def run(kind: str, code: str, con, names: dict) -> str:
    """What a block prints, without blanks at the ends of lines and without how long it took."""
    if kind == "sh":
        done = subprocess.run(["sh", "-c", code], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        printed = done.stdout + done.stderr
    else:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            if kind == "python":
                exec(compile(code, "<page>", "exec"), names)
            else:
                for statement in filter(str.strip, re.split(r";\s*\n", code)):
                    result = con.sql(statement.rstrip().rstrip(";"))
                    if result.columns:
                        print(result)
        printed = out.getvalue()
    lines = (re.sub(r"^(\d+ rows?) in [\d.]+ s$", r"\1", line.rstrip()) for line in printed.splitlines())
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(HERE).as_posix())
def test_links(page: Path):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, heading = target.partition("#")
        other = (page.parent / name).resolve() if name else page
        assert other.exists(), f"{page.name}: {target} leads nowhere"
        if heading:
            assert heading in headings(other.read_text()), f"{page.name}: {target} has no such heading"


def headings(text: str) -> set[str]:
    """The anchors of a page's headings."""
    found = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", one.lower()).strip().replace(" ", "-") for one in found}


def test_function_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The example of each function, under each of its names."""
    shutil.copytree(HERE / "data", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    prices = [pyarrow.array([10, 0]), pyarrow.array(["a", "b"])]
    union = pyarrow.UnionArray.from_sparse(pyarrow.array([0, 1], pyarrow.int8()), prices, ["net", "note"])
    with grouse.connect(threads=2) as con:
        for ending in ("parquet", "arrow", "tsv"):
            con.sql(f"COPY (FROM 'orders.csv') TO 'orders.{ending}'")
        con.register("offers", pyarrow.table({"price": union}))
        con.execute("CREATE SEQUENCE invoices; SELECT nextval('invoices')").fetchall()
        wrong = []
        texts = con.sql("SELECT function_name, alias_of, example, result FROM (SHOW FUNCTIONS)").fetchall()
        for name, alias_of, example, result in texts:
            con.execute("CREATE OR REPLACE SEQUENCE ids")
            written = re.sub(rf"\b{alias_of}\b", name, example, count=1) if alias_of else example
            try:
                found = con.sql(f"SELECT CAST(result AS VARCHAR) FROM (SELECT {written}) AS t(result)").fetchone()[0]
            except grouse.Error as error:
                found = str(error)
            if (found or "NULL") != result:
                wrong.append(f"{written} => {found}, not {result}")
        assert not wrong, "\n".join(wrong)
        assert len(texts) > 600


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (grouse.Relation, duckdb.DuckDBPyRelation),
        (grouse.Connection, duckdb.DuckDBPyConnection),
        (grouse.Expression, duckdb.Expression),
    ],
)
def test_what_is_missing_is_named(ours: type, theirs: type):
    page = (HERE / "peers.md").read_text()
    public = {name for name in dir(theirs) if not name.startswith("_")}
    missing = {name for name in public if not hasattr(ours, name)}
    assert {name for name in missing if f"`{name}`" not in page} == set(), "peers.md says why"
    if ours is grouse.Connection:
        table = page.partition("<!-- connections -->")[2].partition("##")[0]
        named = {name for row in table.splitlines()[4:] for name in re.findall(r"`(\w+)`", row.split("|")[1] if "|" in row else "")}
        assert named == missing


def test_dot_commands_are_those_of_the_shell():
    """What the page calls the same has a line in `.help`."""
    (row,) = [line for line in (HERE / "peers.md").read_text().splitlines() if line.startswith("| `.bail`")]
    listed = subprocess.run([SHELL, "--no-init"], input=".help\n", capture_output=True, text=True).stdout
    there = set(re.findall(r"^(\.\w+)", listed, re.M))
    assert set(re.findall(r"`(\.\w+)`", row)) <= there


@pytest.mark.parametrize("name", sorted(generate.PAGES))
def test_generated(name: str):
    with grouse.connect(threads=1) as con:
        fresh = generate.PAGES[name](con)
    if UPDATE:
        (HERE / name).write_text(fresh)
    assert (HERE / name).read_text() == fresh, "GROUSE_DOCS_UPDATE=1 writes it anew"
