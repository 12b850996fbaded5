"""Exceptions: one class per variant of the engine's error enum, named after it, under the classes of PEP 249.

In: nothing; the native module raises them. Out: classes whose attributes are the fields of the variant.
Invariant: every class of a variant is also one of PEP 249's, and the builtin that a caller would look for (`OSError`, `ValueError`,
...), so code that knows nothing of grouse catches the right thing. Not here: messages, which are the engine's.
"""

from __future__ import annotations

import builtins

__all__ = [
    "AmbiguousColumnError",
    "CancelledError",
    "DataError",
    "DatabaseError",
    "DivideByZeroError",
    "Error",
    "ExecutionError",
    "FileNotFoundError",
    "FormatError",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "InvalidError",
    "IoError",
    "NotSupportedError",
    "OperationalError",
    "OutOfMemoryError",
    "OverflowError",
    "PlanningError",
    "ProgrammingError",
    "SyntaxError",
    "TimeoutError",
    "TypeError",
    "UnknownColumnError",
    "UnknownFunctionError",
    "UnknownTableError",
    "UnsupportedError",
    "Warning",
]


class Error(Exception):
    """Anything that grouse fails with. `str(error)` says what was wrong, where, and what to do."""


class Warning(builtins.Warning):  # noqa: A001, N818: the name that PEP 249 asks for
    """Nothing raises it; PEP 249 asks for it."""


class InterfaceError(Error):
    """Nothing raises it; PEP 249 asks for it."""


class DatabaseError(Error):
    """Any failure: each of the classes below is one."""


class DataError(DatabaseError):
    """A value is wrong: its type, its size, its form."""


class OperationalError(DatabaseError):
    """Something outside of the statement is in its way: a file, the memory, the time, a cancellation."""


class IntegrityError(DatabaseError):
    """Nothing raises it yet; PEP 249 asks for it."""


class ProgrammingError(DatabaseError):
    """The statement, an option or a call is wrong."""


class NotSupportedError(DatabaseError):
    """It is not there."""


class _Located(Error):
    """An error with a place in the SQL text."""

    line: int | None = None
    """Line, from 1; None where it is not known."""
    column: int | None = None
    """Column in characters, from 1; None where it is not known."""


class _Name(_Located, ProgrammingError, LookupError):
    """A name that means nothing, or too much."""

    name: str = ""
    """The name as written."""


class SyntaxError(_Located, ProgrammingError, ValueError):
    """The text is not SQL."""


class UnknownColumnError(_Name):
    """No table of the query has such a column."""

    nearest: list[str] = []
    """The nearest names that do exist, best first."""


class AmbiguousColumnError(_Name):
    """Several tables of the query have such a column."""

    candidates: list[str] = []
    """The qualified names that it may mean."""


class UnknownTableError(_Name):
    """There is no such table, and no Python variable of that name holds one."""

    nearest: list[str] = []
    """The nearest names that do exist, best first."""


class UnknownFunctionError(_Name):
    """There is no such function."""

    nearest: list[str] = []
    """The nearest names that do exist, best first."""


class TypeError(_Located, DataError, builtins.TypeError):
    """Types do not fit, or a value cannot be converted."""


class PlanningError(_Located, ProgrammingError, ValueError):
    """The query makes no sense for another reason."""


class UnsupportedError(NotSupportedError, NotImplementedError):
    """SQL that is understood but cannot be run here."""


class IoError(OperationalError, OSError):
    """A file, folder or server cannot be read or written."""

    path: str = ""
    """As written in the query, or the full path."""


class FileNotFoundError(IoError, builtins.FileNotFoundError):
    """There is nothing at the path."""


class FormatError(DataError, ValueError):
    """The content of a file is not what its format demands."""

    path: str = ""
    """The file."""
    line: int | None = None
    """Line in text files, from 1."""


class OutOfMemoryError(OperationalError, MemoryError):
    """The memory limit of the connection is reached."""

    operator: str = ""
    """The operator that asked."""
    asked_bytes: int = 0
    """Bytes that it asked for."""
    held_bytes: int = 0
    """Bytes that it held already."""
    used_bytes: int = 0
    """Bytes in use in the whole connection."""
    limit_bytes: int = 0
    """The limit of the connection."""


class OverflowError(DataError, builtins.OverflowError):
    """A result does not fit its type."""

    aggregate: str = ""
    """The aggregate as written, or `arithmetic`."""


class DivideByZeroError(DataError, ZeroDivisionError):
    """An integer or decimal was divided by zero."""


class CancelledError(OperationalError):
    """The query was stopped from outside."""


class TimeoutError(OperationalError, builtins.TimeoutError):
    """The statement took longer than `statement_timeout`."""


class InvalidError(ProgrammingError, ValueError):
    """An option or an argument has a value that is not possible."""

    name: str = ""
    """Name of the option or argument."""


class ExecutionError(OperationalError, RuntimeError):
    """Any other failure while running."""


class InternalError(DatabaseError, RuntimeError):
    """A defect of grouse: please report it."""


for _name in __all__:  # what a traceback shows is what `except` takes
    globals()[_name].__module__ = "grouse"
