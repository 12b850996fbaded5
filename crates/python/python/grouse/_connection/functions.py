"""Scalar functions of SQL that are written in Python.

In: a callable, types of its parameters and result, rules for NULL and exceptions. Out: a function that statements call.
Invariant: what is not said is read from annotations; nothing is guessed.
Not here: calling it (the native module), types by name (grouse/_types.py).
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence

from grouse._native import Connection
from grouse._text import word
from grouse._types import typed
from grouse.errors import InvalidError, TypeError

# What only type checkers read is not imported: it takes as long as all of this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import inspect
    from typing import Any

# `arguments` of a function that takes any number of them.
_ANY_NUMBER = -1


class Definition:
    """What the native module reads of a function."""

    __slots__ = ("name", "function", "style", "null_handling", "exception_handling", "side_effects", "arguments")

    def __init__(self, name: str, function: Callable[..., Any], arguments: int | None, side_effects: bool) -> None:
        self.name, self.function = name.lower(), function
        self.arguments, self.side_effects = arguments, side_effects
        self.style, self.null_handling, self.exception_handling = "native", "default", "default"


class Functions:
    """What `Connection` has of this file."""

    def create_function(
        self: Connection,
        name: str,
        function: Callable[..., Any],
        parameters: Sequence[Any] | None = None,
        return_type: Any = None,
        *,
        type: str = "native",
        null_handling: str = "default",
        exception_handling: str = "default",
        side_effects: bool = False,
    ) -> Connection:
        """Makes a function of Python a scalar function of SQL on this connection.

        parameters, return_type: types as SQL names them ("BIGINT", "DECIMAL(10, 2)"), classes of Python (int, list[str]) or
        types of pyarrow; None reads annotations, and without those arguments are of any type.
        type: "native" calls it for each row with values of Python, "arrow" for each batch with arrays of pyarrow.
        null_handling: "default" calls it for rows without NULL alone, and the result of others is NULL; "special" for all.
        exception_handling: "default" ends the statement with an error of its text, "return_null" gives NULL.
        side_effects: True calls it for each row, also where its arguments are the same.

        A value that is not of return_type is an error. The function may run statements on other connections, not on this one or one that waits for it.
        Raises grouse.InvalidError for names that SQL or another function has.
        """
        if not callable(function):
            raise TypeError(f"create_function() takes something to call, not {function.__class__.__name__}")
        if not isinstance(name, str):
            raise TypeError(f"the name of a function is a str, not {name.__class__.__name__}")
        kinds, arguments = _parameters(function, parameters)
        definition = Definition(name, function, arguments, bool(side_effects))
        definition.style = word(type, "type", ("native", "arrow"))
        definition.null_handling = word(null_handling, "null_handling", ("default", "special"))
        definition.exception_handling = word(exception_handling, "exception_handling", ("default", "return_null"))
        result = _annotated(function).get("return") if return_type is None else return_type
        if result is None:
            raise InvalidError(f"create_function('{name}') needs return_type: the function has no annotation for its result")
        self._create_function(definition, typed(self, [*kinds, result]))
        return self

    def remove_function(self: Connection, name: str) -> Connection:
        """Takes away a function that `create_function` made. Raises grouse.InvalidError if there is none."""
        self._remove_function(name)
        return self


def _parameters(function: Callable[..., Any], given: Sequence[Any] | None) -> tuple[list[Any], int | None]:
    """The types of parameters; None and their number, where they are of any type."""
    known = _signature(function)
    if given is not None:
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise TypeError("parameters is a list of types")
        if known is not None:
            _check_number(known, len(given))
        return list(given), None
    if known is None:
        return [], _ANY_NUMBER
    listed = list(known.parameters.values())
    if any(one.kind is one.VAR_POSITIONAL for one in listed):
        return [], _ANY_NUMBER
    wanted = [one for one in listed if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    hints = _annotated(function)
    kinds = [hints[one.name] for one in wanted if one.name in hints]
    if not kinds:
        return [], len(wanted)
    if len(kinds) < len(wanted):
        raise InvalidError("create_function() needs parameters: some, not all, of the function's have annotations")
    return kinds, None


def _check_number(known: inspect.Signature, count: int) -> None:
    try:
        known.bind(*[None] * count)
    except builtins.TypeError as failure:
        raise InvalidError(f"parameters has {count} types, and the function takes others: {failure}") from None


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    """The function's parameters; None of those that do not say."""
    import inspect

    try:
        return inspect.signature(function)
    except (ValueError, builtins.TypeError):
        return None


def _annotated(function: Callable[..., Any]) -> dict[str, Any]:
    """Annotations by name; none of what has none, or names what is not there."""
    import typing

    try:
        return typing.get_type_hints(function)
    except (NameError, AttributeError, builtins.TypeError):
        return {}

