"""Expressions of SQL as objects: `ColumnExpression("a") + 1 > 2`, in the names and meanings of DuckDB's.

In: names, values of Python, operators, other expressions. Out: what the methods of a relation take beside text.
Invariant: an expression is SQL text that stands anywhere as one operand: names are quoted, values are literals, operators are in
brackets. Objects do not change: each method gives another one.
Not here: what expressions mean, which the engine decides; the text of names and values (_text.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from grouse._text import Written, alias_apart, expression, literal, names, quoted
from grouse._types import type_text
from grouse.errors import TypeError

# What only type checkers read is not imported: it takes as long as all of this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Aggregates that are methods, by the functions behind them, and what they give.
_AGGREGATES = {
    "any_value": ("any_value", "A value of the group that is not NULL."),
    "avg": ("avg", "The mean."),
    "mean": ("avg", "The mean."),
    "arg_max": ("arg_max", "The value of the row in which the argument is greatest."),
    "arg_min": ("arg_min", "The value of the row in which the argument is least."),
    "array_agg": ("array_agg", "The values as a list."),
    "bit_and": ("bit_and", "The bits that all values have."),
    "bit_or": ("bit_or", "The bits that some value has."),
    "bool_and": ("bool_and", "Whether all values are true."),
    "bool_or": ("bool_or", "Whether some value is true."),
    "count": ("count", "The number of values that are not NULL."),
    "entropy": ("entropy", "The entropy of the values."),
    "first": ("first", "The first value."),
    "kurtosis": ("kurtosis", "The kurtosis of the values."),
    "last": ("last", "The last value."),
    "max": ("max", "The greatest value."),
    "median": ("median", "The value in the middle, or the mean of the two there."),
    "min": ("min", "The least value."),
    "mode": ("mode", "The most frequent value."),
    "product": ("product", "The product of the values."),
    "quantile": ("quantile_disc", "The value below which a share of all values is, one of them."),
    "quantile_cont": ("quantile_cont", "The value below which a share of all values is, between two of them if need be."),
    "skewness": ("skewness", "The skewness of the values."),
    "std": ("stddev_samp", "The standard deviation of a sample."),
    "string_agg": ("string_agg", "The values as one text; the argument stands between them."),
    "sum": ("sum", "The sum of the values."),
    "var": ("var_samp", "The variance of a sample."),
}


class Expression(Written):
    """An expression of SQL. `Expression("x")` is the column x, `Expression(1)` the value 1.

    `+ - * / // % **` compute, `== != < <= > >=` compare, `& | ~` are AND, OR and NOT, `[…]` is an item or a field. What stands
    beside an expression is a value: a str is text, and `ColumnExpression` makes it a name. As in Python and in DuckDB `/` gives
    a DOUBLE, where SQL here divides integers without a rest.
    """

    __slots__ = ("_text", "_shown", "_alias", "_order")

    # numpy's arrays and numbers leave operators to this class.
    __array_ufunc__ = None

    def __init__(self, value: Any) -> None:
        other = value if isinstance(value, Expression) else ColumnExpression(value) if isinstance(value, str) else _value(value)
        self._text, self._shown, self._alias, self._order = other._text, other._shown, other._alias, other._order

    def alias(self, name: str) -> Expression:
        """The expression under a name, for a column of the result. An empty one takes the name away."""
        return self._with(alias=name)

    def get_name(self) -> str:
        """The name of the result's column."""
        return self._shown if self._alias is None else self._alias

    def asc(self) -> Expression:
        """For an order from the least value up."""
        return self._with(order=("ASC", self._order[1]))

    def desc(self) -> Expression:
        """For an order from the greatest value down."""
        return self._with(order=("DESC", self._order[1]))

    def nulls_first(self) -> Expression:
        """For an order in which NULL comes first."""
        return self._with(order=(self._order[0], "NULLS FIRST"))

    def nulls_last(self) -> Expression:
        """For an order in which NULL comes last."""
        return self._with(order=(self._order[0], "NULLS LAST"))

    def cast(self, type: Any) -> Expression:
        """As another type: its name in SQL, or a class of Python. What cannot be cast is an error."""
        kind = type_text(type)
        return _made(f"CAST({self._text} AS {kind}\n)", f"CAST({self._shown} AS {kind})")

    def try_cast(self, type: Any) -> Expression:
        """As another type; what cannot be cast is NULL."""
        kind = type_text(type)
        return _made(f"TRY_CAST({self._text} AS {kind}\n)", f"TRY_CAST({self._shown} AS {kind})")

    def isin(self, *values: Any) -> Expression:
        """Whether it is one of some values or expressions."""
        if not values:
            raise TypeError("isin() takes one value at least")
        others = [_operand(value) for value in values]
        return _spread("({} IN (" + ", ".join(["{}"] * len(others)) + "))", self, *others)

    def isnotin(self, *values: Any) -> Expression:
        """Whether it is none of some values or expressions."""
        return ~self.isin(*values)

    def isnull(self) -> Expression:
        """Whether it is NULL. `== None` is NULL, as `= NULL` is in SQL."""
        return _spread("({} IS NULL)", self)

    is_null = isnull

    def isnotnull(self) -> Expression:
        """Whether it is not NULL."""
        return _spread("({} IS NOT NULL)", self)

    is_not_null = isnotnull

    def between(self, lower: Any, upper: Any) -> Expression:
        """Whether it lies between two values, these included."""
        return _spread("({} BETWEEN {} AND {})", self, _operand(lower), _operand(upper))

    def like(self, pattern: Any) -> Expression:
        """Whether it fits a pattern in which `%` is any text and `_` any letter."""
        return _spread("({} LIKE {})", self, _operand(pattern))

    def ilike(self, pattern: Any) -> Expression:
        """The same as `like`, whatever the case."""
        return _spread("({} ILIKE {})", self, _operand(pattern))

    def concat(self, *others: Any) -> Expression:
        """Its text, and that of others after it; NULL where one is."""
        found = [_operand(other) for other in others]
        return _spread("(" + " || ".join(["{}"] * (len(found) + 1)) + ")", self, *found)

    def n_unique(self) -> Expression:
        """The number of different values, NULL aside."""
        return _spread("count(DISTINCT {})", self)

    def where(self, condition: Any) -> Expression:
        """The aggregate of the rows for which a condition is true. It goes before `over`."""
        return _spread("{} FILTER (WHERE {})", self, _operand(condition))

    def ignore_nulls(self) -> Expression:
        """The function of windows without NULL: `first_value`, `last_value`, `lag`, `lead`, `nth_value`."""
        if not self._text.endswith(")"):
            raise TypeError("ignore_nulls() goes right after the function of a window")
        return _made(self._text[:-1] + " IGNORE NULLS)", self._shown[:-1] + " IGNORE NULLS)")

    def over(
        self,
        partition_by: Any = None,
        order_by: Any = None,
        *,
        rows: tuple[int | None, int | None] | None = None,
        range: tuple[int | None, int | None] | None = None,
    ) -> Expression:
        """The aggregate, or function of windows, over the rows of a window.

        partition_by, order_by: an expression or a list of them; a str is SQL.
        rows, range: where the frame begins and ends, counted from the row; None is without end: `rows=(-2, 0)`.
        """
        if rows is not None and range is not None:
            raise TypeError("over() takes rows or range, not both")
        window = []
        if partition_by is not None:
            window.append("PARTITION BY " + ", ".join(_sql(one).fragment() for one in _several(partition_by)))
        if order_by is not None:
            window.append("ORDER BY " + ", ".join(_sql(one).as_order() for one in _several(order_by)))
        for word, frame in (("ROWS", rows), ("RANGE", range)):
            if frame is not None:
                window.append(f"{word} BETWEEN {_bound(frame[0], 'PRECEDING')} AND {_bound(frame[1], 'FOLLOWING')}")
        return _spread("{} OVER (" + " ".join(window).replace("{", "{{").replace("}", "}}") + ")", self)

    def when(self, condition: Any, *value: Any) -> Any:
        """One more branch of a `CaseExpression`."""
        raise TypeError("when() goes with CaseExpression(condition, value)")

    def otherwise(self, value: Any) -> Expression:
        """The value of a `CaseExpression` of which no branch is true."""
        raise TypeError("otherwise() goes with CaseExpression(condition, value)")

    def show(self) -> None:
        """Prints its SQL."""
        print(self)

    def fragment(self) -> str:
        """Its SQL, as an operand."""
        return self._text

    def as_select(self) -> str:
        """Its SQL in a list of columns, with the name of the column."""
        if self._alias is not None:
            return f"{self._text} AS {quoted(self._alias)}"
        return f"{self._text} AS {quoted(self._shown)}"

    def as_order(self) -> str:
        """Its SQL in ORDER BY, with direction and place of NULL."""
        return " ".join(part for part in (self._text, *self._order) if part)

    for _name, (_function, _says) in _AGGREGATES.items():

        def _method(self: Expression, *arguments: Any, _function: str = _function) -> Expression:
            return _call(_function, [self, *map(_operand, arguments)])

        _method.__name__, _method.__qualname__, _method.__doc__ = _name, f"Expression.{_name}", f"{_says} SQL: `{_function}`."
        locals()[_name] = _method
    del _name, _function, _says, _method

    def __add__(self, other: Any) -> Expression:
        return _binary(self, "+", other)

    def __radd__(self, other: Any) -> Expression:
        return _binary(other, "+", self)

    def __sub__(self, other: Any) -> Expression:
        return _binary(self, "-", other)

    def __rsub__(self, other: Any) -> Expression:
        return _binary(other, "-", self)

    def __mul__(self, other: Any) -> Expression:
        return _binary(self, "*", other)

    def __rmul__(self, other: Any) -> Expression:
        return _binary(other, "*", self)

    def __truediv__(self, other: Any) -> Expression:
        return _quotient(self, other)

    def __rtruediv__(self, other: Any) -> Expression:
        return _quotient(other, self)

    def __floordiv__(self, other: Any) -> Expression:
        return _binary(self, "//", other)

    def __rfloordiv__(self, other: Any) -> Expression:
        return _binary(other, "//", self)

    def __mod__(self, other: Any) -> Expression:
        return _binary(self, "%", other)

    def __rmod__(self, other: Any) -> Expression:
        return _binary(other, "%", self)

    def __pow__(self, other: Any) -> Expression:
        return _call("pow", [self, _operand(other)])

    def __rpow__(self, other: Any) -> Expression:
        return _call("pow", [_operand(other), self])

    def __and__(self, other: Any) -> Expression:
        return _binary(self, "AND", other)

    def __rand__(self, other: Any) -> Expression:
        return _binary(other, "AND", self)

    def __or__(self, other: Any) -> Expression:
        return _binary(self, "OR", other)

    def __ror__(self, other: Any) -> Expression:
        return _binary(other, "OR", self)

    def __invert__(self) -> Expression:
        return _spread("(NOT {})", self)

    def __neg__(self) -> Expression:
        return _spread("(- {})", self)

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return _binary(self, "=", other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return _binary(self, "!=", other)

    def __lt__(self, other: Any) -> Expression:
        return _binary(self, "<", other)

    def __le__(self, other: Any) -> Expression:
        return _binary(self, "<=", other)

    def __gt__(self, other: Any) -> Expression:
        return _binary(self, ">", other)

    def __ge__(self, other: Any) -> Expression:
        return _binary(self, ">=", other)

    def __getitem__(self, key: Any) -> Expression:
        return _spread("{}[{}]", self, _operand(key))

    def __iter__(self) -> Any:
        raise TypeError("an expression has no items here; unnest() gives those of a list as rows")

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise TypeError("an expression has a value in each row, not here: write & for and, | for or, ~ for not, isin() for in")

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def _with(self, alias: str | None = None, order: tuple[str, str] | None = None) -> Expression:
        made = object.__new__(type(self))
        for name in ("_text", "_shown", *(("_branches", "_last") if isinstance(self, _Case) else ())):
            setattr(made, name, getattr(self, name))
        made._alias = self._alias if alias is None else str(alias) or None
        made._order = self._order if order is None else order
        return made


class _Column(Expression):
    """A name, which is the name of its column in a result, too; or a star."""

    __slots__ = ()

    def as_select(self) -> str:
        return self._text if self._alias is None else super().as_select()


class _Case(Expression):
    """CASE, to which branches may be added."""

    __slots__ = ("_branches", "_last")

    def when(self, condition: Any, *value: Any) -> Any:
        """One more branch; without a value, what `then` gives one."""
        if not value:
            return When(condition, self)
        (value,) = value
        return _case([*self._branches, (_operand(condition), _operand(value))], self._last)

    def otherwise(self, value: Any) -> Expression:
        """The value where no branch is true; without it NULL."""
        return _case(self._branches, _operand(value))


class When:
    """A condition that waits for its value: `when(a > 1).then("many").when(a == 1).then("one").otherwise("none")`."""

    __slots__ = ("_condition", "_case")

    def __init__(self, condition: Any, case: _Case | None = None) -> None:
        self._condition, self._case = condition, case

    def then(self, value: Any) -> Expression:
        """CASE with this value where the condition is true; `when` and `otherwise` go on with it."""
        return CaseExpression(self._condition, value) if self._case is None else self._case.when(self._condition, value)


def _made(text: str, shown: str, kind: type[Expression] = Expression) -> Any:
    made = object.__new__(kind)
    made._text, made._shown, made._alias, made._order = text, shown, None, ("", "")
    return made


def _spread(form: str, *parts: Expression) -> Expression:
    """An expression of others, which stand where the form has `{}`."""
    return _made(form.format(*(part._text for part in parts)), form.format(*(part._shown for part in parts)))


def _binary(left: Any, operator: str, right: Any) -> Expression:
    return _spread(f"({{}} {operator} {{}})", _operand(left), _operand(right))


def _quotient(left: Any, right: Any) -> Expression:
    dividend, divisor = _operand(left), _operand(right)
    return _made(f"(CAST({dividend._text} AS DOUBLE) / {divisor._text})", f"({dividend._shown} / {divisor._shown})")


def _call(function: str, arguments: Sequence[Expression]) -> Expression:
    is_plain = function.isidentifier() and function.isascii()
    name = (function if is_plain else quoted(function)).replace("{", "{{").replace("}", "}}")
    return _spread(f"{name}({', '.join(['{}'] * len(arguments))})", *arguments)


def _case(branches: list[tuple[Expression, Expression]], last: Expression | None) -> Expression:
    parts = [part for branch in branches for part in branch]
    form = "(CASE" + " WHEN {} THEN {}" * len(branches) + " ELSE {} END)"
    plain = _spread(form, *parts, _value(None) if last is None else last)
    made = _made(plain._text, plain._shown, _Case)
    made._branches, made._last = branches, last
    return made


def _operand(value: Any) -> Expression:
    """An expression as it is, and a value of Python as one."""
    return value if isinstance(value, Expression) else _value(value)


def _value(value: Any) -> Expression:
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        value = value.tolist()
    text = literal(value)
    return _made(f"({text})" if text.startswith("-") else text, text)


def _sql(value: Any) -> Expression:
    """An expression as it is, and a str as SQL."""
    return SQLExpression(value) if isinstance(value, str) else _operand(value)


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _bound(rows: int | None, without_end: str) -> str:
    if rows is None:
        return f"UNBOUNDED {without_end}"
    if int(rows) == 0:
        return "CURRENT ROW"
    return f"{abs(int(rows))} {'PRECEDING' if rows < 0 else 'FOLLOWING'}"


def ColumnExpression(*name: str) -> Expression:
    """A column by its name, or by the parts of it: `ColumnExpression("t", "a")`. A name is never cut; `"*"` is all columns."""
    if not name:
        raise TypeError("ColumnExpression() takes the name of a column")
    if name == ("*",):
        return StarExpression()
    return _made(".".join(map(quoted, name)), name[-1], _Column)


def ConstantExpression(value: Any) -> Expression:
    """A value of Python."""
    return _operand(value)


def StarExpression(*, exclude: Iterable[str | Expression] = ()) -> Expression:
    """All columns, but those of `exclude`: names, or column expressions."""
    left_out = [one._shown if isinstance(one, Expression) else one for one in names(exclude)]
    text = f"* EXCLUDE ({', '.join(map(quoted, left_out))})" if left_out else "*"
    return _made(text, text, _Column)


def FunctionExpression(function_name: str, *arguments: Any) -> Expression:
    """A call of a function. A str among the arguments is text, and a column is a `ColumnExpression`."""
    if not isinstance(function_name, str):
        raise TypeError(f"the name of a function is a str, not {type(function_name).__name__}")
    return _call(function_name, [_operand(argument) for argument in arguments])


def CoalesceOperator(*arguments: Any) -> Expression:
    """The first of the arguments that is not NULL."""
    if not arguments:
        raise TypeError("CoalesceOperator() takes one argument at least")
    return _call("coalesce", [_operand(argument) for argument in arguments])


def CaseExpression(condition: Any, value: Any) -> Expression:
    """CASE WHEN: `CaseExpression(a > 1, "many").when(a == 1, "one").otherwise("none")`."""
    return _case([(_operand(condition), _operand(value))], None)


def LambdaExpression(lhs: Any, rhs: Any) -> Expression:
    """A function of one or several parameters, for functions of lists: `LambdaExpression("x", ColumnExpression("x") + 1)`."""
    parameters = [one._shown if isinstance(one, Expression) else one for one in _several(lhs)]
    body = _operand(rhs)
    listed = ", ".join(map(quoted, parameters))
    return _made(f"lambda {listed}: {body._text}", f"lambda {', '.join(parameters)}: {body._shown}")


def SQLExpression(expression_text: str) -> Expression:
    """One expression, written as SQL; with `AS name` at its end it has that alias."""
    text, alias = alias_apart(expression(expression_text, "SQLExpression()"))
    made = _made(f"({text}\n)", text.strip())
    return made if alias is None else made.alias(alias)


__all__ = [
    "CaseExpression",
    "CoalesceOperator",
    "ColumnExpression",
    "ConstantExpression",
    "Expression",
    "FunctionExpression",
    "LambdaExpression",
    "SQLExpression",
    "StarExpression",
]
