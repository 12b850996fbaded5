"""Native classes with methods written in Python.

In: a class of the native module, classes that hold methods. Out: the class has them as its own.
Invariant: no method of the native class is replaced; the parts are no classes of their own for anybody.
Not here: the methods.
"""

from __future__ import annotations

import types
from collections.abc import Iterable

# What Python asks for by itself, and a part may have.
_SPECIAL = {"__len__", "__getitem__", "__getattr__", "__contains__", "__reduce__"}


def extend(native: type, parts: Iterable[type]) -> None:
    """Gives a native class the methods, properties and constants of the parts."""
    own = set(vars(native))
    for part in parts:
        for name, value in vars(part).items():
            if name in own or name.startswith("__") and name not in _SPECIAL:
                continue
            if isinstance(value, types.FunctionType):
                value.__qualname__ = f"{native.__name__}.{value.__name__}"
            setattr(native, name, value)
