"""Constants, types and constructors of PEP 249 (https://peps.python.org/pep-0249).

In: nothing. Out: names of the module `grouse`.
Invariant: a type object equals the names of its types in `description`, whatever their digits and zones.
Not here: exceptions (grouse/errors.py), cursors (cursor.py).
"""

from __future__ import annotations

import datetime

apilevel = "2.0"
# Threads share the module and its connections; a cursor is one thread's at a time.
threadsafety = 2
paramstyle = "qmark"

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> datetime.date:
    """The day of so many seconds after 1970, where the machine is."""
    return datetime.date.fromtimestamp(ticks)


def TimeFromTicks(ticks: float) -> datetime.time:
    """The time of day of so many seconds after 1970, where the machine is."""
    return datetime.datetime.fromtimestamp(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    """So many seconds after 1970, where the machine is."""
    return datetime.datetime.fromtimestamp(ticks)


class DBAPITypeObject:
    """The types of a kind: equal to the name of each of them."""

    def __init__(self, name: str, *types: str) -> None:
        self._name, self._types = name, types

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return other.partition("(")[0] in self._types
        return self is other

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return f"<grouse.{self._name}>"


STRING = DBAPITypeObject("STRING", "varchar")
BINARY = DBAPITypeObject("BINARY", "binary")
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMBER = DBAPITypeObject("NUMBER", *_INTEGERS, "boolean", "half", "float", "double", "decimal")
DATETIME = DBAPITypeObject("DATETIME", "date", "time", "timestamp", "interval", "duration")
ROWID = DBAPITypeObject("ROWID")
"""No type: there are no row ids."""

__all__ = [
    "BINARY",
    "Binary",
    "DATETIME",
    "DBAPITypeObject",
    "Date",
    "DateFromTicks",
    "NUMBER",
    "ROWID",
    "STRING",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "apilevel",
    "paramstyle",
    "threadsafety",
]
