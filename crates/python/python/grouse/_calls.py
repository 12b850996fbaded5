"""DuckDB's short names for expressions: `col("a")`, `fn("round", col("x"), 1)`, `when(…).then(…)`, `col("s").str().upper()`.

In: names, values, expressions. Out: expressions.
Invariant: each is what a longer name of `_expression.py` makes; a function is called by its name in SQL, whichever that is.
Not here: what expressions are (_expression.py), what functions do (the engine).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from grouse._expression import (
    CoalesceOperator,
    ColumnExpression,
    ConstantExpression,
    Expression,
    FunctionExpression,
    LambdaExpression,
    SQLExpression,
    StarExpression,
    When,
    _call,
    _made,
    _operand,
)
from grouse._text import quoted
from grouse.errors import TypeError

# What only type checkers read is not imported: it takes as long as all of this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def col(*parts: str) -> Expression:
    """A column by its name, or by the parts of it: `col("t", "a")`."""
    return ColumnExpression(*parts)


def lit(value: Any) -> Expression:
    """A value of Python."""
    return ConstantExpression(value)


def star(exclude: str | Iterable[str | Expression] = (), rename: Mapping[str, str] | None = None) -> Expression:
    """All columns, but those of `exclude`; `rename` gives some of them other names."""
    stars = StarExpression(exclude=[exclude] if isinstance(exclude, str) else exclude)
    if not rename:
        return stars
    renamed = ", ".join(f"{quoted(old)} AS {quoted(new)}" for old, new in rename.items())
    text = f"{stars.fragment()} RENAME ({renamed})"
    return _made(text, text, type(stars))


def fn(name: str, /, *arguments: Any) -> Expression:
    """A call of any function. A str among the arguments is text."""
    return FunctionExpression(name, *arguments)


def coalesce(*values: Any) -> Expression:
    """The first value that is not NULL."""
    return CoalesceOperator(*values)


def sql_expr(sql: str) -> Expression:
    """One expression, written as SQL."""
    return SQLExpression(sql)


def count_all() -> Expression:
    """How many rows there are."""
    return _call("count", [StarExpression()])


def when(condition: Any) -> When:
    """Begins a CASE; `then` has its value."""
    return When(condition)


def _of_windows(function: str, says: str) -> Callable[..., Expression]:
    def call(*arguments: Any) -> Expression:
        return _call(function, [_operand(argument) for argument in arguments])

    call.__name__ = call.__qualname__ = function
    call.__doc__ = f"{says} `over()` says which rows."
    return call


row_number = _of_windows("row_number", "The number of the row.")
rank = _of_windows("rank", "The place, with gaps behind equal rows.")
dense_rank = _of_windows("dense_rank", "The place, without gaps.")
ntile = _of_windows("ntile", "In which of so many equal parts the row lies.")
lag = _of_windows("lag", "An expression some rows before: `lag(col(\"x\"), 2, 0)`.")
lead = _of_windows("lead", "An expression some rows behind: `lead(col(\"x\"), 2, 0)`.")
first_value = _of_windows("first_value", "An expression in the first row of the frame.")
last_value = _of_windows("last_value", "An expression in the last row of the frame.")


class _Functions(Expression):
    """An expression whose functions of one subject are its methods; a method's result is such an expression, too."""

    __slots__ = ()

    _prefix = ""
    # Methods that are called otherwise: the function, and the place of the expression among its arguments.
    _others: dict[str, tuple[str, int]] = {}

    def __getattr__(self, name: str) -> Callable[..., Expression]:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._method(name)

    def _method(self, name: str) -> Callable[..., Expression]:
        function, place = self._others.get(name, (self._prefix + name, 0))

        def call(*arguments: Any) -> Expression:
            operands = [_lambda(one) if callable(one) else _operand(one) for one in arguments]
            operands.insert(place, self)
            made = _call(function, operands)
            return _made(made._text, made._shown, type(self)) if self._stays(name) else made

        return call

    def _stays(self, name: str) -> bool:
        return True


class TextFunctions(_Functions):
    """Functions of text."""

    __slots__ = ()
    _others = {"concat_ws": ("concat_ws", 1)}


class TimeFunctions(_Functions):
    """Functions of dates and times."""

    __slots__ = ()
    _others = {
        **{name: (f"date_{name}", 1) for name in ("diff", "part", "sub", "trunc")},
        "time_bucket": ("time_bucket", 1),
    }


class JsonFunctions(_Functions):
    """Functions of JSON, without `json_` before their names."""

    __slots__ = ()
    _prefix = "json_"
    _others = {"parse": ("json", 0)}


class ListFunctions(_Functions):
    """Functions of lists, without `list_` before their names."""

    __slots__ = ()
    _prefix = "list_"
    _others = {"prepend": ("list_prepend", 1), "mask": ("list_where", 0)}

    def _stays(self, name: str) -> bool:
        """Of a list's sum, `max` is the aggregate again."""
        return name in _GIVE_LISTS


_GIVE_LISTS = {
    *("append", "compact", "concat", "distinct", "except", "filter", "grade_up", "intersect", "mask", "prepend", "remove"),
    *("resize", "reverse", "reverse_sort", "select", "slice", "sort", "transform", "union", "where", "zip"),
}
# Methods of every expression that are functions of lists here.
for _name in (
    *("any_value", "avg", "bit_and", "bit_or", "bool_and", "bool_or", "concat", "count", "entropy", "first", "kurtosis", "last"),
    *("max", "median", "min", "mode", "product", "skewness", "string_agg", "sum", "where"),
):

    def _of_list(self: ListFunctions, *arguments: Any, _name: str = _name) -> Expression:
        return self._method(_name)(*arguments)

    _of_list.__name__, _of_list.__qualname__, _of_list.__doc__ = _name, f"ListFunctions.{_name}", f"SQL: `list_{_name}`."
    setattr(ListFunctions, _name, _of_list)


def _lambda(function: Callable[..., Any]) -> Expression:
    """A function of Python as a lambda of SQL: it is called once, with columns of its parameters' names."""
    import inspect

    parameters = list(inspect.signature(function).parameters)
    body = function(*(ColumnExpression(name) for name in parameters))
    if not isinstance(body, Expression) and callable(body):
        raise TypeError("a lambda gives an expression or a value, not a function")
    return LambdaExpression(parameters, body)


def _entry(name: str, kind: type[_Functions]) -> None:
    def enter(self: Expression) -> Expression:
        made = _made(self._text, self._shown, kind)
        made._alias, made._order = self._alias, self._order
        return made

    enter.__name__, enter.__qualname__, enter.__doc__ = name, f"Expression.{name}", f"The expression with methods: {kind.__doc__}"
    setattr(Expression, name, enter)


for _name, _kind in (("str", TextFunctions), ("dt", TimeFunctions), ("list", ListFunctions), ("json", JsonFunctions)):
    _entry(_name, _kind)
del _name, _kind


__all__ = [
    "coalesce",
    "col",
    "count_all",
    "dense_rank",
    "first_value",
    "fn",
    "lag",
    "last_value",
    "lead",
    "lit",
    "ntile",
    "rank",
    "row_number",
    "sql_expr",
    "star",
    "when",
]
