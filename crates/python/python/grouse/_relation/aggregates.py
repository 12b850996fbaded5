"""Aggregates of a relation as methods of their names: `rel.sum("x", groups="k")`.

In: expressions, keys of groups or a window, columns to show beside the aggregate. Out: a lazy relation.
Invariant: the method's name means what the function of that name means in SQL; of several expressions, `"a, b"`, each has its own
aggregate.
Not here: what the functions compute; windows without an argument (windows.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from grouse._native import Relation
from grouse._relation.derived import derive
from grouse._text import expression, expressions, is_given, literal, parts
from grouse.errors import InvalidError, SyntaxError

# The function behind each method, and what it is said to give.
_OF_ONE = {
    "any_value": ("any_value", "A value of each group that is not NULL."),
    "avg": ("avg", "The mean, as DOUBLE."),
    "mean": ("avg", "The mean, as DOUBLE."),
    "bit_and": ("bit_and", "The bits that all integers have."),
    "bit_or": ("bit_or", "The bits that some integer has."),
    "bit_xor": ("bit_xor", "The bits that an odd number of integers has."),
    "bool_and": ("bool_and", "Whether all are true."),
    "bool_or": ("bool_or", "Whether some is true."),
    "count": ("count", "The number of values that are not NULL; of rows, for \"*\"."),
    "favg": ("favg", "The mean, by a sum that loses nothing on the way."),
    "fsum": ("fsum", "The sum, as DOUBLE, by one that loses nothing on the way."),
    "geomean": ("geomean", "The geometric mean."),
    "histogram": ("histogram", "How often there is each value, as a map."),
    "list": ("list", "All values as a list, NULL among them."),
    "max": ("max", "The greatest value."),
    "median": ("median", "The value in the middle, or the mean of the two there."),
    "min": ("min", "The least value."),
    "mode": ("mode", "The most frequent value."),
    "product": ("product", "The product, as DOUBLE."),
    "std": ("stddev_samp", "The standard deviation of a sample."),
    "stddev": ("stddev_samp", "The standard deviation of a sample."),
    "stddev_pop": ("stddev_pop", "The standard deviation of all there is."),
    "stddev_samp": ("stddev_samp", "The standard deviation of a sample."),
    "sum": ("sum", "The sum; one that does not fit its type is grouse.OverflowError."),
    "var": ("var_samp", "The variance of a sample."),
    "var_pop": ("var_pop", "The variance of all there is."),
    "var_samp": ("var_samp", "The variance of a sample."),
    "variance": ("var_samp", "The variance of a sample."),
}
_QUANTILES = {
    "quantile": ("quantile_disc", "The value below which a share `q` of all values is: one of them."),
    "quantile_cont": ("quantile_cont", "The value below which a share `q` of all values is, between two of them if need be."),
    "quantile_disc": ("quantile_disc", "The value below which a share `q` of all values is: one of them."),
}
_WITHOUT_WINDOW = {"first": "The first value, NULL or not.", "last": "The last value, NULL or not."}

_GROUPS = """

        expression: one expression, or a list of them. groups: keys of GROUP BY; without them there is one row.
        window_spec: `"OVER (…)"`, for a value in each row. projected_columns: expressions to show before the aggregate."""


def each(self: Relation, calls: Sequence[str], groups: str, window_spec: str, projected_columns: str) -> Relation:
    """The relation of some calls."""
    if is_given(groups) and window_spec:
        raise InvalidError("groups and window_spec exclude each other: a window has PARTITION BY")
    window = f" {_window(window_spec)}" if window_spec else ""
    wanted = ", ".join(f"{call}{window}" for call in calls)
    if is_given(projected_columns):
        wanted = f"{expressions(projected_columns, 'projected_columns', 'as_select')}, {wanted}"
    keys = f" GROUP BY {expressions(groups, 'groups')}" if is_given(groups) else ""
    kind = "PROJECTION_RELATION" if window else "AGGREGATE_RELATION"
    return derive(self, lambda this: f"SELECT {wanted} FROM {this}{keys}", kind, opened=True)


def _window(text: str) -> str:
    (window,) = parts(text, "window_spec") if isinstance(text, str) and len(parts(text, "window_spec")) == 1 else (None,)
    if window is None or not window.upper().startswith("OVER"):
        raise SyntaxError(f"window_spec has to be OVER (…), not {text!r}")
    return f"{window}\n"


def _of_one(name: str, function: str, says: str) -> Callable[..., Relation]:
    def method(
        self: Relation, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = ""
    ) -> Relation:
        calls = [f"{function}({part}\n)" for part in parts(expression, f"{name}()")]
        return each(self, calls, groups, window_spec, projected_columns)

    return named(method, name, says + _GROUPS)


def _quantile(name: str, function: str, says: str) -> Callable[..., Relation]:
    def method(
        self: Relation,
        expression: str,
        q: float | list[float] = 0.5,
        groups: str = "",
        window_spec: str = "",
        projected_columns: str = "",
    ) -> Relation:
        calls = [f"{function}({part}\n, {literal(q)})" for part in parts(expression, f"{name}()")]
        return each(self, calls, groups, window_spec, projected_columns)

    return named(method, name, says + " Of a list of shares a list." + _GROUPS)


def _without_window(name: str, says: str) -> Callable[..., Relation]:
    def method(self: Relation, expression: str, groups: str = "", projected_columns: str = "") -> Relation:
        calls = [f"{name}({part}\n)" for part in parts(expression, f"{name}()")]
        return each(self, calls, groups, "", projected_columns)

    return named(method, name, says)


def named(method: Callable[..., Relation], name: str, says: str) -> Callable[..., Relation]:
    method.__name__, method.__doc__ = name, says
    return method


class Aggregates:
    """What `Relation` has of this file."""

    for _name, (_function, _says) in _OF_ONE.items():
        locals()[_name] = _of_one(_name, _function, _says)
    for _name, (_function, _says) in _QUANTILES.items():
        locals()[_name] = _quantile(_name, _function, _says)
    for _name, _says in _WITHOUT_WINDOW.items():
        locals()[_name] = _without_window(_name, _says)
    del _name, _function, _says

    def arg_max(
        self: Relation,
        arg_column: str,
        value_column: str,
        groups: str = "",
        window_spec: str = "",
        projected_columns: str = "",
    ) -> Relation:
        """The value of `arg_column` in the row with the greatest `value_column`."""
        call = f"arg_max({expression(arg_column, 'arg_max()')}, {expression(value_column, 'arg_max()')})"
        return each(self, [call], groups, window_spec, projected_columns)

    def arg_min(
        self: Relation,
        arg_column: str,
        value_column: str,
        groups: str = "",
        window_spec: str = "",
        projected_columns: str = "",
    ) -> Relation:
        """The value of `arg_column` in the row with the least `value_column`."""
        call = f"arg_min({expression(arg_column, 'arg_min()')}, {expression(value_column, 'arg_min()')})"
        return each(self, [call], groups, window_spec, projected_columns)

    def string_agg(
        self: Relation, expression: str, sep: str = ",", groups: str = "", window_spec: str = "", projected_columns: str = ""
    ) -> Relation:
        """The values as one text, with `sep` between them."""
        calls = [f"string_agg({part}\n, {literal(sep)})" for part in parts(expression, "string_agg()")]
        return each(self, calls, groups, window_spec, projected_columns)

    def value_counts(self: Relation, expression: str, groups: str = "") -> Relation:
        """Each value with the number of its rows (0 for NULL, as `count(x)` has it); with `groups` in each group."""
        wanted = expressions(expression, "value_counts()")
        keys = f"{expressions(groups, 'value_counts()')}, {wanted}" if is_given(groups) else wanted
        counts = ", ".join(f"count({part}\n)" for part in parts(expression, "value_counts()"))
        return derive(
            self, lambda this: f"SELECT {keys}, {counts} FROM {this} GROUP BY {keys}", "AGGREGATE_RELATION", opened=True
        )

    def apply(
        self: Relation,
        function_name: str,
        function_aggr: str,
        group_expr: str = "",
        function_parameter: str = "",
        projected_columns: str = "",
    ) -> Relation:
        """The aggregate of any name, of each expression of a list: `apply("quantile_cont", "a, b", function_parameter="0.5")`."""
        if not function_name.isidentifier():
            raise SyntaxError(f"apply() takes the name of a function, not {function_name!r}")
        more = f", {expressions(function_parameter, 'apply()')}" if is_given(function_parameter) else ""
        calls = [f"{function_name}({part}\n{more})" for part in parts(function_aggr, "apply()")]
        return each(self, calls, group_expr, "", projected_columns)
