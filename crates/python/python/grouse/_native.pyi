"""Types of the native module; `grouse` re-exports all of it."""

import datetime
import decimal
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, TypeAlias, final

import pandas
import polars
import pyarrow
from typing_extensions import Self

__version__: str

class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class _ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

_Value: TypeAlias = (
    bool
    | int
    | float
    | decimal.Decimal
    | str
    | bytes
    | datetime.date
    | datetime.datetime
    | datetime.time
    | datetime.timedelta
    | Sequence[Any]
    | Mapping[str, Any]
    | None
)
_Params: TypeAlias = list[_Value] | tuple[_Value, ...] | dict[str, _Value]
_Size: TypeAlias = int | str

@final
class Progress:
    """Where a running query stands."""

    input_rows: int
    """Rows that the scans have handed on."""
    input_share: float | None
    """Share of the input that is read, from 0 to 1; None where the total is unknown."""
    groups: int
    """Groups that GROUP BY operators hold or have emitted."""
    memory_bytes: int
    """Bytes that the queries of the connection hold."""
    spilled_bytes: int
    """Bytes written to disk for want of memory."""
    elapsed_s: float
    """Seconds since the query started."""

@final
class Connection:
    """A connection to the engine: options, registered tables, views and worker threads of its own."""

    def sql(self, text: str, params: _Params | None = None) -> Relation:
        """Plans SQL and gives the (last) statement's result as a lazy Relation.

        `params` is a list or tuple for `?` and `$1`, a dict for `$name`. Raises a subclass of grouse.Error.
        """
    def register(self, name: str, obj: _ArrowStream | _ArrowArray) -> None:
        """Makes an object's rows visible as table `name`. Raises grouse.TypeError for objects without Arrow data."""
    def unregister(self, name: str) -> None:
        """Removes a registered table; it is no error if there is none."""
    def tables(self) -> list[str]:
        """Names of the registered tables and views, sorted."""
    def close(self) -> None:
        """Closes the connection; its relations raise grouse.InvalidError from now on."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

@final
class Profile:
    """What each worker of a query did when, from `Relation.profile()`. In a notebook it is drawn as a timeline."""

    @property
    def seconds(self) -> float:
        """Seconds from the statement to its last row."""
    def summary(self) -> str:
        """Sums as text: time by phase and worker, what was serial, why threads were idle."""
    def html(self) -> str:
        """One page for a browser, which needs nothing else."""
    def json(self) -> str:
        """The trace event format, which Perfetto and chrome://tracing open."""
    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes `path`: a page (.html) or a trace (.json)."""

@final
class Relation:
    """The lazy result of a statement: columns and types are known, rows come when they are asked for."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""
    @property
    def types(self) -> list[str]:
        """Types of the columns, in order, such as "int64", "varchar", "timestamp(6) UTC", "list(double)"."""
    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row, or None after the last one."""
    def fetchmany(self, size: int = 1) -> list[tuple[Any, ...]]:
        """At most `size` more rows; an empty list after the last one."""
    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left; the next fetch starts over."""
    def __iter__(self) -> Rows: ...
    def df(self) -> pandas.DataFrame:
        """The result as a pandas DataFrame. Raises ImportError without pandas."""
    def pl(self) -> polars.DataFrame:
        """The result as a polars DataFrame. Raises ImportError without polars."""
    def arrow(self) -> pyarrow.Table:
        """The result as a pyarrow Table. Raises ImportError without pyarrow."""
    def to_arrow_table(self) -> pyarrow.Table:
        """The same as `arrow`."""
    def to_batches(self) -> Batches:
        """An iterator over the record batches as they are made; the result is never held as a whole."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def show(self, *, max_rows: int = 20, max_width: int | None = None) -> None:
        """Prints the first `max_rows` rows as a table of at most `max_width` characters (None: the terminal's)."""
    def explain(self, *, analyze: bool = False) -> str:
        """The plan as text; with analyze=True the query runs and the plan tells what each operator did."""
    def profile(self) -> Profile:
        """Runs the query, without its rows, and tells what each worker did when."""
    def close(self) -> None:
        """Stops what the fetch methods run, in any thread (grouse.CancelledError there); further use raises grouse.InvalidError."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...
    def _repr_html_(self) -> str: ...

@final
class Rows(Iterator[tuple[Any, ...]]):
    """An iterator over rows; dropping it stops the query."""

    def __next__(self) -> tuple[Any, ...]: ...

@final
class Batches(Iterator[Any]):
    """An iterator over pyarrow.RecordBatch, or grouse.Batch without pyarrow; dropping or closing it stops the query."""

    def __next__(self) -> pyarrow.RecordBatch | Batch: ...
    def __arrow_c_schema__(self) -> object: ...
    def close(self) -> None:
        """Stops the query; there are no more batches. A thread that waits for one gets grouse.CancelledError."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

@final
class Batch:
    """One record batch, for use without pyarrow."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""
    @property
    def types(self) -> list[str]:
        """Types of the columns, in order."""
    @property
    def num_rows(self) -> int:
        """Number of rows."""
    def rows(self) -> list[tuple[Any, ...]]:
        """The rows."""
    def __len__(self) -> int: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
    def __arrow_c_schema__(self) -> object: ...

def connect(
    *,
    threads: int | None = None,
    memory_limit: _Size | None = None,
    temp_directory: str | os.PathLike[str] | None = None,
    progress: bool | Callable[[Progress], object] | None = None,
    **options: str | int | bool | os.PathLike[str] | None,
) -> Connection:
    """Makes a connection.

    threads: 0 or None = as many as the machine offers. memory_limit: bytes, or "4GB", "512MiB", "80%", "unlimited".
    temp_directory: folder for the files of queries that need more memory, or several with ':' between them; the process may then
    have as many files open as the system's hard limit says. progress: True for a line on stderr, or a callable.
    options: any other option of the engine by its name in SQL SET. Raises grouse.InvalidError.
    """

def default_connection() -> Connection:
    """The connection that `sql` runs on."""

def sql(text: str, params: _Params | None = None) -> Relation:
    """Plans SQL on the default connection; see Connection.sql."""
