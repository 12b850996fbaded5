"""The pages that follow from the build: every option and every function.

In: a connection. Out: the text of a page, the same for the same build. `test_pages.py` holds the pages in the tree against it.
"""

from __future__ import annotations

import re

HEAD = "<!-- Written by generate.py. -->\n"


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
    """Every function by kind, with how it is called and what it does where that is known."""
    rows = con.sql(
        "SELECT DISTINCT function_type, routine_name, syntax_example, description FROM information_schema.routines ORDER BY ALL"
    ).fetchall()
    known: dict[str, dict[str, tuple[str, str]]] = {}
    # What is written with symbols has a name with blanks inside, and its place in the grammar.
    named = (row for row in rows if row[1].isidentifier() and not row[1].startswith("_"))
    for kind, name, syntax, description in named:
        known.setdefault(kind, {}).setdefault(name, (syntax or "", description or ""))
    lines = [HEAD + "# Functions\n", "`SHOW FUNCTIONS LIKE 'date%'` lists them with the types that they take.\n"]
    for kind in ("AGGREGATE", "WINDOW", "SCALAR"):
        lines += [f"## {kind.capitalize()} functions\n", "| function | call | what it does |", "|---|---|---|"]
        for name, (syntax, description) in sorted(known[kind].items()):
            call = f"`{cell(syntax)}`" if syntax else ""
            lines.append(f"| `{name}` | {call} | {first_sentence(description)} |")
        lines.append("")
    return "\n".join(lines)


def first_sentence(text: str) -> str:
    return cell(re.split(r"(?<=[.!?])\s", text.strip(), maxsplit=1)[0])


def cell(text: str) -> str:
    """Text that a table's cell can hold."""
    return re.sub(r"\s+", " ", text).strip().replace("|", "\\|").replace("<", "&lt;")


PAGES = {"options.md": options, "functions.md": functions}
