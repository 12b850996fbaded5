"""IPython and notebooks: `%load_ext grouse`, then `%sql` and `%%sql`.

In: a line or a cell of SQL, the variables of the notebook. Out: a relation, which the notebook shows, or a variable with it.
Invariant: `$name` is the value of a variable, never text of the statement; `{name}` is its text. A name in FROM that is no table
is a variable of the notebook.
Not here: how relations look (_display.py, _plot.py), statements (the engine).
"""

from __future__ import annotations

import re
from typing import Any

from IPython.core.completer import SimpleCompletion, context_matcher
from IPython.core.magic import Magics, line_cell_magic, magics_class, needs_local_scope, no_var_expand

from grouse._native import Connection, Relation, default_connection
from grouse._text import _tokens, quoted
from grouse.errors import Error, InvalidError

# Variables of the statement's own frame; the notebook's are its globals.
_RUN = "__grouse_connection__.sql(__grouse_text__, __grouse_params__)"
_INTO = re.compile(r"\s*(?P<name>[A-Za-z_]\w*)\s*<<(?P<rest>.*)", re.DOTALL)
_FIELD = re.compile(r"\{(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[(?:\w+|'[^']*')\])*)\}")
_WORD = re.compile(r"[\w.\"]*$")
_CELL = re.compile(r"^\s*(?:%%sql\b|(?:[\w\s,=]*=\s*)?%sql\b)")
_KEYWORDS = (
    "SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "HAVING", "LIMIT", "OFFSET", "JOIN", "LEFT JOIN", "ON", "USING", "WITH",
    "UNION ALL", "DISTINCT", "AS", "AND", "OR", "NOT", "IN", "IS NULL", "IS NOT NULL", "BETWEEN", "LIKE", "CASE", "WHEN", "THEN",
    "ELSE", "END", "DESC", "ASC", "NULLS LAST", "CREATE TABLE", "INSERT INTO", "COPY", "DESCRIBE", "SUMMARIZE", "EXPLAIN",
)


@magics_class
class SqlMagics(Magics):
    """`%sql` and `%%sql`."""

    @no_var_expand
    @needs_local_scope
    @line_cell_magic
    def sql(self, line: str, cell: str | None = None, local_ns: dict[str, Any] | None = None) -> Relation | None:
        """Runs SQL and gives its result.

            %sql SELECT 42
            %%sql
            SELECT region, count(*) FROM orders WHERE amount > $least GROUP BY region

        `name << SELECT …` puts the result into a variable. A first word on the line of `%%sql` that is a variable with a
        connection says where to run. `$least` is the value of the variable least, `{table}` the text of the variable table.
        """
        scope = {**self.shell.user_ns, **(local_ns or {})}
        connection, text = _connection_of(line, scope, has_cell=cell is not None)
        text = text if cell is None else f"{text}\n{cell}"
        into = _INTO.fullmatch(text)
        text = into["rest"] if into else text
        if not text.strip():
            raise InvalidError("%sql needs a statement, on its line or below it")
        text = _with_fields(text, scope)
        found = eval(
            _RUN,
            scope,
            {
                "__grouse_connection__": connection,
                "__grouse_text__": text,
                "__grouse_params__": _params(text, scope),
            },
        )
        if into:
            self.shell.user_ns[into["name"]] = found
            return None
        return found if found.columns else None


def _connection_of(line: str, scope: dict[str, Any], *, has_cell: bool) -> tuple[Connection, str]:
    """The connection that the line names, else the default one; and the rest of the line."""
    first, _, rest = line.strip().partition(" ")
    named = scope.get(first)
    if isinstance(named, Connection):
        return named, rest
    if has_cell and first.isidentifier() and not rest.strip():
        raise InvalidError(f"%%sql {first}: there is no connection of this name; grouse.connect() makes one")
    return default_connection(), line


def _with_fields(text: str, scope: dict[str, Any]) -> str:
    """The text, in which `{name}` is what the variable says; names that are no variables stay as they are."""

    def said(field: re.Match[str]) -> str:
        if re.split(r"[.\[]", field["name"])[0] not in scope:
            return field[0]
        return str(eval(field["name"], dict(scope)))

    return _FIELD.sub(said, text)


def _params(text: str, scope: dict[str, Any]) -> dict[str, Any] | None:
    """The variables that are values of `$name`."""
    names, before = [], None
    for token in _tokens(text):
        if before == "$" and token["word"] and not token["word"][0].isdigit():
            names.append(token["word"])
        before = token["other"]
    found = {name: scope[name] for name in names if name in scope}
    return found or None


def _matcher(shell: Any) -> Any:
    """Completes names of tables, columns and keywords in SQL, and nowhere else."""

    @context_matcher()
    def grouse_sql_matcher(context: Any) -> dict[str, Any]:
        statement = _statement_of(context)
        if statement is None:
            return {"completions": [], "suppress": False}
        word = _WORD.search(context.text_until_cursor)[0]
        names = completions(statement, word, shell.user_ns)
        # What is completed is IPython's own word, which may be the end of ours.
        kept = len(word) - len(context.token) if word.endswith(context.token) else 0
        done = [SimpleCompletion(name[kept:], type="sql") for name in names]
        return {"completions": done, "suppress": bool(done), "ordered": True}

    return grouse_sql_matcher


def _statement_of(context: Any) -> str | None:
    """The SQL of the cell or the line, with what stands before it on the magic's line; None of other code."""
    lines = context.full_text.split("\n")
    if lines[0].lstrip().startswith("%%"):
        return context.full_text.lstrip().removeprefix("%%sql") if _CELL.match(lines[0]) else None
    line = lines[context.cursor_line] if context.cursor_line < len(lines) else ""
    return line.partition("%sql")[2] if _CELL.match(line) else None


def completions(text: str, word: str, scope: dict[str, Any]) -> list[str]:
    """What the word may become: columns of the tables that the statement names, tables, keywords, best first."""
    first = text.split(maxsplit=1)[:1]
    named_first = scope.get(first[0]) if first else None
    connection = named_first if isinstance(named_first, Connection) else default_connection()
    try:
        tables = connection.tables()
    except Error:
        tables = []
    table, dot, start = word.rpartition(".")
    named = {token["word"] or token["quoted"] or "" for token in _tokens(text)}
    columns: dict[str, None] = {}
    for name in tables:
        if name == table.strip('"') if dot else name in named or quoted(name) in named:
            try:
                columns |= dict.fromkeys(connection.table(name).columns)
            except Error:
                continue
    before = f"{table}." if dot else ""
    found = [before + _spelled(name) for name in columns if _begins(name, start)]
    if not dot:
        found += [_spelled(name) for name in tables if _begins(name, start)]
        found += [keyword for keyword in _KEYWORDS if start and keyword.startswith(start.upper())]
    return list(dict.fromkeys(found))


def _begins(name: str, start: str) -> bool:
    return name.lower().startswith(start.strip('"').lower())


def _spelled(name: str) -> str:
    return name if name.isidentifier() and name == name.lower() else quoted(name)


def load(shell: Any) -> None:
    """Gives a shell of IPython the magics and the completion."""
    shell.register_magics(SqlMagics)
    matchers = shell.Completer.custom_matchers
    if not any(getattr(matcher, "__name__", "") == "grouse_sql_matcher" for matcher in matchers):
        matchers.append(_matcher(shell))
