"""Relations made of relations: how a statement names those that it reads.

In: relations, the text of a statement over them. Out: a relation that is planned; the text of the whole.
Invariant: a relation stands in a statement as a table of a name that nobody writes, under its alias, with its own parameters and
variables; no text of a relation is copied into another one. Expressions over a join see the tables that it joins.
Not here: what the statements are (the files beside this one).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from grouse._native import Relation, default_connection
from grouse._text import quoted
from grouse.errors import TypeError

# What only type checkers read is not imported: it takes as long as all of this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NUMBERS = itertools.count(1)

# Attributes in which a relation keeps what it was made of.
_ALIAS, _KIND, _MADE, _FROM = "_alias", "_kind", "_made", "_from"


class Place(str):
    """What stands for a relation in FROM."""

    star: str = "*"
    """What stands for all of its columns in SELECT."""


class From:
    """A relation as FROM has it: one table, or several that are joined."""

    __slots__ = ("sources", "text", "columns")

    def __init__(
        self,
        sources: tuple[Relation, ...],
        text: Callable[[Sequence[str]], str],
        columns: dict[str, str] | None = None,
    ) -> None:
        self.sources, self.text = sources, text
        self.columns = columns
        """Of a join: the expression behind each column."""

    def place(self, places: Sequence[str]) -> Place:
        """What stands for it, where these stand for its sources."""
        place = Place(self.text(places))
        if self.columns is not None:
            place.star = ", ".join(f"{text} AS {quoted(name)}" for name, text in self.columns.items())
        return place


class _Made:
    """The statement of a relation."""

    __slots__ = ("text", "parts")

    def __init__(self, text: Callable[..., str], parts: tuple[From, ...]) -> None:
        self.text, self.parts = text, parts

    @property
    def sources(self) -> list[Relation]:
        return [source for part in self.parts for source in part.sources]

    def statement(self, tables: Sequence[str]) -> str:
        """The statement, where these stand for its sources."""
        named = iter([f"{table} AS {quoted(alias_of(source))}" for table, source in zip(tables, self.sources)])
        return self.text(*(part.place(list(itertools.islice(named, len(part.sources)))) for part in self.parts))


def derive(
    relation: Relation,
    text: Callable[..., str],
    kind: str,
    *,
    others: tuple[Relation, ...] = (),
    alias: str | None = None,
    opened: bool = False,
) -> Relation:
    """The relation of a statement over relations; `text` makes it of what stands for each of them in FROM.

    opened: joins stand as joins, so that expressions of the caller's see the tables of both sides.
    """
    parts = tuple(from_of(source) if opened else whole(source) for source in (relation, *others))
    return marked(_planned(_Made(text, parts)), kind, alias or alias_of(relation))


def _planned(made: _Made) -> Relation:
    tables = {f"relation {at + 1}": source for at, source in enumerate(made.sources)}
    found = made.sources[0]._plan(made.statement([quoted(name) for name in tables]), tables)
    found.__dict__[_MADE] = made
    return found


def run(relation: Relation, text: Callable[[Place], str]) -> Relation:
    """Runs a statement that changes something."""
    return derive(relation, text, "QUERY_RELATION")


def whole(relation: Relation) -> From:
    """The relation as one table."""
    return From((relation,), lambda places: places[0])


def from_of(relation: Relation) -> From:
    """The relation as a join, if it is one."""
    return relation.__dict__.get(_FROM) or whole(relation)


def of_join(parts: From, alias: str) -> Relation:
    """The relation of a join, which stands as such where expressions are."""
    made = _Made(lambda this: f"SELECT {this.star} FROM {this}", (parts,))
    found = _planned(made)
    found.__dict__[_FROM] = parts
    return marked(found, "JOIN_RELATION", alias)


def marked(relation: Relation, kind: str, alias: str | None = None) -> Relation:
    """The relation, which from now on knows what it is."""
    relation.__dict__[_KIND] = kind
    if alias is not None:
        relation.__dict__[_ALIAS] = alias
    return relation


def alias_of(relation: Relation) -> str:
    """The name that expressions have for the relation."""
    state = relation.__dict__
    if _ALIAS not in state:
        state[_ALIAS] = f"unnamed_relation_{next(_NUMBERS)}"
    return state[_ALIAS]


def kind_of(relation: Relation) -> str:
    """What the relation was made by, in DuckDB's words."""
    return relation.__dict__.get(_KIND, "QUERY_RELATION")


def written(relation: Relation) -> str:
    """One statement that means the relation."""
    made: Any = relation.__dict__.get(_MADE)
    if made is None:
        return relation._text
    return made.statement([f"({written(source)})" for source in made.sources])


def is_text(relation: Relation) -> bool:
    """Whether the statement that `written` gives means the relation anywhere: it and those below have no values of this process."""
    made: Any = relation.__dict__.get(_MADE)
    return relation._is_text if made is None else all(map(is_text, made.sources))


def read_again(text: str, kind: str, alias: str | None) -> Relation:
    """The relation of a statement that another process has written."""
    return marked(default_connection()._plan(text, {}), kind, alias)


def pickled(relation: Relation) -> tuple[Callable[..., Relation], tuple[Any, ...]]:
    """How pickle makes the relation again."""
    if not is_text(relation):
        raise TypeError("a relation over variables, with parameters, or of a statement that has run cannot be pickled: "
                        "pickle its rows, or write them to a file")
    return read_again, (written(relation), kind_of(relation), relation.__dict__.get(_ALIAS))
