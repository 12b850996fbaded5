"""The pages that follow from the build: every option and every function.

In: a connection. Out: the text of a page, the same for the same build. `test_pages.py` holds the pages in the tree against it.
"""

from __future__ import annotations

import re

HEAD = "<!-- Written by generate.py. -->\n"
KINDS = ("scalar", "aggregate", "window", "table")


def options(con) -> str:
    """One line per option that is for users: `SHOW ALL` has the others."""
    rows = con.sql(
        "SELECT name, value, description FROM information_schema.df_settings WHERE name LIKE 'grouse.%' AND name NOT LIKE '%group_by%'"
    ).fetchall()
    lines = [
        HEAD + "# Options\n",
        "`SET name = value`, `RESET name` and `SHOW name` in SQL; `--name value` in the shell, with `-` for `_`;",
        "`grouse.connect(name=value)` in Python. `SHOW ALL` has every option, DataFusion's own with the prefix `datafusion.` among them.\n",
        "| option | default | what it does |",
        "|---|---|---|",
    ]
    for name, value, description in rows:
        lines.append(f"| `{name.removeprefix('grouse.')}` | {value or ''} | {cell(description)} |")
    return "\n".join(lines) + "\n"


def functions(con) -> str:
    """Every function by subject: how it is called, what it does, an example with its result."""
    return functions_page(con.sql("SELECT function_type, category, function_name, alias_of, call, description, example, result FROM (SHOW FUNCTIONS)").fetchall())


def functions_page(rows: list[tuple]) -> str:
    other_names: dict[tuple[str, str], list[str]] = {}
    subjects: dict[tuple[int, str], list[tuple]] = {}
    for kind, category, name, alias_of, *text in sorted(rows):
        if alias_of:
            other_names.setdefault((kind, alias_of), []).append(name)
        else:
            subjects.setdefault((KINDS.index(kind), category), []).append((kind, name, *text))
    lines = [
        HEAD + "# Functions\n",
        "`DESCRIBE FUNCTION name` and `.help name` in the shell say the same; `SHOW FUNCTIONS LIKE 'date%'` and `duckdb_functions()` are tables",
        "of it. An example is what stands behind SELECT.\n",
    ]
    for (_, category), texts in sorted(subjects.items()):
        lines += [f"## {category}\n", "| call | what it does | example | result |", "|---|---|---|---|"]
        for kind, name, call, description, example, result in texts:
            also = ", ".join(f"`{other}`" for other in other_names.get((kind, name), []))
            said = cell(description) + (f" Also {also}." if also else "")
            lines.append(f"| `{code(call)}` | {said} | `{code(example)}` | `{code(result)}` |")
        lines.append("")
    return "\n".join(lines)


def code(text: str) -> str:
    """Text that stands between backticks in a table's cell."""
    return re.sub(r"\s+", " ", text).strip().replace("|", "\\|")


def cell(text: str) -> str:
    """Text that a table's cell can hold."""
    return re.sub(r"\s+", " ", text).strip().replace("|", "\\|").replace("<", "&lt;")


PAGES = {"options.md": options, "functions.md": functions}
