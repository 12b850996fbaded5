"""Exceptions: one class per variant of the engine's error enum, named after it, and a common base.

In: nothing; the native module raises them. Out: classes whose attributes are the fields of the variant.
Invariant: every class is also the builtin that a caller would look for (`OSError`, `ValueError`, ...), so code that knows nothing of
grouse catches the right thing. Not here: messages, which are the engine's.
"""

from __future__ import annotations

import builtins

__all__ = [
    "AmbiguousColumnError",
    "CancelledError",
    "DivideByZeroError",
    "Error",
    "ExecutionError",
    "FileNotFoundError",
    "FormatError",
    "InternalError",
    "InvalidError",
    "IoError",
    "OutOfMemoryError",
    "OverflowError",
    "PlanningError",
    "SyntaxError",
    "TimeoutError",
    "TypeError",
    "UnknownColumnError",
    "UnknownFunctionError",
    "UnknownTableError",
    "UnsupportedError",
]


class Error(Exception):
    """Anything that grouse fails with. `str(error)` says what was wrong, where, and what to do."""


class _Located(Error):
    """An error with a place in the SQL text."""

    line: int | None = None
    """Line, from 1; None where it is not known."""
    column: int | None = None
    """Column in characters, from 1; None where it is not known."""


class _Name(_Located, LookupError):
    """A name that means nothing, or too much."""

    name: str = ""
    """The name as written."""


class SyntaxError(_Located, ValueError):
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


class TypeError(_Located, builtins.TypeError):
    """Types do not fit, or a value cannot be converted."""


class PlanningError(_Located, ValueError):
    """The query makes no sense for another reason."""


class UnsupportedError(Error, NotImplementedError):
    """SQL that is understood but cannot be run here."""


class IoError(Error, OSError):
    """A file, folder or server cannot be read or written."""

    path: str = ""
    """As written in the query, or the full path."""


class FileNotFoundError(IoError, builtins.FileNotFoundError):
    """There is nothing at the path."""


class FormatError(Error, ValueError):
    """The content of a file is not what its format demands."""

    path: str = ""
    """The file."""
    line: int | None = None
    """Line in text files, from 1."""


class OutOfMemoryError(Error, MemoryError):
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


class OverflowError(Error, builtins.OverflowError):
    """A result does not fit its type."""

    aggregate: str = ""
    """The aggregate as written, or `arithmetic`."""


class DivideByZeroError(Error, ZeroDivisionError):
    """An integer or decimal was divided by zero."""


class CancelledError(Error):
    """The query was stopped from outside."""


class TimeoutError(Error, builtins.TimeoutError):
    """The statement took longer than `statement_timeout`."""


class InvalidError(Error, ValueError):
    """An option or an argument has a value that is not possible."""

    name: str = ""
    """Name of the option or argument."""


class ExecutionError(Error, RuntimeError):
    """Any other failure while running."""


class InternalError(Error, RuntimeError):
    """A defect of grouse: please report it."""


for _name in __all__:  # what a traceback shows is what `except` takes
    globals()[_name].__module__ = "grouse"
