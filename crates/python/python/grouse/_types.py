"""Types of SQL by what callers have for them: names, classes of Python, annotations, types of pyarrow.

In: `"BIGINT"`, `int`, `list[str]`, `pa.int64()`. Out: text of SQL; a relation without rows whose columns are of these types.
Invariant: a name is the engine's to read, and one type alone.
Not here: values (_text.py, the native module).
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence

from grouse._native import Connection, Relation
from grouse._text import parts, quoted
from grouse.errors import TypeError

# What only type checkers read is not imported: it takes as long as all of this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_OF_CLASSES = {
    "bool": "BOOLEAN",
    "int": "BIGINT",
    "float": "DOUBLE",
    "str": "VARCHAR",
    "bytes": "BLOB",
    "bytearray": "BLOB",
    "datetime.date": "DATE",
    "datetime.datetime": "TIMESTAMP",
    "datetime.time": "TIME",
    "datetime.timedelta": "INTERVAL",
    "uuid.UUID": "UUID",
}


def type_text(kind: Any) -> str:
    """The type as SQL writes it. Raises grouse.TypeError for what is no type."""
    if isinstance(kind, str):
        (one,) = parts(kind, "a type") if len(parts(kind, "a type")) == 1 else (None,)
        if one is None:
            raise TypeError(f"{kind!r} is not one type")
        return one
    if isinstance(kind, Mapping):
        return "STRUCT(" + ", ".join(f"{quoted(name)} {type_text(part)}" for name, part in kind.items()) + ")"
    origin, arguments = getattr(kind, "__origin__", None), getattr(kind, "__args__", ())
    if origin is list and len(arguments) == 1:
        return f"{type_text(arguments[0])}[]"
    if origin is dict and len(arguments) == 2:
        return f"MAP({type_text(arguments[0])}, {type_text(arguments[1])})"
    if _is_union(kind):
        others = [one for one in arguments if one is not type(None)]
        if len(others) == 1:
            return type_text(others[0])
    if isinstance(kind, type):
        name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
        if name in _OF_CLASSES:
            return _OF_CLASSES[name]
    raise TypeError(f"{kind!r} is no type; name one as SQL does, such as 'BIGINT' or 'DECIMAL(10, 2)'")


def _is_union(kind: Any) -> bool:
    import typing

    return isinstance(kind, types.UnionType) or getattr(kind, "__origin__", None) is typing.Union


def typed(connection: Connection, kinds: Sequence[Any]) -> Relation:
    """A relation whose columns are of these types, in order."""
    of_arrow = {f"c{at}": kind for at, kind in enumerate(kinds) if _is_arrow(kind)}
    columns = [
        quoted(f"c{at}") if f"c{at}" in of_arrow else f"CAST(NULL AS {type_text(kind)}\n) AS {quoted(f'c{at}')}"
        for at, kind in enumerate(kinds)
    ]
    if not of_arrow:
        return connection._plan(f"SELECT {', '.join(columns)}", {})
    import pyarrow

    table = pyarrow.schema(of_arrow).empty_table()
    return connection._plan(f'SELECT {", ".join(columns)} FROM "relation 1"', {"relation 1": table})


def _is_arrow(kind: Any) -> bool:
    return type(kind).__module__.partition(".")[0] == "pyarrow"
