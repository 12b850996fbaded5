"""Methods of a relation that make another one: rows chosen, columns computed, relations put together.

In: expressions as SQL text, names of columns, other relations. Out: a lazy relation over the first one.
Invariant: nothing runs; what is wrong is told at once; the relation that was asked stays as it is.
Not here: aggregates and windows by their names (aggregates.py, windows.py), what writes (writing.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from grouse._native import Relation
from grouse._relation.derived import From, alias_of, derive, from_of, kind_of, marked, of_join
from grouse._text import Written, expression, expressions, is_given, literal, names, natural, parts, quoted, word
from grouse.errors import InvalidError, TypeError

# What only type checkers read is not imported: it takes as long as all of this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_JOINS = {
    "inner": "INNER JOIN",
    "left": "LEFT JOIN",
    "right": "RIGHT JOIN",
    "outer": "FULL JOIN",
    "full": "FULL JOIN",
    "semi": "SEMI JOIN",
    "anti": "ANTI JOIN",
    "cross": "CROSS JOIN",
    "natural": "NATURAL JOIN",
    "positional": "POSITIONAL JOIN",
    "asof": "ASOF JOIN",
}
_WITHOUT_CONDITION = {"cross", "natural", "positional"}
_OF_LEFT_ONLY = {"semi", "anti"}


class Compose:
    """What `Relation` has of this file."""

    def filter(self: Relation, filter_expr: str) -> Relation:
        """The rows for which `filter_expr`, a boolean expression, is true."""
        wanted = expression(filter_expr, "filter()")
        return derive(self, lambda this: f"SELECT {this.star} FROM {this} WHERE ({wanted})", "FILTER_RELATION", opened=True)

    def project(self: Relation, *columns: str, groups: str = "") -> Relation:
        """Columns computed from the relation's.

        columns: one list of expressions, `"a, b + 1 AS c"`; of several arguments each is an expression or the name of a column.
        groups: keys of GROUP BY, if the columns are aggregates.
        """
        if not columns:
            raise TypeError("project() takes one expression at least")
        wanted = expressions(columns[0], "project()", "as_select") if len(columns) == 1 else _listed(self, columns)
        return derive(
            self, lambda this: f"SELECT {wanted} FROM {this}{_grouped(groups)}", "PROJECTION_RELATION", opened=True
        )

    select = project

    def aggregate(self: Relation, aggr_expr: str | Iterable[str], group_expr: str | Iterable[str] = "") -> Relation:
        """One row for each group. Without `group_expr` all columns that are no aggregates are keys, as GROUP BY ALL has it.

        aggr_expr: expressions of the result's columns, keys among them if they shall be there. group_expr: the keys.
        """
        wanted = expressions(aggr_expr, "aggregate()", "as_select")
        keys = _grouped(group_expr) or " GROUP BY ALL"
        return derive(self, lambda this: f"SELECT {wanted} FROM {this}{keys}", "AGGREGATE_RELATION", opened=True)

    def group_by(self: Relation, *columns: str) -> Grouped:
        """Groups by these keys, with the result's columns to follow: `rel.group_by("k").agg("sum(x) AS s")`."""
        return Grouped(self, expressions(columns, "group_by()"))

    def order(self: Relation, order_expr: str) -> Relation:
        """The rows in order of `order_expr`, such as `"a DESC NULLS LAST, b"`."""
        return _ordered(self, expressions(order_expr, "order()", "as_order"))

    def sort(self: Relation, *args: str) -> Relation:
        """The rows in order of the keys: `sort("a DESC", "b")`."""
        return _ordered(self, expressions(args, "sort()", "as_order"))

    def limit(self: Relation, n: int, offset: int = 0) -> Relation:
        """At most `n` rows after the first `offset`; which ones is certain only in an order. A negative `n` is refused."""
        rows, skipped = natural(n, "limit()"), natural(offset, "limit()")
        return derive(self, lambda this: f"SELECT * FROM {this} LIMIT {rows} OFFSET {skipped}", "LIMIT_RELATION")

    def offset(self: Relation, n: int) -> Relation:
        """The rows after the first `n`."""
        skipped = natural(n, "offset()")
        return derive(self, lambda this: f"SELECT * FROM {this} OFFSET {skipped}", "LIMIT_RELATION")

    def head(self: Relation, n: int = 5) -> Relation:
        """The first `n` rows."""
        return self.limit(n)

    def distinct(self: Relation, on: str | Iterable[str] | None = None) -> Relation:
        """Each row once; with `on` one row for each value of these expressions."""
        keys = "" if on is None else f" ON ({expressions(on, 'distinct()')})"
        return derive(self, lambda this: f"SELECT DISTINCT{keys} {this.star} FROM {this}", "DISTINCT_RELATION", opened=True)

    def unique(self: Relation, unique_aggr: str) -> Relation:
        """Each value, or each combination of values, of the expressions once."""
        wanted = expressions(unique_aggr, "unique()", "as_select")
        return derive(self, lambda this: f"SELECT DISTINCT {wanted} FROM {this}", "DISTINCT_RELATION", opened=True)

    def union(self: Relation, union_rel: Relation) -> Relation:
        """The rows of both, repeated ones too, as UNION ALL."""
        return _set_operation(self, "UNION ALL", union_rel)

    def union_by_name(self: Relation, other: Relation, *, all: bool = True) -> Relation:
        """The rows of both, columns by their names: what one does not have is NULL. Without `all` each row once."""
        return _set_operation(self, "UNION ALL BY NAME" if all else "UNION BY NAME", other)

    def except_(self: Relation, other_rel: Relation) -> Relation:
        """The rows of this one without those of the other: of a row, as many as there are more, as EXCEPT ALL."""
        return _set_operation(self, "EXCEPT ALL", other_rel)

    def intersect(self: Relation, other_rel: Relation) -> Relation:
        """The rows that both have, each as often as both have it, as INTERSECT ALL."""
        return _set_operation(self, "INTERSECT ALL", other_rel)

    def cross(self: Relation, other_rel: Relation) -> Relation:
        """Each row of this one with each of the other."""
        return _joined(self, other_rel, "cross", ("", []), None)

    def join(
        self: Relation,
        other_rel: Relation,
        condition: str | Iterable[str] | None = None,
        how: str = "inner",
        suffix: str | None = None,
    ) -> Relation:
        """Rows of both that belong together.

        condition: names of columns that both have, `"a, b"` or `["a", "b"]`, which the result has once; or a boolean expression
        over `alias.column` of both (`set_alias`), which the next call sees, too: `a.join(b, "a.x = b.y").project("a.z")`.
        how: inner, left, right, outer (or full), semi, anti, cross, natural, positional or asof.
        suffix: what is put after names of the other's columns that this one has, too: without it "_1", where DuckDB gives a
        name twice.
        """
        kind = word(how, "join()", _JOINS)
        if (condition is None) != (kind in _WITHOUT_CONDITION):
            needed = "takes no condition" if condition is not None else "needs a condition"
            raise InvalidError(f"join(): how='{kind}' {needed}")
        if condition is None:
            return _joined(self, other_rel, kind, ("", []), suffix)
        keys = _shared_columns(condition)
        by = f" USING ({', '.join(map(quoted, keys))})" if keys else f" ON ({expression(condition, 'join()')})"
        return _joined(self, other_rel, kind, (by, keys), suffix)

    def drop(self: Relation, *columns: str) -> Relation:
        """All columns but these."""
        left_out = ", ".join(quoted(name) for name in columns)
        return derive(self, lambda this: f"SELECT * EXCLUDE ({left_out}) FROM {this}", "PROJECTION_RELATION")

    def rename(self: Relation, **columns: str) -> Relation:
        """Other names for columns, given as old="new"."""
        found = {_column(self, old): new for old, new in columns.items()}
        wanted = ", ".join(
            f"{quoted(name)} AS {quoted(found[name])}" if name in found else quoted(name)
            for name in (*self.columns, *(name for name in found if name not in self.columns))
        )
        return derive(self, lambda this: f"SELECT {wanted} FROM {this}", "PROJECTION_RELATION")

    def with_columns(self: Relation, **columns: str) -> Relation:
        """More columns, given as name="expression"; one that is there already is replaced in its place.

        DuckDB takes a str for the name of a column; here it is any expression.
        """
        found = {_column(self, name): f"({expression(text, 'with_columns()')})" for name, text in columns.items()}
        wanted = ", ".join(
            f"{found[name]} AS {quoted(name)}" if name in found else quoted(name)
            for name in dict.fromkeys((*self.columns, *found))
        )
        return derive(self, lambda this: f"SELECT {wanted} FROM {this}", "PROJECTION_RELATION")

    def select_types(self: Relation, types: Iterable[str]) -> Relation:
        """The columns of these types, given by their names in SQL or as `types` has them."""
        kinds = set()
        for kind in names(types):
            known = kind in self.types
            kinds.add(kind if known else self._plan(f"SELECT CAST(NULL AS {expression(str(kind), 'select_types()')})", {}).types[0])
        wanted = [quoted(name) for name, kind in zip(self.columns, self.types) if kind in kinds]
        if not wanted:
            raise InvalidError(f"select_types(): no column is of type {' or '.join(map(str, names(types)))}")
        return derive(self, lambda this: f"SELECT {', '.join(wanted)} FROM {this}", "PROJECTION_RELATION")

    select_dtypes = select_types

    def unnest(self: Relation, *columns: str) -> Relation:
        """One row for each element of the lists in these columns."""
        lists = {_column(self, name) for name in columns}
        wanted = ", ".join(
            f"unnest({quoted(name)}) AS {quoted(name)}" if name in lists else quoted(name)
            for name in (*self.columns, *(name for name in lists if name not in self.columns))
        )
        return derive(self, lambda this: f"SELECT {wanted} FROM {this}", "PROJECTION_RELATION")

    def unpivot(self: Relation, *columns: str, name: str = "name", value: str = "value") -> Relation:
        """Columns as rows: of each of them its name, in column `name`, and its value, in column `value`."""
        wanted = ", ".join(quoted(column) for column in columns)
        into = f"{quoted(value)} FOR {quoted(name)} IN ({wanted})"
        return derive(self, lambda this: f"SELECT * FROM (SELECT * FROM {this}) UNPIVOT ({into})", "QUERY_RELATION")

    def pivot(self: Relation, column: str, values: Iterable[Any], aggregate: str) -> Relation:
        """Values of a column as columns, which hold the aggregate; the columns left are keys."""
        heads = ", ".join(literal(value) for value in values)
        wanted = expression(aggregate, "pivot()")
        return derive(
            self,
            lambda this: f"SELECT * FROM (PIVOT (SELECT * FROM {this}) ON {quoted(column)} IN ({heads}) USING {wanted})",
            "QUERY_RELATION",
        )

    def sample(
        self: Relation,
        n: int | None = None,
        *,
        percent: float | None = None,
        seed: int | None = None,
        method: str | None = None,
    ) -> Relation:
        """Some rows by chance: `n` of them, or `percent` of all. The same seed draws the same rows, not those of DuckDB's.

        method: reservoir (exactly `n` rows), bernoulli (each row by itself) or system (whole blocks of rows).
        """
        if (n is None) == (percent is None):
            raise InvalidError("sample(): give either n, a number of rows, or percent")
        size = f"{natural(n, 'sample()')} ROWS" if n is not None else f"{float(percent)} PERCENT"
        how = word(method or ("reservoir" if n is not None else "bernoulli"), "sample()", ("reservoir", "bernoulli", "system"))
        drawn = f"{how}({size})" + ("" if seed is None else f" REPEATABLE ({int(seed)})")
        return derive(self, lambda this: f"SELECT * FROM {this} TABLESAMPLE {drawn}", "QUERY_RELATION")

    def describe(self: Relation) -> Relation:
        """Statistics of each column: count, mean, stddev, min, max and median, a row each; numbers as DOUBLE, others as text."""
        from grouse._relation.statistics import described

        return derive(self, described(self), "QUERY_RELATION")

    def summarize(self: Relation) -> Relation:
        """What SUMMARIZE tells of each column, a row each."""
        return derive(self, lambda this: f"SELECT * FROM (SUMMARIZE SELECT * FROM {this})", "QUERY_RELATION")

    def query(self: Relation, virtual_table_name: str, sql_query: str) -> Relation:
        """Runs SQL in which the relation is a table of that name; variables of the caller are tables in it, too."""
        return self._plan(sql_query, {virtual_table_name: self})

    def map(self: Relation, map_function: Callable[[Any], Any], *, schema: object = None) -> Relation:
        """What `map_function` makes of the relation's rows as a pandas DataFrame.

        It is called once, now; DuckDB calls it when rows are wanted. `schema` is not needed.
        """
        return self._plan('SELECT * FROM "relation 1"', {"relation 1": map_function(self.df())})

    def materialize(self: Relation) -> Relation:
        """Runs the relation once, and gives a relation over its rows, which are in memory. Needs pyarrow."""
        return self._plan('SELECT * FROM "relation 1"', {"relation 1": self.arrow()})

    def set_alias(self: Relation, alias: str) -> Relation:
        """The same rows under another name in expressions: `rel.set_alias("a").filter("a.x > 1")`."""
        quoted(alias)
        return derive(self, lambda this: f"SELECT * FROM {this}", kind_of(self), alias=alias)

    @property
    def alias(self: Relation) -> str:
        """The name that expressions have for the relation: the table's, that of `set_alias`, or one made up."""
        return alias_of(self)

    @property
    def type(self: Relation) -> str:
        """What the relation was made by, such as "FILTER_RELATION"."""
        return kind_of(self)

    def __getitem__(self: Relation, name: str) -> Relation:
        """One column."""
        if not isinstance(name, str):
            raise TypeError(f"a relation is indexed by the name of a column, not by {type(name).__name__}; project() takes several")
        return derive(self, lambda this: f"SELECT {quoted(name)} FROM {this}", "PROJECTION_RELATION")

    def __getattr__(self: Relation, name: str) -> Relation:
        """The column of this name, if no method has it."""
        if name.startswith("_") or name not in self.columns:
            raise AttributeError(f"a relation has no method, and this one no column, '{name}'")
        return self[name]

    def __contains__(self: Relation, name: object) -> bool:
        """Whether there is a column of this name."""
        return name in self.columns


class Grouped:
    """A relation and the keys of its groups, from `Relation.group_by`."""

    def __init__(self, relation: Relation, keys: str) -> None:
        self._relation, self._keys = relation, keys

    def agg(self, *aggregates: str) -> Relation:
        """One row for each group: the keys, then the aggregates."""
        wanted = expressions(aggregates, "agg()", "as_select")
        keys = self._keys
        return derive(
            self._relation,
            lambda this: f"SELECT {keys}, {wanted} FROM {this} GROUP BY {keys}",
            "AGGREGATE_RELATION",
            opened=True,
        )


def _grouped(groups: str | Iterable[str]) -> str:
    return f" GROUP BY {expressions(groups, 'groups')}" if is_given(groups) else ""


def _listed(relation: Relation, columns: Iterable[str]) -> str:
    """Expressions, or names of columns as they are."""
    behind = from_of(relation).columns or {name: quoted(name) for name in relation.columns}
    return ", ".join(
        f"{behind[one]} AS {quoted(one)}" if isinstance(one, str) and one in behind else expressions(one, "project()", "as_select")
        for one in columns
    )


def _column(relation: Relation, name: str) -> str:
    """The relation's name of a column, which may be written in another case; the name itself if there is none."""
    if name in relation.columns:
        return name
    others = [column for column in relation.columns if column.lower() == name.lower()]
    return others[0] if len(others) == 1 else name


def _set_operation(left: Relation, operator: str, right: Relation) -> Relation:
    return derive(
        left,
        lambda this, other: f"SELECT * FROM {this} {operator} SELECT * FROM {other}",
        "SET_OPERATION_RELATION",
        others=(right,),
    )


def _ordered(relation: Relation, keys: str) -> Relation:
    return derive(
        relation, lambda this: f"SELECT {this.star} FROM {this} ORDER BY {keys}", "ORDER_RELATION", opened=True
    )


def _joined(left: Relation, right: Relation, kind: str, by: tuple[str, list[str]], suffix: str | None) -> Relation:
    """The join of two; `by` is what follows the tables, and the columns that both have and the result has once."""
    sides = from_of(left), from_of(right)
    names = [alias_of(source) for side in sides for source in side.sources]
    for name in names:
        if names.count(name) > 1:
            raise InvalidError(f"two relations are called '{name}'; give one another name with set_alias()")
    condition, keys = by
    if kind == "natural":
        keys = [name for name in left.columns if name.lower() in {other.lower() for other in right.columns}]
    columns = _of_both(left, right, keys, "_1" if suffix is None else suffix) if kind not in _OF_LEFT_ONLY else sides[0].columns
    first = len(sides[0].sources)

    def text(places: Sequence[str]) -> str:
        other = sides[1].text(places[first:])
        other = f"({other})" if len(places) - first > 1 else other
        return f"{sides[0].text(places[:first])} {_JOINS[kind]} {other}{condition}"

    parts = From((*sides[0].sources, *sides[1].sources), text, columns)
    made = of_join(parts, f"{alias_of(left)}_{alias_of(right)}")
    return marked(made, "CROSS_PRODUCT_RELATION" if kind == "cross" else "JOIN_RELATION")


def _of_both(left: Relation, right: Relation, keys: list[str], suffix: str) -> dict[str, str] | None:
    """The expression behind each column of a join; None where `*` says it, since no name is there twice."""
    once = {key.lower() for key in keys}
    there = {name.lower() for name in left.columns}
    twice = [name for name in right.columns if name.lower() in there and name.lower() not in once]
    if not twice and from_of(left).columns is None and from_of(right).columns is None:
        return None
    # A key without its table is that of whichever side has a row.
    columns = {name: quoted(name) if name.lower() in once else text for name, text in _expressions(left).items()}
    for name, text in _expressions(right).items():
        if name.lower() in once:
            continue
        shown = name
        while shown.lower() in there:
            shown += suffix
        there.add(shown.lower())
        columns[shown] = text
    return columns


def _expressions(relation: Relation) -> dict[str, str]:
    """The expression behind each column, where the relation stands as a join or a table."""
    known = from_of(relation).columns
    if known is not None:
        return known
    if len(from_of(relation).sources) > 1:
        return {name: quoted(name) for name in relation.columns}
    return {name: f"{quoted(alias_of(relation))}.{quoted(name)}" for name in relation.columns}


def _shared_columns(condition: str | Iterable[str]) -> list[str]:
    """The names of a condition that is nothing but names of columns."""
    if isinstance(condition, Written):
        return []
    if not isinstance(condition, str):
        return list(condition)
    listed = [_name(one) for one in parts(condition, "join()")]
    return [name for name in listed if name is not None] if None not in listed else []


def _name(text: str) -> str | None:
    """The name that an expression is; None of others."""
    if text.startswith('"') and text.endswith('"') and '"' not in text[1:-1].replace('""', ""):
        return text[1:-1].replace('""', '"')
    return text if text.isidentifier() else None
